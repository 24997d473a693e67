//! The types on Plexus's own wire and their JSON schemas: what every door speaks, whoever is behind it.
//!
//! Nothing here does I/O or decides anything. A method's `*Params` and `*Result` live in the module of its
//! namespace; what several of them share (ids, approvals, events, errors) has a module of its own.

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
    Approval, ApprovalKind, ApprovalStatus, AskedOf, Decider, Decision, Passed, Right, WentOn,
};
pub use attention::Attention;
pub use error::{Error, ErrorKind};
pub use event::{Event, JournalRange, NumberedEvent};
pub use ids::{ApprovalId, NodeId, SessionId, SessionName, TokenName, TreeId};
pub use principal::Principal;
pub use text::{MAX_TEXT_BYTES, is_cut_at, shorten, visible};

/// A JSON object, the shape of every tool's input.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// The largest body or prompt any door takes.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Seconds since the Unix epoch, the only kind of time on the wire.
pub type UnixSeconds = u64;
