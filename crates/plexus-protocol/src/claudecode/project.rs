//! What agents get of files that Claude Code would read by itself: of a project's own, which an operator has taken up for a
//! session (`trust_project`), as it is kept and as it is shown; and of the user's settings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::McpServer;
use crate::{Object, SessionId, UnixSeconds};

/// What was taken up of a project: a copy, which is all that a process of the session is ever given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrustedProject {
    /// The files it was taken from, and the programs among them that its servers name: by their path in the working
    /// directory, each with the hash of its content.
    pub files: BTreeMap<String, String>,
    /// When.
    pub trusted_at: UnixSeconds,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its MCP servers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// Its agents, by name, as Claude Code is told of them.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub agents: Object,
    /// What stands in the files and was not taken up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// A trusted project as it is shown: names only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectView {
    /// The files that the trust is about.
    pub files: Vec<String>,
    /// Those of them that are not as they were: no process is started until they are trusted again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// When it was trusted.
    pub trusted_at: UnixSeconds,
    /// Its environment variables, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Its MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<String>,
    /// Its agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// What stands in its files and is not taken up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// Parameters of `claudecode.trust_project`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustProjectParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// false: nothing of the project is loaded any more.
    #[serde(default)]
    pub trust: Option<bool>,
}

/// Result of `claudecode.trust_project`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TrustProjectResult {
    /// It is so from the session's next process on.
    Ok {
        /// The session.
        session_id: SessionId,
        /// What is taken up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<ProjectView>,
    },
}

/// Parameters of `claudecode.user_settings`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserSettingsParams {
    /// true: what is in the file now counts from now on.
    #[serde(default)]
    pub accept: Option<bool>,
}

/// Result of `claudecode.user_settings`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserSettingsResult {
    /// What counts.
    Ok {
        /// The file; left out where it is not read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// What agents get of it, by name.
        loads: Vec<String>,
        /// What it denies to all of them.
        deny: Vec<String>,
        /// What in the file is not what counts, by name, and waits to be accepted.
        changed: Vec<String>,
    },
}
