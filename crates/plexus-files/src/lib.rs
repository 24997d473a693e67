//! Performs file work in directories that agents can write. A helper process in the same sandbox as the agents does the
//! work (`docs/design/24-the-file-helper.md`).
//!
//! While the hub works below an agent's working directory, the agent can replace any directory there with a link to the
//! data directory. In the sandbox the data directory is empty, so such a link leads nowhere. The hub sends one [`Verb`]
//! to each helper process ([`Helper::call`]); the process performs it ([`serve`]), answers and exits. The hub kills it
//! when its time is up.

mod client;
mod fault;
mod frame;
mod process;
mod request;
mod verbs;

pub use client::{Helper, HelperError};
pub use fault::{FaultAbout, WorktreeFault};
pub use process::{ServeError, serve};
pub use request::{Input, Kind, Output, Request, Verb};
pub use verbs::append_line::AppendLine;
pub use verbs::count_changes::CountChanges;
pub use verbs::create_worktree::{CreateWorktree, CreatedWorktree};
pub use verbs::diff_worktree::DiffWorktree;
pub use verbs::find_losses::FindLosses;
pub use verbs::find_pushable::FindPushable;
pub use verbs::find_transcript::{FindTranscript, FoundTranscript, TranscriptEntry};
pub use verbs::list_transcripts::{ListTranscripts, ListedTranscript};
pub use verbs::named_files::{NamedFile, NamedFiles};
pub use verbs::plan_worktree::PlanWorktree;
pub use verbs::prepare_commit::PrepareCommit;
pub use verbs::prepare_merge::PrepareMerge;
pub use verbs::read_file::{FileError, FileRead, ReadFile};
pub use verbs::read_project::{ProjectFault, ProjectFiles, ReadProject, SERVERS, SETTINGS};
pub use verbs::read_transcript::{Author, ReadTranscript, TranscriptMessage, TranscriptRead};
pub use verbs::read_user_config::{
    ReadUserConfig, USER_AGENTS, USER_SETTINGS, USER_SKILLS, USER_STATE, UserFile,
};
pub use verbs::recover_update::RecoverUpdate;
pub use verbs::remove_worktree::RemoveWorktree;
pub use verbs::resolve_dir::{ResolveDir, Resolved};
pub use verbs::take_baseline::TakeBaseline;
pub use verbs::update_branch::UpdateBranch;
