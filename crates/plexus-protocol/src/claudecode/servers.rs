//! MCP servers of a session besides the hub's own: as `claudecode.create` and a project's `.mcp.json` specify
//! them, and as they are stored. Debug output omits anything that may be secret.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a server is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpServerKind {
    /// A program that the agent starts.
    Stdio,
    /// HTTP.
    #[serde(alias = "streamable-http")]
    Http,
    /// HTTP with server-sent events, the older transport.
    Sse,
    /// A server of the creating session, by its name.
    Inherited,
}

/// A server in Claude Code's format.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServerGiven {
    /// Default `stdio` if `command` is present; `inherited`: the caller's own server with this name.
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
    /// Timeout of a call, in milliseconds.
    #[serde(default)]
    #[schemars(description = "")]
    pub timeout: Option<u64>,
}

impl fmt::Debug for McpServerGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerGiven").field("type", &self.kind).finish_non_exhaustive()
    }
}

/// A server as stored, and as Claude Code reads it.
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
        /// Its environment, in addition to the agent's.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// Timeout of a call, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    /// HTTP.
    Http(McpEndpoint),
    /// HTTP with server-sent events, the older transport.
    Sse(McpEndpoint),
}

/// The address of a server over HTTP.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpEndpoint {
    /// The URL.
    pub url: String,
    /// The headers of each request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Timeout of a call, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

/// A stored server in the format in which it was given, to be checked again.
impl From<McpServer> for McpServerGiven {
    fn from(server: McpServer) -> Self {
        let nothing = Self {
            kind: None,
            command: None,
            args: None,
            env: None,
            url: None,
            headers: None,
            timeout: None,
        };
        let remote = |kind: McpServerKind, endpoint: McpEndpoint| {
            let McpEndpoint { url, headers, timeout } = endpoint;
            Self { kind: Some(kind), url: Some(url), headers: Some(headers), timeout, ..nothing.clone() }
        };
        match server {
            McpServer::Stdio { command, args, env, timeout } => Self {
                kind: Some(McpServerKind::Stdio),
                command: Some(command),
                args: Some(args),
                env: Some(env),
                timeout,
                ..nothing
            },
            McpServer::Http(endpoint) => remote(McpServerKind::Http, endpoint),
            McpServer::Sse(endpoint) => remote(McpServerKind::Sse, endpoint),
        }
    }
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
