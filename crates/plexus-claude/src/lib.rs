//! Claude Code's wire: stream-json, control messages, permission shapes.
//!
//! This crate turns bytes that a child wrote into [`Incoming`] messages and answers into lines for its stdin. It does
//! no I/O of its own and decides nothing. Whatever a child writes, it neither fails nor panics: what it does not know
//! is kept as [`Incoming::Other`], what it cannot read as [`Incoming::Rubbish`], and a question that it can make out
//! but not read becomes one that the hub has to refuse ([`RequestBody::BadAsk`], [`RequestBody::BadGate`]).

mod incoming;
mod lines;
mod outgoing;
mod permission;
mod sent;
mod skeleton;
mod tame;

pub use incoming::{
    Assistant, Block, CanUseTool, Incoming, PreToolUse, Request, RequestBody, Response, System, TurnResult,
    User, parse, parse_oversized,
};
pub use lines::{Line, LineSplitter};
pub use outgoing::{
    GATE_CALLBACK, GATE_TIMEOUT_SECS, GateAnswer, cancel_message, initialize, initialize_ungated, interrupt,
    mcp_status, reply_ask, reply_error, reply_gate, set_model, set_permission_mode, user_message,
    user_message_expanded,
};
pub use permission::PermissionResult;
pub use sent::{SentId, sent_id};

/// The versions of Claude Code that Plexus is tested with: the oldest supported one and the newest known one.
pub const TESTED_VERSIONS: [&str; 2] = ["2.1.197", "2.1.325"];

/// A JSON object, as it stands on the wire.
type Object = serde_json::Map<String, serde_json::Value>;
