//! Reads the requests that a child waits on: permission to run a tool, the gate's callback, and the callbacks of the user's hooks.
//!
//! Both steps of a tool call are read strictly, because the hub bases its decision on them. A field that is missing,
//! contradictory or of the wrong type makes the request one that must be denied. All other fields are read tolerantly.

use serde_json::Value;

use super::read::{any, flag, map, text};
use crate::{GATE_CALLBACK, HookEvent, Object};

/// A request of the child, which waits for exactly one reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The id that the reply must carry.
    pub request_id: String,
    /// The content of the request.
    pub body: RequestBody,
}

/// The content of a child's request.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestBody {
    /// `can_use_tool`: asks for permission to run a tool call. Answered with [`reply_permission`](crate::reply_permission).
    Ask(Box<CanUseTool>),
    /// The gate's callback before a tool call. Answered with [`reply_gate`](crate::reply_gate), never with an error,
    /// because an error would let the tool run.
    Gate(Box<PreToolUse>),
    /// A `can_use_tool` that cannot be read. It must be denied.
    InvalidPermissionRequest {
        /// Why it cannot be read.
        why: String,
    },
    /// A callback that is not a readable PreToolUse of the hub, or a request of unknown kind that might be one. It must
    /// be denied with [`reply_gate`](crate::reply_gate).
    InvalidGateRequest {
        /// Why it cannot be read.
        why: String,
    },
    /// A callback of the user's hooks. Answered with [`reply_hook`](crate::reply_hook), never with an error.
    Hook(HookCallback),
    /// A callback of the user's hooks that cannot be read. It is answered as a hook that failed.
    InvalidHookRequest {
        /// The event of the callback.
        event: HookEvent,
        /// Why it cannot be read.
        why: String,
    },
    /// An unknown request. It is answered with [`reply_error`](crate::reply_error).
    Unknown {
        /// Its `subtype`.
        subtype: String,
    },
}

/// A tool call that needs approval.
#[derive(Debug, Clone, PartialEq)]
pub struct CanUseTool {
    /// The tool.
    pub tool_name: String,
    /// The id of the call.
    pub tool_use_id: String,
    /// The input of the call.
    pub input: Object,
    /// Rules that Claude Code offers to remember. Some of them write settings files.
    pub permission_suggestions: Option<Value>,
    /// The path that caused the request.
    pub blocked_path: Option<String>,
    /// Why Claude Code requests approval. May contain terminal escapes and text chosen by the child.
    pub decision_reason: Option<String>,
    /// The type of that reason: `safetyCheck` and others.
    pub decision_reason_type: Option<String>,
    /// The sub-agent that makes the call.
    pub agent_id: Option<String>,
    /// The user's ask rule that matched, in any form.
    pub matched_ask_rule: Option<Value>,
    /// Whether only a person can answer it.
    pub requires_user_interaction: Option<bool>,
}

/// A tool call at the gate, before Claude Code applies its own rules.
#[derive(Debug, Clone, PartialEq)]
pub struct PreToolUse {
    /// The tool.
    pub tool_name: String,
    /// The id of the call.
    pub tool_use_id: String,
    /// The input of the call.
    pub input: Object,
    /// The child's current working directory.
    pub cwd: Option<String>,
    /// The child's current permission mode.
    pub permission_mode: Option<String>,
    /// The sub-agent that makes the call.
    pub agent_id: Option<String>,
}

/// A callback of the user's hooks. The hub passes its whole input to the hooks; only the parts that select them are read here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCallback {
    /// The event.
    pub event: HookEvent,
    /// What matchers are compared with: the tool, or the type of a sub-agent. Empty for other events.
    pub subject: String,
    /// The id of the call, if the event is about one.
    pub tool_use_id: Option<String>,
}

