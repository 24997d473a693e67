//! Completes a commit or a merge: moves a branch from one commit to another, together with the working tree that has it
//! checked out. Branch and index are locked during the update. As in git, the branch moves last: until then, git shows the
//! new files as changes. After a crash, [`crate::recover`] completes the update.

use std::path::{Path, PathBuf};

use git2::{DiffOptions, Oid, Repository};
use plexus_protocol::claudecode::Person;
use serde::{Deserialize, Serialize};

use crate::branch::target;
use crate::checkout::{Replacement, check_replacements, replace_all};
use crate::current::Entry;
use crate::index_lock::IndexLock;
use crate::layout::{check_admin_dir, check_layout};
use crate::person::check_branch;
use crate::ref_lock::RefLock;
use crate::target::{check_head, open_clean};
use crate::{Result, WorktreeError};

/// A branch that is about to move. All objects of its new commit exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchUpdate {
    /// The git directory of the repository.
    pub repo: String,
    /// The branch.
    pub branch: String,
    /// Its commit before.
    pub old: String,
    /// Its commit afterwards.
    pub new: String,
    /// The working tree that changes with it.
    pub tree: AffectedTree,
    /// The person in the reflog.
    pub by: Person,
    /// The reason in the reflog.
    pub reason: String,
}

/// The working tree that changes with a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AffectedTree {
    /// None: the branch is not checked out.
    None,
    /// A worktree that has the new content already. Only the index in this directory changes.
    Index {
        /// The directory where git keeps the index of the worktree.
        dir: String,
    },
    /// The main working tree.
    Checkout {
        /// Its root.
        root: String,
    },
}

/// The steps of an update, for tests that interrupt it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The branch is locked.
    Locked,
    /// The new content of a file is beside it, or a file is about to be deleted.
    FileReady,
    /// The file has its new content, and the old content is beside it.
    FileSwapped,
    /// One more file has its new content.
    FileWritten,
    /// All files have their new content; the index is old.
    FilesWritten,
    /// The index is new; the branch has not moved.
    IndexWritten,
    /// The branch has moved.
    Moved,
}

/// Moves a branch, if it is still at its old commit.
pub fn update(update: &BranchUpdate) -> Result<()> {
    update_observed(update, &mut |_| {})
}

/// Like [`update`], and reports each step.
pub fn update_observed(update: &BranchUpdate, observe: &mut dyn FnMut(Step)) -> Result<()> {
    refname(update)?;
    let (old, new): (Oid, Oid) = (update.old.parse()?, update.new.parse()?);
    let repo = match &update.tree {
        AffectedTree::Checkout { root } => open_clean(&update.repo, root, &update.branch)?,
        AffectedTree::None | AffectedTree::Index { .. } => crate::open(&update.repo)?,
    };
    let index = index_file(update).map(|index| IndexLock::take(&index)).transpose()?;
    let lock = RefLock::take(&repo, update)?;
    observe(Step::Locked);
    if target(&repo, &update.branch)? != Some(old) {
        return Err(WorktreeError::BranchChanged(update.branch.clone()));
    }
    let replacements = replacements(&repo, old, new)?;
    if let AffectedTree::Checkout { root } = &update.tree {
        check_head(&repo, root, &update.branch)?;
        let root = Path::new(root);
        check_replacements(&repo, root, &update.branch, &replacements)?;
        replace_all(&repo, root, &update.new, &replacements, observe)?;
        observe(Step::FilesWritten);
    }
    if let Some(index) = index {
        index.write(&replacements)?;
    }
    observe(Step::IndexWritten);
    lock.commit()?;
    observe(Step::Moved);
    Ok(())
}

/// The index of the working tree that changes with the branch.
pub(crate) fn index_file(update: &BranchUpdate) -> Option<PathBuf> {
    let dir = match &update.tree {
        AffectedTree::None => return None,
        AffectedTree::Index { dir } => dir,
        AffectedTree::Checkout { .. } => &update.repo,
    };
    Some(Path::new(dir).join("index"))
}

/// The full name of the branch. Checks that nothing in the repository leads what is written outside it.
pub(crate) fn refname(update: &BranchUpdate) -> Result<String> {
    check_branch(&update.branch)
        .map_err(|why| WorktreeError::Refused(format!("`{}` {why}", update.branch)))?;
    let repo = Path::new(&update.repo);
    check_layout(repo, &update.branch)?;
    if let AffectedTree::Index { dir } = &update.tree {
        let name = Path::new(dir).strip_prefix(repo.join("worktrees")).ok().and_then(Path::to_str);
        match name.filter(|name| !name.is_empty() && !name.contains('/') && *name != "..") {
            Some(name) => check_admin_dir(repo, name)?,
            None => return Err(WorktreeError::Moved(dir.into())),
        }
    }
    Ok(format!("refs/heads/{}", update.branch))
}

/// The files that change between two commits.
pub(crate) fn replacements(repo: &Repository, old: Oid, new: Oid) -> Result<Vec<Replacement>> {
    let (old, new) = (repo.find_commit(old)?.tree()?, repo.find_commit(new)?.tree()?);
    let mut options = DiffOptions::new();
    options.include_typechange(true).disable_pathspec_match(true);
    let diff = repo.diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options))?;
    let entry = |file: git2::DiffFile<'_>| {
        file.exists().then(|| Entry { mode: u32::from(file.mode()), id: file.id() })
    };
    diff.deltas()
        .map(|delta| {
            let path = delta.new_file().path().or_else(|| delta.old_file().path()).map(Path::to_owned);
            let path = path.ok_or(WorktreeError::TooMuch)?;
            Ok(Replacement { path, old: entry(delta.old_file()), new: entry(delta.new_file()) })
        })
        .collect()
}
