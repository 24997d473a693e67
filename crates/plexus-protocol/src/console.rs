//! `console.*`, and the other messages of signing in to the web console: the proof of the hub's identity and the exchange of a
//! code for a token.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{TokenName, UnixSeconds};

/// Parameters of `console.link`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkParams {
    /// Where the browser reaches the hub, such as `https://hub.example`; where it listens unless said.
    #[serde(default)]
    pub url: Option<String>,
}

/// Result of `console.link`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LinkResult {
    /// A link.
    Ok {
        /// It signs in whoever opens it first. Never to be given to a program as an argument: others see those.
        link: String,
        /// A file that leads a browser there and that only this user can read; it goes with the link.
        file: String,
        /// For so long.
        expires_in_secs: u64,
    },
}

/// Body of `POST /console/login`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The code of a link.
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
    /// The address that the hub sees at the other end of the connection. It is the peer's own address unless a program in between
    /// relays.
    #[schemars(with = "String")]
    pub peer: SocketAddr,
    /// The signature, in hexadecimal digits.
    pub signature: String,
}
