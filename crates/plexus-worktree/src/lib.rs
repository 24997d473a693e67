//! Git worktrees of sessions. This crate plans and creates them, compares them with their initial state, commits and
//! merges their work, and deletes them.
//!
//! A child can write the repository's configuration, so this crate never runs a program, neither git nor anything that
//! git would start: libgit2 has no hooks, no external filters, no fsmonitor and no lazy fetching. For the same reason,
//! paths come from the hub's own record and never from files that a child can write. All functions block, and use paths
//! in directories that children can change concurrently. `plexus-files` therefore runs them in a separate process
//! without access to the hub's files. Only [`Record`], [`Notes`] and [`UpdateNotes`] are the hub's own files.

mod base;
mod branch;
mod changes;
mod checkout;
mod commit;
mod comparison;
mod configuration;
mod conflicts;
mod copy;
mod current;
mod diff;
mod digest;
mod error;
mod files;
mod image;
mod index_lock;
mod layout;
mod lines;
mod losses;
mod merge;
mod merge_preview;
mod names;
mod notes;
mod objects;
mod person;
mod plan;
mod push;
mod rebase;
mod record;
mod recover;
mod ref_lock;
mod remove;
mod renames;
mod review;
mod swap;
mod target;
mod trees;
mod update;
mod update_notes;
mod work;

use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryOpenFlags};
use plexus_protocol::worktree::Worktree;

pub use changes::changes;
pub use commit::{CommitRequest, PreparedCommit, prepare_commit};
pub use configuration::read_repository_configuration_only;
pub use diff::{Shown, WorktreeDiff, diff};
pub use error::WorktreeError;
pub use losses::{Loss, losses};
pub use merge::{MergeRequest, PreparedMerge, prepare_merge};
pub use notes::{Note, Notes, Stage};
pub use person::{check_branch, check_message, check_person, check_plain_branch};
pub use plan::{FreshCheckout, Plan, Request};
pub use push::{Pushable, pushable};
pub use record::{Baseline, InitialState, Record};
pub use recover::{Recovered, recover};
pub use remove::remove;
pub use update::{AffectedTree, BranchUpdate, Step, update, update_observed};
pub use update_notes::{UpdateNote, UpdateNotes};

type Result<T> = std::result::Result<T, WorktreeError>;

/// The directory where git keeps the HEAD and the index of a worktree.
fn admin_dir(worktree: &Worktree) -> Result<PathBuf> {
    Ok(Path::new(&worktree.repo).join("worktrees").join(name(worktree)?))
}

/// The last component of its path, which is also its name in git.
fn name(worktree: &Worktree) -> Result<&str> {
    let name = Path::new(&worktree.path).file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| WorktreeError::Moved(worktree.path.clone().into()))
}

/// Opens the repository in exactly this git directory, which is not that of a linked worktree.
fn open(repo: &str) -> Result<Repository> {
    let opened = open_worktree(repo)?;
    if opened.commondir() != opened.path() {
        return Err(WorktreeError::Refused(format!(
            "{repo} has a file `commondir`, which makes git use another repository. Delete this file: git never puts it there"
        )));
    }
    Ok(opened)
}

/// Opens a repository, or a linked worktree, in exactly this directory.
fn open_worktree(path: &str) -> Result<Repository> {
    let nowhere_else = RepositoryOpenFlags::NO_SEARCH;
    Ok(Repository::open_ext(path, nowhere_else, std::iter::empty::<&str>())?)
}
