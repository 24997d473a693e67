//! What agents get from files that Claude Code would read by itself: the files of a project that the operator
//! trusts (`trust_project`), as stored and as shown, and the user's settings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::McpServer;
use crate::{Object, SessionId, UnixSeconds};

/// The stored copy of a trusted project. Processes of the session get only this copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrustedProject {
    /// The trusted files, and the programs of the project that its servers start: the path in the working
    /// directory, and the hash of the content.
    pub files: BTreeMap<String, String>,
    /// When the operator trusted it.
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
    /// Its agents, by name, in the format that Claude Code reads.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub agents: Object,
    /// Parts of the files that are not loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// A trusted project as shown: names only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectView {
    /// The trusted files.
    pub files: Vec<String>,
    /// Trusted files that have changed since: no process starts until they are trusted again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// When it was trusted.
    pub trusted_at: UnixSeconds,
    /// The names of its environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Its MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<String>,
    /// Its agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Parts of its files that are not loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// Parameters of `claudecode.trust_project`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustProjectParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// false: stops loading files of the project.
    #[serde(default)]
    pub trust: Option<bool>,
}

/// Result of `claudecode.trust_project`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TrustProjectResult {
    /// In effect from the session's next process on.
    Ok {
        /// The session.
        session_id: SessionId,
        /// The loaded project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<ProjectView>,
    },
}

/// Parameters of `claudecode.user_settings`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserSettingsParams {
    /// true: applies the current content of the file.
    #[serde(default)]
    pub accept: Option<bool>,
}

/// Result of `claudecode.user_settings`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserSettingsResult {
    /// The settings in effect.
    Ok {
        /// The file; omitted if the hub does not read it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// The names of the settings that agents get.
        loads: Vec<String>,
        /// The deny rules, which apply to all agents.
        deny: Vec<String>,
        /// The names of the settings in the file that differ and wait to be accepted.
        changed: Vec<String>,
    },
}