/// Reads a `control_request`; `None` without a request id, because it then cannot be answered.
pub(super) fn request(object: &mut Object) -> Option<Request> {
    let request_id = text(object, "request_id")?;
    let mut body = map(object, "request").unwrap_or_default();
    let body = match text(&mut body, "subtype").as_deref() {
        Some("can_use_tool") => match can_use_tool(body) {
            Ok(can_use_tool) => RequestBody::Ask(Box::new(can_use_tool)),
            Err(why) => RequestBody::InvalidPermissionRequest { why: why.to_owned() },
        },
        Some("hook_callback") => hook_callback(body),
        Some(subtype) => RequestBody::Unknown { subtype: subtype.to_owned() },
        None => RequestBody::InvalidGateRequest { why: "the request has no valid subtype".to_owned() },
    };
    Some(Request { request_id, body })
}

fn can_use_tool(mut body: Object) -> Result<CanUseTool, &'static str> {
    Ok(CanUseTool {
        tool_name: name(&mut body, "tool_name").ok_or("tool_name is not a string")?,
        tool_use_id: name(&mut body, "tool_use_id").ok_or("tool_use_id is not a string")?,
        input: map(&mut body, "input").ok_or("input is not an object")?,
        permission_suggestions: any(&mut body, "permission_suggestions"),
        blocked_path: text(&mut body, "blocked_path"),
        decision_reason: text(&mut body, "decision_reason"),
        decision_reason_type: text(&mut body, "decision_reason_type"),
        agent_id: text(&mut body, "agent_id"),
        matched_ask_rule: any(&mut body, "matched_ask_rule"),
        requires_user_interaction: flag(&body, "requires_user_interaction"),
    })
}

fn hook_callback(body: Object) -> RequestBody {
    let id = body.get("callback_id").and_then(Value::as_str);
    match id.and_then(HookEvent::of_callback) {
        Some(event) => match hook(event, body) {
            Ok(callback) => RequestBody::Hook(callback),
            Err(why) => RequestBody::InvalidHookRequest { event, why: why.to_owned() },
        },
        None => match pre_tool_use(body) {
            Ok(pre_tool_use) => RequestBody::Gate(Box::new(pre_tool_use)),
            Err(why) => RequestBody::InvalidGateRequest { why: why.to_owned() },
        },
    }
}

fn hook(event: HookEvent, mut body: Object) -> Result<HookCallback, &'static str> {
    let mut hook = map(&mut body, "input").ok_or("the input of the callback is not an object")?;
    if hook.get("hook_event_name").and_then(Value::as_str) != Some(event.as_str()) {
        return Err("the callback is for another event");
    }
    let subject = match event {
        HookEvent::PreToolUse | HookEvent::PostToolUse => {
            name(&mut hook, "tool_name").ok_or("tool_name is not a string")?
        }
        // A sub-agent without a type exists in no known version; a matcher for one does not match it.
        HookEvent::SubagentStop => text(&mut hook, "agent_type").unwrap_or_default(),
        HookEvent::UserPromptSubmit | HookEvent::Stop => String::new(),
    };
    Ok(HookCallback { event, subject, tool_use_id: name(&mut hook, "tool_use_id") })
}

fn pre_tool_use(mut body: Object) -> Result<PreToolUse, &'static str> {
    if body.get("callback_id").and_then(Value::as_str) != Some(GATE_CALLBACK) {
        return Err("the callback id is unknown");
    }
    let mut hook = map(&mut body, "input").ok_or("the input of the callback is not an object")?;
    if hook.get("hook_event_name").and_then(Value::as_str) != Some("PreToolUse") {
        return Err("the callback is not for PreToolUse");
    }
    let tool_use_id = match (name(&mut body, "tool_use_id"), name(&mut hook, "tool_use_id")) {
        (Some(outer), Some(inner)) if outer != inner => {
            return Err("the callback has two different tool_use_ids");
        }
        (Some(id), _) | (None, Some(id)) => id,
        (None, None) => return Err("tool_use_id is not a string"),
    };
    Ok(PreToolUse {
        tool_name: name(&mut hook, "tool_name").ok_or("tool_name is not a string")?,
        tool_use_id,
        input: map(&mut hook, "tool_input").ok_or("tool_input is not an object")?,
        cwd: text(&mut hook, "cwd"),
        permission_mode: text(&mut hook, "permission_mode"),
        agent_id: text(&mut hook, "agent_id"),
    })
}

/// A nonempty string.
fn name(object: &mut Object, key: &str) -> Option<String> {
    text(object, key).filter(|name| !name.is_empty())
}
