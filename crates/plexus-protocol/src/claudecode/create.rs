//! `claudecode.create`: the parameters and the result of creating a session.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, Hooks, McpServerGiven, PermissionMode, PolicyName};
use crate::arbor::Position;
use crate::budget::Budget;
use crate::policy::RuleGiven;
use crate::worktree::Isolation;
use crate::{AttachmentGiven, HostLabel, HostName, Object, SessionId, SessionName, TemplateName};

/// Parameters of `claudecode.create`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateParams {
    /// 1 to 64 letters, digits, `-`, `_` or `.`; unique among your sessions.
    pub name: SessionName,
    /// Absolute path of the existing directory in which it works.
    pub working_dir: String,
    /// Host of the agent; default: this one.
    #[serde(default)]
    pub host: Option<HostName>,
    /// Instead of `host`: labels that its host must have.
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>")]
    pub labels: Option<Vec<HostLabel>>,
    /// Model for the agent.
    #[serde(default)]
    pub model: Option<String>,
    /// Replaces Claude Code's own system prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Text to add after the system prompt.
    #[serde(default)]
    pub append_system_prompt: Option<String>,
    /// false: no gate and no approvals (operator only).
    #[serde(default)]
    pub loopback_enabled: Option<bool>,
    /// How the agent requests approvals; default `control`.
    #[serde(default)]
    pub channel: Option<Channel>,
    /// What runs without an approval; default `default`.
    #[serde(default)]
    pub permission_mode: Option<PermissionMode>,
    /// What the gate decides; default `own_course`.
    #[serde(default)]
    pub policy: Option<PolicyName>,
    /// Rules for the session and all below it; `policy` decides about calls that none matches.
    #[serde(default)]
    pub rules: Option<Vec<RuleGiven>>,
    /// Starts the first turn at once.
    #[serde(default)]
    pub prompt: Option<String>,
    /// Files of the prompt, as in `chat` (not for agents).
    #[serde(default)]
    #[schemars(extend("x-plexus-operator" = true))]
    pub attachments: Option<Vec<AttachmentGiven>>,
    /// Environment variables, in addition to the inherited ones.
    #[serde(default)]
    pub env: Option<BTreeMap<String, String>>,
    /// Whether the agent may start agents itself.
    #[serde(default)]
    pub hub_tools: Option<bool>,
    /// An approval without an answer expires after this time.
    #[serde(default)]
    pub approval_timeout_secs: Option<u64>,
    /// An unanswered approval of it or a descendant escalates after this time; default 120.
    #[serde(default)]
    pub escalate_after_secs: Option<u64>,
    /// With `hub_tools`: starts a turn when a session below requests an approval while this one is idle.
    #[serde(default)]
    pub wake: Option<bool>,
    /// Stored with the session, for the caller.
    #[serde(default)]
    pub metadata: Option<Object>,
    /// Live streams also send token deltas.
    #[serde(default)]
    pub deltas: Option<bool>,
    /// Creates a git worktree and branch for the session, from `working_dir`.
    #[serde(default)]
    pub isolation: Option<Isolation>,
    /// Budget of the session and all below it, taken from what you have left.
    #[serde(default)]
    pub budget: Option<Budget>,
    /// With `hub_tools`: what it may allow for sessions below it, as rules such as `Edit(src/**)`. By default it
    /// can only deny, and the rest escalates.
    #[serde(default)]
    pub approve_scope: Option<Vec<String>>,
    /// MCP servers by name. The gate sees their tools as `mcp__<name>__<tool>`. A session can only pass on
    /// its own: `{"type":"inherited"}`.
    #[serde(default)]
    pub mcp_servers: Option<BTreeMap<String, McpServerGiven>>,
    /// Loads the project's settings, MCP servers and agents as they are now (operator only).
    #[serde(default)]
    pub trust_project: Option<bool>,
    /// Continues a copy of this Claude Code session, by its id (operator only). It must belong to `working_dir`.
    #[serde(default)]
    #[schemars(extend("x-plexus-operator" = true))]
    pub resume: Option<SessionId>,
    /// false: without the imported servers and agents (operator only).
    #[serde(default)]
    #[schemars(extend("x-plexus-operator" = true))]
    pub imported: Option<bool>,
    /// Commands that run before and after tool calls, in the format of Claude Code's settings (operator only). They can deny
    /// a call, and never allow one.
    #[serde(default)]
    #[schemars(extend("x-plexus-operator" = true))]
    pub hooks: Option<Hooks>,
    /// A template that sets the parameters you omit (operator only).
    #[serde(default)]
    #[schemars(extend("x-plexus-operator" = true))]
    pub template: Option<TemplateName>,
}

impl CreateParams {
    /// Only the required parameters.
    pub fn minimal(name: SessionName, working_dir: String) -> Self {
        Self {
            name,
            working_dir,
            host: None,
            labels: None,
            model: None,
            system_prompt: None,
            append_system_prompt: None,
            loopback_enabled: None,
            channel: None,
            permission_mode: None,
            policy: None,
            rules: None,
            prompt: None,
            env: None,
            hub_tools: None,
            approval_timeout_secs: None,
            escalate_after_secs: None,
            wake: None,
            metadata: None,
            deltas: None,
            isolation: None,
            budget: None,
            approve_scope: None,
            mcp_servers: None,
            trust_project: None,
            resume: None,
            imported: None,
            hooks: None,
            attachments: None,
            template: None,
        }
    }
}

/// Result of `claudecode.create`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CreateResult {
    /// The session was created.
    Created {
        /// Its id.
        id: SessionId,
        /// The start of its conversation.
        head: Position,
        /// The first turn, if a prompt was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
        /// For loopback_wait: everything that happens in that turn is newer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<u64>,
        /// With `hub_tools`: what it may allow for sessions below it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        may_decide: Option<Vec<String>>,
        /// An explanation of `may_decide`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}
