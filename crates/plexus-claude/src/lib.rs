//! Claude Code's wire format: stream-json, control messages and permission results.
//!
//! This crate parses a child's output into [`Incoming`] messages and encodes answers as lines for its stdin. It does no
//! I/O and makes no decisions. It neither fails nor panics on any input. An unknown message becomes
//! [`Incoming::Other`], an unreadable line [`Incoming::Rubbish`]. A recognisable but unreadable permission request
//! becomes a request that the hub must deny ([`RequestBody::InvalidPermissionRequest`], [`RequestBody::InvalidGateRequest`],
//! [`RequestBody::InvalidHookRequest`]).

mod bounded_json;
mod hooks;
mod incoming;
mod lines;
mod outgoing;
mod permission;
mod sent;
mod skeleton;
mod version;

pub use hooks::{HookAnswer, HookDecision, HookEvent, OnFailure, reply_hook};
pub use incoming::{
    Assistant, Block, CanUseTool, HookCallback, Hunk, Incoming, PreToolUse, Request, RequestBody, Response,
    System, TurnResult, User, parse, parse_oversized,
};
pub use lines::{Line, LineSplitter};
pub use outgoing::{
    AttachedFile, FileContents, GATE_CALLBACK, GATE_TIMEOUT_SECS, Gate, GateAnswer, Initialize,
    ResumedSystemPrompt, cancel_message, command, get_session_cost, interrupt, mcp_status, reply_error,
    reply_gate, reply_permission, set_model, set_permission_mode, user_message, user_message_expanded,
};
pub use permission::PermissionResult;
pub use sent::{SentId, sent_id};
pub use version::{TESTED_VERSIONS, TooOld, Version};

/// A JSON object, as sent on the wire.
type Object = serde_json::Map<String, serde_json::Value>;
