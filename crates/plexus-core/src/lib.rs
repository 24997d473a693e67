//! The hub without any network: activations and their methods, the gate, the book of approvals, sessions and turns.
//!
//! One task owns each session and speaks to its child; the store is the truth for everyone else. Nothing is told to
//! anyone before it is durable: [`Hub`] commits, then wakes whoever waits. Doors call [`Hub::call`] and know nothing
//! of what is behind it.

mod access;
pub mod activations;
mod acts;
mod approvals;
mod audit_head;
mod book;
mod bounds;
mod budgets;
mod builder;
mod clock;
mod context;
mod conversations;
mod disk;
mod door_figures;
pub mod edited;
mod environment;
mod files;
mod follow;
mod gate;
mod housekeeping;
mod hub;
mod kill_point;
mod limits;
mod lineage;
mod loading;
mod method;
mod metrics;
mod notify;
mod permit;
mod policies;
mod positions;
mod render;
mod rules;
#[cfg(test)]
mod scope_properties;
mod secret;
mod session;
mod settings;
mod settling;
mod shell;
mod sign_in;
mod sync;
mod target_file;
mod tokens;
mod tree;
mod view;
mod wall;
mod way_up;
mod worktrees;

pub use access::{Admitted, Needs};
pub use builder::{HubBuilder, StartError, standard_methods};
pub use door_figures::{Connected, DoorFigures, DoorName, Turned};
pub use files::{FileError, FileRead, Files};
pub use follow::{ApprovalFollower, ApprovalTold, ChangeFollower, Followed, Place, SessionFollower, Told};
pub use housekeeping::Retention;
pub use hub::{Hub, ShutDown};
pub use limits::Limits;
pub use method::{
    Activation, Audience, Caller, Door, Method, MethodTypes, Notification, Registry, Repeat, ToolUser,
    method_not_found,
};
pub use notify::{NotifySettings, Telling, TurnsTold};
pub use permit::PermitTicket;
pub use plexus_agent::Tracing;
pub use secret::{call_digest, new_token};
pub use settings::{ChildMcp, Settings};
pub use shell::find_bash;
pub use tokens::Known;
pub use wall::{WallSetting, granted_before, regain_sandbox};
