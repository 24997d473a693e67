//! Checks whether a worktree can be deleted without losing work. The check is conservative: a worktree that is not certainly unchanged
//! counts as changed.

use std::io::ErrorKind;
use std::path::Path;

use git2::{Index, Oid, Repository};
use plexus_protocol::worktree::Worktree;

use crate::changes::{branch_tip, head};
use crate::comparison::Comparison;
use crate::error::at;
use crate::{InitialState, Result, WorktreeError, admin_dir, open};

/// The files that git keeps beside HEAD while an operation is in progress, and the marker of a locked worktree.
const IN_PROGRESS: [&str; 8] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "locked",
];

/// Whether deleting the worktree would lose nothing but ignored files, copied files and files that setup created. If
/// its initial state is unknown, only a missing worktree counts as unchanged.
pub fn is_unchanged(worktree: &Worktree, initial_state: Option<&InitialState>) -> Result<bool> {
    let base: Oid = worktree.base.parse()?;
    let repo = open(&worktree.repo)?;
    let admin = admin_dir(worktree)?;
    let branch_moved = branch_tip(&repo, worktree)?.is_some_and(|tip| tip != base);
    if branch_moved || IN_PROGRESS.iter().any(|name| admin.join(name).symlink_metadata().is_ok()) {
        return Ok(false);
    }
    match Path::new(&worktree.path).symlink_metadata() {
        // The directory was deleted, and its HEAD with it.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(at(Path::new(&worktree.path))(error)),
        Ok(_) => {}
    }
    if head(&repo, &admin)? != Some(base) || is_staged(&repo, base, &admin)? {
        return Ok(false);
    }
    let comparison = Comparison::at(worktree, initial_state.ok_or(WorktreeError::NoRecord)?)?;
    Ok(!comparison.has_submodules() && comparison.differences()?.is_empty())
}

/// Whether the child's own index differs from the base. Staged content may be nowhere else.
fn is_staged(repo: &Repository, base: Oid, admin: &Path) -> Result<bool> {
    let index = Index::open(&admin.join("index"))?;
    let tree = repo.find_commit(base)?.tree()?;
    Ok(repo.diff_tree_to_index(Some(&tree), Some(&index), None)?.deltas().len() > 0)
}
