//! `template.*`: parameters of `claudecode.create` that the operator stores under a name. Only [`Template`], which is
//! stored, contains the secrets of MCP servers; no result does.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::claudecode::{McpServer, McpServerGiven, PermissionMode, PolicyName};
use crate::worktree::Isolation;
use crate::{TemplateName, UnixSeconds};

/// Parameters of `template.save`. The user of the template chooses the omitted fields.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveParams {
    /// 1 to 64 letters, digits, `-`, `_` or `.`. A template with this name is replaced.
    pub name: TemplateName,
    /// The prompt of the first turn.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The directory that a form proposes.
    #[serde(default)]
    pub working_dir: Option<String>,
    /// Model for the agent.
    #[serde(default)]
    pub model: Option<String>,
    /// What runs without an approval.
    #[serde(default)]
    pub permission_mode: Option<PermissionMode>,
    /// What the gate decides.
    #[serde(default)]
    pub policy: Option<PolicyName>,
    /// Budget of the session and all below it.
    #[serde(default)]
    pub budget: Option<Budget>,
    /// Creates a git worktree and branch for the session.
    #[serde(default)]
    pub isolation: Option<Isolation>,
    /// MCP servers for the agent, by name, in Claude Code's format. `{"type":"inherited"}` keeps the server that the stored
    /// template has under this name.
    #[serde(default)]
    pub mcp_servers: Option<BTreeMap<String, McpServerGiven>>,
}

/// A template as it is stored, with the secrets of its MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Template {
    /// The prompt of the first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The directory that a form proposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The permission mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// The named policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    /// The budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The MCP servers, with their secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
}

/// A template as `template.list` returns it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateView {
    /// Its name.
    pub name: TemplateName,
    /// The prompt of the first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The directory that a form proposes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The permission mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// The named policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    /// The budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The names of the MCP servers. Their configuration may be secret and is not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<String>,
    /// When it was last saved.
    pub saved_at: UnixSeconds,
}

/// Result of `template.save`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SaveResult {
    /// The template is stored.
    Ok {
        /// Its name.
        name: TemplateName,
    },
}

/// Result of `template.list`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ListResult {
    /// The templates.
    Ok {
        /// By name.
        templates: Vec<TemplateView>,
    },
}

/// Parameters of `template.delete`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteParams {
    /// The template.
    pub name: TemplateName,
}

/// Result of `template.delete`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DeleteResult {
    /// The template is deleted. Sessions that were created with it stay.
    Ok {
        /// Its name.
        name: TemplateName,
    },
}
