//! `claudecode.create`: what a session is made with.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, McpServerGiven, PermissionMode, PolicyName};
use crate::arbor::Position;
use crate::budget::Budget;
use crate::policy::RuleGiven;
use crate::worktree::Isolation;
use crate::{Object, SessionId, SessionName};

/// Parameters of `claudecode.create`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateParams {
    /// 1 to 64 of letters, digits, `-`, `_`, `.`; unique among living sessions.
    pub name: SessionName,
    /// Absolute path of an existing directory: where the agent works.
    pub working_dir: String,
    /// Model for the agent.
    #[serde(default)]
    pub model: Option<String>,
    /// Replaces Claude Code's own system prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// false: no gate, nobody is asked (operator only).
    #[serde(default)]
    pub loopback_enabled: Option<bool>,
    /// How the agent asks; `control` unless said.
    #[serde(default)]
    pub channel: Option<Channel>,
    /// What it may do by itself; `default` unless said.
    #[serde(default)]
    pub permission_mode: Option<PermissionMode>,
    /// What is said at the gate; `own_course` unless said.
    #[serde(default)]
    pub policy: Option<PolicyName>,
    /// Rules for its tool calls and for those of all below it; what none of them mentions is for `policy`.
    #[serde(default)]
    pub rules: Option<Vec<RuleGiven>>,
    /// Starts the first turn at once.
    #[serde(default)]
    pub prompt: Option<String>,
    /// Environment of the agent, on top of what it inherits.
    #[serde(default)]
    pub env: Option<BTreeMap<String, String>>,
    /// Whether the agent may start agents of its own.
    #[serde(default)]
    pub hub_tools: Option<bool>,
    /// An approval not answered within this time expires.
    #[serde(default)]
    pub approval_timeout_secs: Option<u64>,
    /// An approval goes on to the next above when whoever is asked has not answered it for so long (120 unless said), for
    /// all below it as well.
    #[serde(default)]
    pub escalate_after_secs: Option<u64>,
    /// With `hub_tools`: when those below it ask while it has no turn, it is given one.
    #[serde(default)]
    pub wake: Option<bool>,
    /// Kept with the session, for the caller.
    #[serde(default)]
    pub metadata: Option<Object>,
    /// Live listeners get token deltas as well.
    #[serde(default)]
    pub deltas: Option<bool>,
    /// A git worktree and branch of its own, made from `working_dir`.
    #[serde(default)]
    pub isolation: Option<Isolation>,
    /// Limits for it and all below it, taken from what you have left.
    #[serde(default)]
    pub budget: Option<Budget>,
    /// With `hub_tools`: what it may allow for those below it, as rules such as `Edit(src/**)`; left out, nothing: it can
    /// deny, and the rest is asked further up.
    #[serde(default)]
    pub approve_scope: Option<Vec<String>>,
    /// MCP servers for the agent, by name, in Claude Code's own shape. Their tools stop at the gate as
    /// `mcp__<name>__<tool>`. A session passes on its own: `{"type":"inherited"}`.
    #[serde(default)]
    pub mcp_servers: Option<BTreeMap<String, McpServerGiven>>,
    /// Loads the project's own settings, MCP servers and agents, as they are now (operator only).
    #[serde(default)]
    pub trust_project: Option<bool>,
}

/// Result of `claudecode.create`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CreateResult {
    /// The session is there.
    Created {
        /// Its id.
        id: SessionId,
        /// Where its conversation begins.
        head: Position,
        /// The first turn, when a prompt was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
        /// For loopback_wait: all that comes of that turn is newer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<u64>,
        /// With `hub_tools`: what it may allow for those below it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        may_decide: Option<Vec<String>>,
        /// What to know about that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}
