//! MCP servers of a session besides the hub's own: how `claudecode.create` and a project's `.mcp.json` give them, and how
//! they are kept. Whatever may be a secret in them is left out where they are printed.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpServerKind {
    /// A program that the agent starts.
    Stdio,
    /// Over HTTP.
    #[serde(alias = "streamable-http")]
    Http,
    /// Over HTTP, in the older way.
    Sse,
    /// One of the maker's own, by its name.
    Inherited,
}

/// A server in Claude Code's own shape.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServerGiven {
    /// `stdio` where there is a `command`; `inherited`: the caller's own of this name.
    #[serde(default, rename = "type")]
    #[schemars(description = "")]
    pub kind: Option<McpServerKind>,
    /// With `stdio`.
    #[serde(default)]
    #[schemars(description = "")]
    pub command: Option<String>,
    /// With `stdio`.
    #[serde(default)]
    #[schemars(description = "")]
    pub args: Option<Vec<String>>,
    /// With `stdio`.
    #[serde(default)]
    #[schemars(description = "")]
    pub env: Option<BTreeMap<String, String>>,
    /// With `http` and `sse`.
    #[serde(default)]
    #[schemars(description = "")]
    pub url: Option<String>,
    /// With `http` and `sse`.
    #[serde(default)]
    #[schemars(description = "")]
    pub headers: Option<BTreeMap<String, String>>,
    /// Milliseconds that a call may take.
    #[serde(default)]
    #[schemars(description = "")]
    pub timeout: Option<u64>,
}

impl fmt::Debug for McpServerGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerGiven").field("type", &self.kind).finish_non_exhaustive()
    }
}

/// A server as it is kept, and as Claude Code reads it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum McpServer {
    /// A program that the agent starts.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        #[serde(default)]
        args: Vec<String>,
        /// Its environment, on top of the agent's.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// Milliseconds that a call may take.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    /// Over HTTP.
    Http(McpEndpoint),
    /// Over HTTP, in the older way.
    Sse(McpEndpoint),
}

/// Where a server is reached over HTTP.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpEndpoint {
    /// Where.
    pub url: String,
    /// What each request carries.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Milliseconds that a call may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio { .. } => "Stdio(…)",
            Self::Http(_) => "Http(…)",
            Self::Sse(_) => "Sse(…)",
        })
    }
}

impl fmt::Debug for McpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpEndpoint(…)")
    }
}
