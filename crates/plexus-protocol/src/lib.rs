//! The types of Plexus's own wire and their JSON schemas, for every door and every caller.
//!
//! This crate does no I/O and makes no decisions. The `*Params` and `*Result` of a method are in the module
//! of its namespace. Types that several namespaces share (ids, approvals, events, errors) have modules of
//! their own.

mod approval;
pub mod arbor;
mod attention;
pub mod audit;
pub mod budget;
pub mod claudecode;
pub mod console;
mod error;
mod event;
mod ids;
pub mod loopback;
pub mod policy;
mod principal;
pub mod schema;
pub mod stream;
mod text;
pub mod token;
pub mod worktree;

pub use approval::{
    Approval, ApprovalKind, ApprovalStatus, AskedOf, Decider, Decision, EscalationReason, EscalationStep,
    Right,
};
pub use attention::Attention;
pub use error::{Error, ErrorKind};
pub use event::{Event, JournalRange, NumberedEvent};
pub use ids::{ApprovalId, NodeId, SessionId, SessionName, TokenName, TreeId};
pub use principal::Principal;
pub use text::{MAX_TEXT_BYTES, is_cut_at, shorten, visible};

/// A JSON object, such as the input of a tool.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// The largest body or prompt that a door accepts.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Seconds since the Unix epoch, the only time format on the wire.
pub type UnixSeconds = u64;
