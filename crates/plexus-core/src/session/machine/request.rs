//! An approval request of the child, on its control channel or over MCP, before it becomes an approval.

use plexus_claude::{CanUseTool, PermissionResult};
use plexus_protocol::loopback::PermitParams;
use plexus_protocol::{ApprovalId, Object};
use serde_json::Value;

/// The call that a request is about, and the details that Claude Code sends with it.
pub(super) struct ApprovalRequest {
    pub(super) tool_name: String,
    pub(super) tool_use_id: String,
    pub(super) input: Object,
    pub(super) reason: Option<String>,
    pub(super) suggestions: Option<Value>,
    pub(super) agent_id: Option<String>,
    pub(super) blocked_path: Option<String>,
    pub(super) requires_user_interaction: Option<bool>,
    /// A person has to answer, whatever the rules say.
    pub(super) beyond_rules: bool,
}

impl ApprovalRequest {
    pub(super) fn on_control_channel(ask: CanUseTool) -> Self {
        // The user's own rule, or Claude Code's safety check, requires a person: no rule of the hub replaces one.
        let beyond_rules =
            ask.matched_ask_rule.is_some() || ask.decision_reason_type.as_deref() == Some("safetyCheck");
        Self {
            tool_name: ask.tool_name,
            tool_use_id: ask.tool_use_id,
            input: ask.input,
            reason: ask.decision_reason,
            suggestions: ask.permission_suggestions.filter(Value::is_array),
            agent_id: ask.agent_id,
            blocked_path: ask.blocked_path,
            requires_user_interaction: ask.requires_user_interaction,
            beyond_rules,
        }
    }

    pub(super) fn over_mcp(params: PermitParams) -> Self {
        Self {
            tool_name: params.tool_name,
            tool_use_id: params.tool_use_id,
            input: params.input,
            reason: None,
            suggestions: None,
            agent_id: None,
            blocked_path: None,
            requires_user_interaction: None,
            beyond_rules: false,
        }
    }
}

/// Where a request over MCP comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum RequestOrigin {
    /// The process that the hub started: its calls pass the gate first.
    OwnProcess,
    /// A process that was started elsewhere.
    External,
}

/// What is known about a call when a request for it arrives.
pub(super) enum Known {
    /// The gate has decided.
    Decided(PermissionResult),
    /// An approval is open, or resolved and not yet used.
    Asked(ApprovalId),
    /// An approval exists for another input.
    Mismatch,
    /// Nobody has been asked.
    New,
}

pub(super) fn deny(message: impl Into<String>) -> PermissionResult {
    PermissionResult::Deny { message: message.into(), interrupt: false }
}
