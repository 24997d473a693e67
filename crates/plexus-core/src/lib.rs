//! The hub without its network doors: activations and their methods, the gate, escalation, sessions and turns. The approval
//! book is a crate of its own, `plexus-book`.
//!
//! One task owns each session and communicates with its child; all other readers use the store as the source of truth.
//! [`Hub`] commits a change before it publishes it, so nobody sees a change that is not durable. Doors call
//! [`Hub::call`] and know nothing about the implementation.

mod access;
pub mod activations;
mod approvals;
mod audit_anchor;
mod budget_requests;
mod builder;
mod caller;
mod child_mcp;
mod context;
mod conversations;
mod deltas;
mod disk;
mod door_metrics;
pub mod edited;
mod environment;
mod errors;
mod escalation;
mod files;
mod follow;
mod housekeeping;
mod hub;
mod inheritance;
mod keepers;
mod limits;
mod lineage;
mod loading;
mod method;
mod metrics;
mod notify;
mod outcome;
mod parts;
mod permit;
mod policy;
mod read_positions;
mod render;
mod run_process;
mod sandbox;
mod secret;
mod session;
mod session_audit;
mod settings;
mod shell;
mod sign_in;
mod target_file;
mod tasks;
#[cfg(test)]
mod test_support;
mod tokens;
mod tree;
mod view;
mod worktrees;

pub use access::{Admitted, Needs};
pub use audit_anchor::AuditAnchor;
pub use builder::{HubBuilder, StartError, standard_methods};
pub use caller::{Caller, Door, Notification};
pub use door_metrics::{Connected, DoorFigures, DoorName, RejectReason};
pub use files::{FileError, FileRead, Files};
pub use follow::{
    ApprovalFollower, ApprovalUpdate, ChangeFollower, EventCursor, FollowedEvent, SessionFollower,
    SessionUpdate,
};
pub use hub::{Hub, Method, Registry, ShutDown};
pub use limits::Limits;
pub use method::{Activation, Audience, MethodTypes, Repeat, ToolUser, method_not_found};
pub use permit::PermitTicket;
pub use plexus_agent::Tracing;
pub use sandbox::{granted_before, regain_sandbox};
pub use secret::{call_digest, new_token};
pub use settings::{
    Address, ChildMcp, NotifyBy, NotifySettings, Retention, SandboxSetting, Settings, TurnNotices,
};
pub use shell::find_bash;
pub use sign_in::CODE_VALID_FOR;
pub use tokens::Known;
