//! Values for the tests of the machine: lines that a child writes, and decisions about them.

use plexus_claude::PermissionResult;
use plexus_protocol::{Decider, Decision, Object, Principal, Right};
use plexus_store::{BudgetRow, RunKey};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::session::Permitted;

/// A budget of the session, in units.
pub(super) fn budget(key: RunKey, granted: u64) -> BudgetRow {
    let limit = plexus_protocol::budget::BudgetLimit::WallSecs;
    BudgetRow { session: key.session, limit, granted, own: 0, below: 0, used: 0 }
}

pub(super) fn object(value: Value) -> Object {
    value.as_object().cloned().expect("an object")
}

/// A call at the gate, requested as `g-ID`.
pub(super) fn gate(tool_use_id: &str, tool_name: &str, input: Value) -> Value {
    json!({"type": "control_request", "request_id": format!("g-{tool_use_id}"), "request": {
        "subtype": "hook_callback", "callback_id": "plexus_gate", "tool_use_id": tool_use_id,
        "input": {"hook_event_name": "PreToolUse", "tool_name": tool_name, "tool_use_id": tool_use_id,
                  "tool_input": input, "cwd": "/w", "permission_mode": "default"}}})
}

pub(super) fn bash(tool_use_id: &str, command: &str) -> Value {
    gate(tool_use_id, "Bash", json!({"command": command}))
}

/// An approval request on the control channel, requested as `a-ID`.
pub(super) fn ask(tool_use_id: &str, command: &str) -> Value {
    json!({"type": "control_request", "request_id": format!("a-{tool_use_id}"), "request": {
        "subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": tool_use_id,
        "input": {"command": command}}})
}

/// The result of a call.
pub(super) fn tool_result(tool_use_id: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content":
        [{"type": "tool_result", "tool_use_id": tool_use_id, "content": "done"}]}})
}

/// The end of a turn, as older versions of Claude Code report it.
pub(super) fn turn_result(text: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "usage": {},
           "total_cost_usd": 0.0, "num_turns": 1})
}

pub(super) fn deny(message: &str) -> Decision {
    Decision { approve: false, message: Some(message.to_owned()), ..allow() }
}

pub(super) fn allow() -> Decision {
    Decision {
        approve: true,
        message: None,
        updated_input: None,
        mode: None,
        interrupt: false,
        rule: None,
        by: Decider::from(&Principal::Operator),
        right: Right::Operator,
    }
}

/// The decision that a request over MCP received at once.
pub(super) fn decided(mut answer: oneshot::Receiver<Permitted>) -> String {
    match answer.try_recv() {
        Ok(Permitted::Decided(PermissionResult::Allow { .. })) => "allow".to_owned(),
        Ok(Permitted::Decided(PermissionResult::Deny { message, .. })) => format!("deny: {message}"),
        Ok(Permitted::Waiting(_)) => "waiting".to_owned(),
        Err(_) => "no answer".to_owned(),
    }
}
