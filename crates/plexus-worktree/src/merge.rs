//! Prepares the merge of a worktree's branch: merges in memory, writes the resulting objects, and changes no branch.
//! Conflicts are returned as data. The merge uses the objects alone: no attribute, setting or merge driver of the
//! repository has an effect.

use git2::{MergeOptions, Oid, Repository};
use plexus_protocol::claudecode::{ConflictFile, MergeHow, Person};
use plexus_protocol::worktree::{FileDiff, Worktree};
use serde::{Deserialize, Serialize};

use crate::branch::target;
use crate::checkout::check_replacements;
use crate::conflicts::conflicts;
use crate::layout::check_layout;
use crate::merge_preview::{Preview, preview};
use crate::objects::{incomplete, is_descendant, open_objects, store};
use crate::person::{author, check_branch, signature, stored};
use crate::rebase::rebase;
use crate::target::{affected_tree, open_clean};
use crate::trees::check_new_trees;
use crate::update::{AffectedTree, BranchUpdate, refname, replacements};
use crate::{Result, WorktreeError, changes::branch_tip, open};

/// The parameters of a merge.
#[derive(Debug, Serialize, Deserialize)]
pub struct MergeRequest {
    /// The reviewed commit of the worktree's branch.
    pub head: String,
    /// The branch to merge into.
    pub into: String,
    /// The expected commit of that branch.
    pub onto: Option<String>,
    /// The preview that a person reviewed, if one was needed.
    pub preview: Option<String>,
    /// How to merge.
    pub how: MergeHow,
    /// The message of a new commit.
    pub message: Option<String>,
    /// The author of a merge commit or a squashed commit, and the committer; by default the author of the base commit.
    pub author: Option<Person>,
}

/// A merge that can be completed, or its conflicts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreparedMerge {
    /// The objects exist, but no branch names them.
    Ready(BranchUpdate),
    /// The result differs from the reviewed changes. Nothing was changed.
    Differs {
        /// The commit of the branch to merge into.
        before: String,
        /// Identifies this commit and the result.
        preview: String,
        /// All changes of the branch to merge into.
        files: Vec<FileDiff>,
    },
    /// Nothing was changed.
    Conflicts {
        /// The commit of the branch to merge into.
        before: String,
        /// The commit that conflicts, for a rebase.
        commit: Option<String>,
        /// The files that conflict.
        files: Vec<ConflictFile>,
        /// Whether there are more.
        truncated: bool,
    },
}

/// The result of a merge in memory.
pub(crate) enum Merged {
    Commit(Oid),
    Conflicts { index: git2::Index, commit: Option<Oid> },
}

/// Merges the reviewed commit into another branch, in memory.
pub fn prepare_merge(worktree: &Worktree, request: &MergeRequest) -> Result<PreparedMerge> {
    let (head, into) = (request.head.parse::<Oid>().map_err(|_| changed(worktree))?, &request.into);
    check_branch(into).map_err(|why| WorktreeError::Refused(format!("`{into}` {why}")))?;
    if *into == worktree.branch {
        return Err(WorktreeError::Refused(format!(
            "`{into}` is the branch of the worktree itself. Choose another branch"
        )));
    }
    check_layout(worktree.repo.as_ref(), into)?;
    let repo = open(&worktree.repo)?;
    if branch_tip(&repo, worktree)? != Some(head) {
        return Err(changed(worktree));
    }
    let Some(before) = target(&repo, into)? else {
        return Err(WorktreeError::Refused(format!(
            "The repository has no local branch `{into}`. Create it, or choose another branch"
        )));
    };
    if request.onto.as_ref().is_some_and(|onto| *onto != before.to_string()) {
        return Err(WorktreeError::BranchChanged(into.clone()));
    }
    let objects = open_objects(&worktree.repo)?;
    // The base is not trusted: another agent may have chosen it.
    check_new_trees(&objects, before, head)?;
    if head == before || is_descendant(&objects, before, head)? {
        return Err(WorktreeError::Refused(format!(
            "`{into}` already contains the branch `{}`",
            worktree.branch
        )));
    }
    let tree = affected_tree(worktree, into)?;
    let by = author(&repo, worktree, request.author.as_ref())?;
    let after = match merged(&objects, worktree, request, &by, before, head)? {
        Merged::Commit(after) => after,
        Merged::Conflicts { index, commit } => {
            let (files, truncated) = conflicts(&objects, &index, into, &worktree.branch)?;
            let commit = commit.map(|commit| commit.to_string());
            return Ok(PreparedMerge::Conflicts { before: before.to_string(), commit, files, truncated });
        }
    };
    let result = objects.find_commit(after)?.tree_id();
    if let Some(Preview { id, files }) = preview(&objects, worktree, before, head, result)?
        && request.preview.as_ref() != Some(&id)
    {
        return Ok(PreparedMerge::Differs { before: before.to_string(), preview: id, files });
    }
    if after != head {
        check_new_trees(&objects, before, after)?;
        store(&objects, &repo, before, after)?;
    }
    let update = BranchUpdate {
        repo: worktree.repo.clone(),
        branch: into.clone(),
        old: before.to_string(),
        new: after.to_string(),
        tree,
        by,
        reason: format!("merge {}: by Plexus", worktree.branch),
    };
    // A working tree that cannot be updated is reported now, before the audit entry is written.
    refname(&update)?;
    if let AffectedTree::Checkout { root } = &update.tree {
        let repo = open_clean(&update.repo, root, into)?;
        check_replacements(&repo, root.as_ref(), into, &replacements(&repo, before, after)?)?;
    }
    Ok(PreparedMerge::Ready(update))
}

fn changed(worktree: &Worktree) -> WorktreeError {
    WorktreeError::BranchChanged(worktree.branch.clone())
}

fn merged(
    repo: &Repository,
    worktree: &Worktree,
    request: &MergeRequest,
    by: &Person,
    before: Oid,
    head: Oid,
) -> Result<Merged> {
    let (branch, into) = (&worktree.branch, &request.into);
    let by = signature(by)?;
    let (ours, theirs) = (repo.find_commit(before)?, repo.find_commit(head)?);
    let message = match (&request.message, request.how) {
        (Some(message), _) => stored(message)?,
        (None, MergeHow::Squash) => {
            format!("{}\n", String::from_utf8_lossy(theirs.message_bytes()).trim_end())
        }
        (None, _) => format!("Merge branch '{branch}' into {into}\n"),
    };
    match request.how {
        MergeHow::FastForward if is_descendant(repo, head, before)? => Ok(Merged::Commit(head)),
        MergeHow::FastForward => Err(WorktreeError::Refused(format!(
            "`{into}` has commits that `{branch}` lacks, so it cannot be fast-forwarded. Merge or rebase instead"
        ))),
        MergeHow::Rebase => rebase(repo, before, head, &by),
        MergeHow::Merge | MergeHow::Squash => {
            let mut index =
                repo.merge_commits(&ours, &theirs, Some(&MergeOptions::new())).map_err(incomplete)?;
            if index.has_conflicts() {
                return Ok(Merged::Conflicts { index, commit: None });
            }
            let tree = repo.find_tree(index.write_tree_to(repo)?)?;
            if tree.id() == ours.tree_id() {
                return Err(WorktreeError::Refused(format!(
                    "`{into}` already has all changes of `{branch}`"
                )));
            }
            let parents = if request.how == MergeHow::Merge { vec![&ours, &theirs] } else { vec![&ours] };
            Ok(Merged::Commit(repo.commit(None, &by, &by, &message, &tree, &parents)?))
        }
    }
}
