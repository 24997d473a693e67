//! The types of Plexus's own wire and their JSON schemas, for every door and every caller.
//!
//! This crate does no I/O and makes no decisions. The `*Params` and `*Result` of a method are in the module
//! of its namespace. Types that several namespaces share (ids, approvals, events, errors) have modules of
//! their own.

mod approval;
pub mod arbor;
mod attachment;
mod attention;
pub mod audit;
pub mod budget;
pub mod claudecode;
pub mod console;
mod error;
mod event;
pub mod host;
mod ids;
pub mod loopback;
pub mod policy;
mod principal;
mod risk;
pub mod schema;
mod session_path;
pub mod stream;
pub mod template;
mod text;
mod title;
pub mod token;
pub mod worktree;

pub use approval::{
    Approval, ApprovalKind, ApprovalStatus, AskedOf, Decider, Decision, EscalationReason, EscalationStep,
    Right,
};
pub use attachment::{
    AttachmentGiven, AttachmentView, FileKind, FileProblem, FileType, MAX_ATTACHED_BYTES, MAX_ATTACHMENTS,
    MAX_FILE_NAME_BYTES, MAX_IMAGE_BYTES, MAX_TEXT_FILE_BYTES,
};
pub use attention::Attention;
pub use error::{Error, ErrorKind};
pub use event::{Event, Hunk, JournalRange, NewEvent, NumberedEvent};
pub use ids::{
    ApprovalId, CommandId, HostLabel, HostName, NodeId, SessionId, SessionName, TemplateName, TokenName,
    TreeId,
};
pub use principal::Principal;
pub use risk::{Denial, RiskKind, RiskMark};
pub use session_path::{join_path, root_path};
pub use text::{MAX_TEXT_BYTES, is_cut_at, is_plain_json, shorten, visible};
pub use title::{MAX_TITLE_CHARS, given_title, title_of};

/// A JSON object, such as the input of a tool.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// The largest body or prompt that a door accepts.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Seconds since the Unix epoch, the only time format on the wire.
pub type UnixSeconds = u64;
