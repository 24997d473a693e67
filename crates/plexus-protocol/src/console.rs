//! `console.*`: how a person gets into the web console.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
