//! Claude Code's wire format: stream-json, control messages and permission results.
//!
//! This crate parses a child's output into [`Incoming`] messages and encodes answers as lines for its stdin. It does no
//! I/O and makes no decisions. It neither fails nor panics on any input. An unknown message becomes
//! [`Incoming::Other`], an unreadable line [`Incoming::Rubbish`]. A recognisable but unreadable permission request
//! becomes a request that the hub must deny ([`RequestBody::InvalidPermissionRequest`], [`RequestBody::InvalidGateRequest`]).

mod bounded_json;
mod incoming;
mod lines;
mod outgoing;
mod permission;
mod sent;
mod skeleton;
mod version;

pub use incoming::{
    Assistant, Block, CanUseTool, Incoming, PreToolUse, Request, RequestBody, Response, System, TurnResult,
    User, parse, parse_oversized,
};
pub use lines::{Line, LineSplitter};
pub use outgoing::{
    GATE_CALLBACK, GATE_TIMEOUT_SECS, GateAnswer, cancel_message, initialize, initialize_ungated, interrupt,
    mcp_status, reply_error, reply_gate, reply_permission, set_model, set_permission_mode, user_message,
    user_message_expanded,
};
pub use permission::PermissionResult;
pub use sent::{SentId, sent_id};
pub use version::{TESTED_VERSIONS, Version};

/// A JSON object, as sent on the wire.
type Object = serde_json::Map<String, serde_json::Value>;
