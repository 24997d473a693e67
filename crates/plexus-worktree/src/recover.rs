//! Completes or reports an update of a branch that was interrupted, because the hub or its helper was killed. Every file
//! of the working tree then has either its old or its new content. If a user has edited one since, nothing is changed.

use std::path::Path;

use git2::Oid;
use serde::{Deserialize, Serialize};

use crate::branch::target;
use crate::checkout::{Replacement, delete_temporaries, replace_all};
use crate::current::Current;
use crate::diff::display;
use crate::index_lock::{IndexLock, delete_own_index_lock};
use crate::ref_lock::{RefLock, delete_own_lock};
use crate::update::{AffectedTree, BranchUpdate, index_file, refname, replacements};
use crate::work::MAX_COMMIT_FILE;
use crate::{Result, WorktreeError};

/// The outcome of an interrupted update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Recovered {
    /// The branch has its new commit.
    Completed,
    /// The update changed nothing: the branch has its old commit, or another one that somebody else made.
    NotDone,
    /// Some files were changed. The branch has moved since, or another branch is checked out, so the update is not
    /// continued.
    Superseded {
        /// What happened.
        why: String,
    },
    /// Some files were changed, the branch has not moved, and the update cannot be completed. A person has to decide.
    Blocked {
        /// What is in the way, and what to do.
        why: String,
    },
}

/// Completes an interrupted update if its files permit it.
pub fn recover(update: &BranchUpdate) -> Result<Recovered> {
    let refname = refname(update)?;
    let (old, new): (Oid, Oid) = (update.old.parse()?, update.new.parse()?);
    delete_own_lock(update);
    let repo = crate::open(&update.repo)?;
    let now = target(&repo, &update.branch)?;
    let all = replacements(&repo, old, new)?;
    let index = index_file(update);
    if let Some(index) = &index {
        delete_own_index_lock(index, &all);
    }
    let (AffectedTree::Checkout { root }, Some(index)) = (&update.tree, index) else {
        // At most, the index of the worktree has the new files as staged. Nothing is lost.
        return Ok(if now == Some(new) { Recovered::Completed } else { Recovered::NotDone });
    };
    let root = Path::new(root);
    if let Some(saved) = delete_temporaries(&repo, root, &update.new, &all)? {
        return Ok(blocked(update, &format!("`{}` has what you saved meanwhile", display(&saved))));
    }
    if now == Some(new) {
        return Ok(Recovered::Completed);
    }
    let (mut todo, mut done): (Vec<Replacement>, usize) = (Vec::new(), 0);
    for file in all.iter().cloned() {
        let current = Current::read(root, &file.path, MAX_COMMIT_FILE)?;
        let is = |entry| {
            let missing = matches!(current, Current::Missing);
            current.entry().map(|now| now == entry && (now.is_some() || missing))
        };
        if is(file.new)? {
            done += 1;
        } else if is(file.old)? {
            todo.push(file);
        } else {
            return Ok(blocked(update, &format!("`{}` was edited since", display(&file.path))));
        }
    }
    if done == 0 {
        return Ok(Recovered::NotDone);
    }
    if now != Some(old) {
        return Ok(Recovered::Superseded { why: half_done(update, "the branch has moved since") });
    }
    repo.set_workdir(root, false)?;
    let head = repo.find_reference("HEAD")?;
    if head.symbolic_target()? != Some(&refname) {
        return Ok(Recovered::Superseded { why: half_done(update, "another branch is checked out now") });
    }
    if let Err(error) = complete(&repo, update, root, &index, &todo, &all) {
        return Ok(blocked(update, &error.to_string()));
    }
    Ok(Recovered::Completed)
}

fn complete(
    repo: &git2::Repository,
    update: &BranchUpdate,
    root: &Path,
    index: &Path,
    todo: &[Replacement],
    all: &[Replacement],
) -> Result<()> {
    let index = IndexLock::take(index)?;
    let lock = RefLock::take(repo, update)?;
    if target(repo, &update.branch)? != Some(update.old.parse()?) {
        return Err(WorktreeError::BranchChanged(update.branch.clone()));
    }
    replace_all(repo, root, &update.new, todo, &mut |_| {})?;
    index.write(all)?;
    lock.commit()
}

fn blocked(update: &BranchUpdate, why: &str) -> Recovered {
    Recovered::Blocked { why: half_done(update, why) }
}

fn half_done(update: &BranchUpdate, why: &str) -> String {
    format!(
        "a merge of {} into `{}` was interrupted after some files were updated, and {why}. Run `git status`, then \
         restore or commit these files",
        update.new, update.branch
    )
}
