//! The hub without its network doors: activations and their methods, the gate, escalation, sessions and turns. The approval
//! book is a crate of its own, `plexus-book`.
//!
//! One task owns each session and communicates with its child; all other readers use the store as the source of truth.
//! [`Hub`] commits a change before it publishes it, so nobody sees a change that is not durable. Doors call
//! [`Hub::call`] and know nothing about the implementation.

pub mod activations;
mod adoption;
mod approvals;
mod attachments;
mod audit;
mod budget_requests;
mod builder;
mod callers;
mod claude_version;
mod commands;
mod conversations;
mod current_action;
mod deltas;
mod disk;
mod errors;
mod escalation;
mod follow;
mod history;
mod hooks;
mod housekeeping;
mod hub;
mod limits;
mod lineage;
mod loading;
mod method;
mod metrics;
mod notify;
mod policy;
mod processes;
mod project_ref;
mod raw_line;
mod read_positions;
mod render;
mod reply_to_child;
mod session;
mod settings;
mod shared_parts;
mod summary;
mod tasks;
#[cfg(test)]
mod test_support;
mod tree;
mod view;
mod worktrees;

pub use approvals::edited;
pub use approvals::permit::PermitTicket;
pub use audit::anchor::AuditAnchor;
pub use builder::{HubBuilder, StartError, standard_methods};
pub use callers::access::{Admitted, Needs, may_end_hub, may_read_metrics};
pub use callers::caller::{Caller, Door, Notification};
pub use callers::secret::{call_digest, new_token};
pub use callers::sign_in::CODE_VALID_FOR;
pub use callers::tokens::Known;
pub use follow::{
    ApprovalFollower, ApprovalUpdate, ChangeFollower, EventCursor, FollowedEvent, SessionFollower,
    SessionUpdate,
};
pub use hub::{Hub, Method, Registry, ShutDown, end_processes_in};
pub use limits::Limits;
pub use method::{
    Activation, Audience, IfUnreachable, MethodTypes, Place, Repeat, Subject, ToolUser, method_not_found,
};
pub use metrics::doors::{Connected, DoorFigures, DoorName, RejectReason};
pub use plexus_agent::{Launcher, Tracing};
pub use plexus_store::Fenced;
pub use plexus_worktree::check_person;
pub use processes::files::{FileError, FileRead, Files};
pub use processes::sandbox::{granted_before, regain_sandbox};
pub use processes::shell::find_bash;
pub use settings::{
    Address, ChildMcp, NotifyBy, NotifySettings, Retention, SandboxSetting, Settings, TurnNotices,
};
