//! Counts the changes of a session in its worktree: files, lines and commits.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use git2::{Index, Oid, Repository};
use plexus_protocol::worktree::{BranchState, Worktree, WorktreeChanges};

use crate::error::at;
use crate::files::read_at_most;
use crate::objects::commits_since;
use crate::work::Work;
use crate::{InitialState, Result, WorktreeError, admin_dir, branch, lines};

/// The time limit for counting lines.
const COUNTED_FOR: Duration = Duration::from_secs(10);
/// The maximum number of commits to count.
const MAX_COMMITS: usize = 10_000;

/// The child's own index. Until a commit, git knows a staged file only from there.
pub(crate) struct ChildIndex(Option<Index>);

impl ChildIndex {
    pub(crate) fn of(worktree: &Worktree) -> Result<Self> {
        Ok(Self(Index::open(&admin_dir(worktree)?.join("index")).ok()))
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|index| index.get_path(path, 0).is_some())
    }
}

/// Counts the differences from the base commit, including uncommitted and untracked work, and returns what is left to
/// commit and to merge.
pub fn changes(worktree: &Worktree, initial_state: &InitialState) -> Result<(WorktreeChanges, BranchState)> {
    let work = Work::of(worktree, initial_state)?;
    let mut changes = WorktreeChanges { commits: commits(worktree, &work)?, ..Default::default() };
    let until = Instant::now() + COUNTED_FOR;
    let child_index = ChildIndex::of(worktree)?;
    let mut uncommitted = work.undone().count() as u64;
    for difference in &work.differences {
        if Instant::now() > until {
            return Err(WorktreeError::TooMuch);
        }
        let now = work.read_for_diff(&difference.path)?;
        uncommitted += u64::from(!work.is_committed(&difference.path, &now)?);
        let lines = lines::count(&work.comparison, difference, now)?;
        changes.files += 1;
        changes.untracked += u64::from(difference.untracked && !child_index.has(&difference.path));
        changes.insertions += lines.new;
        changes.deletions += lines.gone;
    }
    Ok((changes, branch::state(worktree, &work, uncommitted)?))
}

fn commits(worktree: &Worktree, work: &Work) -> Result<u64> {
    let mut found = BTreeSet::new();
    let head = head(&work.comparison.repo, &admin_dir(worktree)?)?;
    for tip in [head, work.tip].into_iter().flatten() {
        found.extend(commits_since(&work.objects, work.comparison.base, tip, MAX_COMMITS)?);
    }
    Ok(found.len().min(MAX_COMMITS) as u64)
}

pub(crate) fn branch_tip(repo: &Repository, worktree: &Worktree) -> Result<Option<Oid>> {
    match repo.refname_to_id(&format!("refs/heads/{}", worktree.branch)) {
        Ok(tip) => Ok(Some(tip)),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The commit that HEAD of the worktree names, or `None` if it names an unborn branch.
pub(crate) fn head(repo: &Repository, admin: &Path) -> Result<Option<Oid>> {
    let path = admin.join("HEAD");
    let text = read_at_most(&path, 4096).map_err(at(&path))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let Some(name) = text.trim().strip_prefix("ref: ") else { return Ok(Some(text.trim().parse()?)) };
    match repo.refname_to_id(name.trim()) {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
