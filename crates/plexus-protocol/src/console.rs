//! `console.*`, and the messages of a sign-in to the web console: the proof of the hub's identity, and the
//! exchange of a code for a token.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{TokenName, UnixSeconds};

/// Parameters of `console.link`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkParams {
    /// The URL at which the browser reaches the hub, such as `https://hub.example`; default: the hub's own
    /// address.
    #[serde(default)]
    pub url: Option<String>,
}

/// Result of `console.link`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LinkResult {
    /// A link.
    Ok {
        /// The link signs in the first browser that opens it. Do not pass it to a program as an argument:
        /// other users can see arguments.
        link: String,
        /// A file that redirects a browser to the link. Only this user can read it; it is deleted together
        /// with the link.
        file: String,
        /// The link expires after this time.
        expires_in_secs: u64,
    },
}

/// Body of `POST /console/login`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The code of the link.
    pub code: String,
}

/// Response of `POST /console/login`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SignedIn {
    /// The token of the tab that signed in.
    pub token: String,
    /// The name of that token, for `token.revoke`.
    pub name: TokenName,
    /// When the token expires.
    pub expires_at: UnixSeconds,
}

/// Response of `GET /identity`: the hub signed the caller's nonce.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The hub's public key, for peers that do not have it yet.
    pub key: String,
    /// The address that the hub sees at the other end of the connection. It differs from the peer's own
    /// address if another program relays the connection.
    #[schemars(with = "String")]
    pub peer: SocketAddr,
    /// The signature, in hexadecimal digits.
    pub signature: String,
}
