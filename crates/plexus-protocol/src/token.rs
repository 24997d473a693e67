//! `token.*`: named tokens, which the operator creates and revokes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{TokenName, UnixSeconds};

/// The right of a named token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenRight {
    /// Reads sessions, their events and approvals, and metrics.
    Read,
    /// Reads and answers approvals.
    Decide,
    /// All rights of the operator. A sign-in to the console creates such a token.
    Operator,
}

/// Parameters of `token.new`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewParams {
    /// The name; unique among tokens in use.
    pub name: TokenName,
    /// The right.
    pub right: TokenRight,
    /// After how many seconds it expires; default: never.
    #[serde(default)]
    pub expires_secs: Option<u64>,
}

/// Result of `token.new`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NewResult {
    /// The token was created.
    Created {
        /// Its name.
        name: TokenName,
        /// The token itself. It is shown only once; the hub stores only its hash.
        token: String,
        /// When it expires; omitted if it does not.
        #[serde(skip_serializing_if = "Option::is_none")]
        expires_at: Option<UnixSeconds>,
    },
}

/// A token in use, without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// Its name.
    pub name: TokenName,
    /// The right.
    pub right: TokenRight,
    /// When it was created.
    pub created_at: UnixSeconds,
    /// When it expires; omitted if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixSeconds>,
}

/// Result of `token.list`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ListResult {
    /// The tokens in use.
    Ok {
        /// Oldest first.
        tokens: Vec<Token>,
    },
}

/// Parameters of `token.revoke`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeParams {
    /// The name of the token.
    pub name: TokenName,
}

/// Result of `token.revoke`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RevokeResult {
    /// The token is revoked, and its open connections are closed.
    Ok {
        /// The name of the token.
        name: TokenName,
    },
}
