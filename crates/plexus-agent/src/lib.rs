//! Runs one child process of a session. The crate owns the child's command line, its keeper, the two append-only files
//! between keeper and hub, and the process tree (`docs/design/1-two-files.md`).
//!
//! It owns the contents of `DIR/sessions/<id>/runs/<n>/` and the processes of that run. `plexus-claude` interprets the
//! lines. The hub decides which runs exist and when each one starts and ends.
//!
//! This crate supports Linux only: it uses `/proc`, pidfds, inotify, sub-reapers and namespaces.

mod dir_watch;
mod disk;
mod exit;
mod identity;
mod journal;
mod keeper;
mod launch;
mod outbox;
mod proc;
mod program;
mod readable;
mod run_dir;
mod sandbox;
mod supervise;
mod tree;
mod watch;

pub use dir_watch::{DirState, DirWatch};
pub use disk::free_bytes;
pub use exit::{Exit, read_exit, stderr_tail};
pub use identity::ProcessIdentity;
pub use journal::{Entry, Journal, MAX_LINE};
pub use keeper::{KeepError, Limits, keep, keep_within};
pub use launch::{Conversation, JournalLimits, Launch, LaunchLine, PromptTool, Streams};
pub use outbox::Outbox;
pub use program::pinned;
pub use run_dir::RunDir;
pub use sandbox::{
    Inode, Protection, Sandbox, SandboxPart, SandboxState, Tracing, enter_sandbox, forbid_tracing,
    list_data_dir, read_sandbox, try_hiding, try_sandbox,
};
pub use supervise::{Keeper, parent_ended, sweep_all};
pub use tree::{SESSION_ID_VARIABLE, descends_from, sweep};
pub use watch::{JournalWatch, try_inotify};
