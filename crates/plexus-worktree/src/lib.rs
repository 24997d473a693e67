//! A session's own git worktree: planned, made, compared with what it began as, and removed.
//!
//! A child can write the repository's configuration, so no program is ever run here, neither git nor anything that
//! git would start: libgit2 knows no hooks, no external filters, no fsmonitor and no lazy fetching. For the same
//! reason nothing a child can write says which directory is meant: paths come from the hub's own record. All of it blocks,
//! and works by path in directories that children can change meanwhile: `plexus-files` runs it in a process of its own,
//! where there is nothing of the hub to be found. Only [`Record`] and [`Notes`] are the hub's own files.

mod changes;
mod configuration;
mod copy;
mod diff;
mod error;
mod files;
mod lines;
mod look;
mod notes;
mod plan;
mod record;
mod remove;

use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryOpenFlags};
use plexus_protocol::worktree::Worktree;

pub use changes::{changes, is_unchanged};
pub use configuration::read_repository_configuration_only;
pub use diff::{WorktreeDiff, diff};
pub use error::WorktreeError;
pub use notes::{Note, Notes, Stage};
pub use plan::{Made, Plan, Request};
pub use record::{Baseline, Began, Record};
pub use remove::remove;

type Result<T> = std::result::Result<T, WorktreeError>;

/// What git itself keeps of a worktree: its HEAD and its index.
fn admin_dir(worktree: &Worktree) -> Result<PathBuf> {
    Ok(Path::new(&worktree.repo).join("worktrees").join(name(worktree)?))
}

/// The last part of its path, under which git knows it as well.
fn name(worktree: &Worktree) -> Result<&str> {
    let name = Path::new(&worktree.path).file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| WorktreeError::Moved(worktree.path.clone().into()))
}

/// The repository in exactly this directory.
fn open(repo: &str) -> Result<Repository> {
    let nowhere_else = RepositoryOpenFlags::NO_SEARCH;
    Ok(Repository::open_ext(repo, nowhere_else, std::iter::empty::<&str>())?)
}
