//! Runs one child process of a session. The crate owns the child's command line, its keeper, the two append-only files
//! between keeper and hub, and the process tree (`docs/design/1-two-files.md`).
//!
//! It owns the contents of `DIR/sessions/<id>/runs/<n>/` and the processes of that run. `plexus-claude` interprets the
//! lines. The hub decides which runs exist and when each one starts and ends.
//!
//! This crate supports Linux only: it uses `/proc`, pidfds, inotify, sub-reapers and namespaces.

mod command_line;
mod dir_watch;
mod disk;
mod exit;
mod identity;
mod journal_reader;
mod journal_watch;
mod keeper;
mod keeper_handle;
mod launcher;
mod outbox;
mod proc;
mod process_tree;
mod program;
mod readable;
mod run_dir;
mod run_output;
mod sandbox;
mod timing;

pub use command_line::{Conversation, JournalLimits, Launch, LaunchLine, PromptTool, SlashCommands, Streams};
pub use dir_watch::{DirState, DirWatch};
pub use disk::free_bytes;
pub use exit::{Exit, read_exit, stderr_tail};
pub use identity::ProcessIdentity;
pub use journal_reader::{Entry, Journal, MAX_LINE};
pub use journal_watch::{JournalWatch, try_inotify};
pub use keeper::{KeepError, Limits, keep, keep_within};
pub use keeper_handle::{Keeper, parent_ended, sweep_all};
pub use launcher::{BadLauncher, Launcher};
pub use outbox::Outbox;
pub use process_tree::{SESSION_ID_VARIABLE, descends_from, sweep};
pub use program::pinned;
pub use run_dir::RunDir;
pub use run_output::{Growth, OutputFile, OutputPage, OutputRange, RawLine, read_output};
pub use sandbox::{
    Inode, Protection, Sandbox, SandboxPart, SandboxState, Tracing, enter_sandbox, forbid_tracing,
    list_data_dir, read_sandbox, try_hiding, try_sandbox,
};
pub use timing::{TIMING, TIMING_ARG};
