//! `token.*`: named tokens, which the operator hands out and takes back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{TokenName, UnixSeconds};

/// What a named token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenRight {
    /// Reading sessions, their events and approvals, and the figures.
    Read,
    /// Reading approvals and answering them.
    Decide,
    /// Everything that the operator may do. Whoever signs in at the console gets one.
    Operator,
}

/// Parameters of `token.new`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewParams {
    /// What to call it; unique among those in use.
    pub name: TokenName,
    /// What it is good for.
    pub right: TokenRight,
    /// After how many seconds it ends; left out, it lasts until it is revoked.
    #[serde(default)]
    pub expires_secs: Option<u64>,
}

/// Result of `token.new`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NewResult {
    /// It is there.
    Created {
        /// Its name.
        name: TokenName,
        /// The token itself. It is shown this once and kept only as a hash.
        token: String,
        /// When it ends, if it does by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        expires_at: Option<UnixSeconds>,
    },
}

/// A token in use, without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Token {
    /// Its name.
    pub name: TokenName,
    /// What it is good for.
    pub right: TokenRight,
    /// When it was made.
    pub created_at: UnixSeconds,
    /// When it ends, if it does by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixSeconds>,
}

/// Result of `token.list`.
#[derive(Debug, Serialize, JsonSchema)]
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
    /// Which.
    pub name: TokenName,
}

/// Result of `token.revoke`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RevokeResult {
    /// It is good for nothing any more, and what was open with it is closed.
    Ok {
        /// Which.
        name: TokenName,
    },
}
