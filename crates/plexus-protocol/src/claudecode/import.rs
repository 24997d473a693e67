//! `claudecode.imports` and `claudecode.import`: the rules, MCP servers, agents and skills of the user's own Claude Code
//! configuration, and the copies of them that the hub keeps. No type shows a secret.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::McpServer;
use crate::Object;

/// The kind of an entry in the user's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportKind {
    /// An entry of `permissions` in `settings.json`.
    Rule,
    /// An MCP server of `.claude.json`.
    Server,
    /// A file of `agents`.
    Agent,
    /// A directory of `skills`.
    Skill,
}

impl ImportKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Server => "server",
            Self::Agent => "agent",
            Self::Skill => "skill",
        }
    }
}

/// How an entry of the user's configuration compares with the hub's copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportState {
    /// The hub has no copy.
    New,
    /// The hub has a copy of the current content.
    Imported,
    /// The hub has a copy, and the content has changed since.
    Changed,
    /// The hub has a copy, and the entry no longer exists.
    Gone,
    /// It cannot be imported.
    Refused,
}

/// An entry of the user's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportItem {
    /// Its kind.
    pub kind: ImportKind,
    /// Its name; for a rule, its text; for a server of one project, `<directory>:<name>`.
    pub name: String,
    /// Its state.
    pub state: ImportState,
    /// What it does: the effect of a rule, the command line or URL of a server, the description of an agent or skill.
    pub does: String,
    /// Its file, in the user's configuration directory.
    pub file: String,
    /// The hash of its content, for `claudecode.import`; omitted if it cannot be imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The prompt of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The names of its variables, headers or files. Their values may be secret and are not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Its parts that are not imported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Why it cannot be imported, or does not need to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Result of `claudecode.imports`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ImportsResult {
    /// The current content of the user's configuration, and the copies of the hub.
    Ok {
        /// The configuration directory.
        dir: String,
        /// The entries: rules, servers, agents, skills.
        items: Vec<ImportItem>,
    },
}

/// An entry to import: exactly the content that the caller has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportTake {
    /// Its kind.
    pub kind: ImportKind,
    /// Its name.
    pub name: String,
    /// Its `digest` from `claudecode.imports`.
    pub digest: String,
}

/// An imported entry, by kind and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportRef {
    /// Its kind.
    pub kind: ImportKind,
    /// Its name.
    pub name: String,
}

/// Parameters of `claudecode.import`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// The entries to import.
    #[serde(default)]
    pub take: Vec<ImportTake>,
    /// The imported entries to remove.
    #[serde(default)]
    pub remove: Vec<ImportRef>,
}

/// Result of `claudecode.import`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ImportResult {
    /// Rules are in force. The rest applies to the sessions that the operator creates from now on.
    Ok {
        /// The imported entries.
        taken: Vec<ImportRef>,
        /// The removed entries.
        removed: Vec<ImportRef>,
    },
}

/// The imported servers and agents of one session, as stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedConfig {
    /// The MCP servers, with their secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// The agents, by name, in the format that Claude Code reads.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub agents: Object,
}

/// The imported entries that a session loads: names only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedView {
    /// The MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<String>,
    /// The agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
}
