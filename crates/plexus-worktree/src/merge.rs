//! Prepares the merge of a worktree's branch: merges in memory, writes the resulting objects, and changes no branch.
//! Conflicts are returned as data. libgit2 runs no merge driver that the repository configures.

use git2::{MergeOptions, Oid, Repository};
use plexus_protocol::claudecode::{ConflictFile, MergeHow, Person};
use plexus_protocol::worktree::{FileDiff, Worktree};
use serde::{Deserialize, Serialize};

use crate::branch::target;
use crate::checkout::check_replacements;
use crate::conflicts::conflicts;
use crate::merge_preview::{Preview, preview};
use crate::person::{author, check_branch, signature, stored};
use crate::rebase::rebase;
use crate::target::{affected_tree, open_clean};
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
    // Use the attributes of this tree. A child can set `core.worktree` to another path.
    repo.set_workdir(worktree.checkout.as_ref().unwrap_or(&worktree.path).as_ref(), false)?;
    if head == before || repo.graph_descendant_of(before, head)? {
        return Err(WorktreeError::Refused(format!(
            "`{into}` already contains the branch `{}`",
            worktree.branch
        )));
    }
    let tree = affected_tree(worktree, into)?;
    let by = author(&repo, worktree, request.author.as_ref())?;
    let after = match merged(&repo, worktree, request, &by, before, head)? {
        Merged::Commit(after) => after,
        Merged::Conflicts { index, commit } => {
            let (files, truncated) = conflicts(&repo, &index, into, &worktree.branch)?;
            let commit = commit.map(|commit| commit.to_string());
            return Ok(PreparedMerge::Conflicts { before: before.to_string(), commit, files, truncated });
        }
    };
    let result = repo.find_commit(after)?.tree_id();
    if let Some(Preview { id, files }) = preview(&repo, worktree, before, head, result)?
        && request.preview.as_ref() != Some(&id)
    {
        return Ok(PreparedMerge::Differs { before: before.to_string(), preview: id, files });
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
        MergeHow::FastForward if repo.graph_descendant_of(head, before)? => Ok(Merged::Commit(head)),
        MergeHow::FastForward => Err(WorktreeError::Refused(format!(
            "`{into}` has commits that `{branch}` lacks, so it cannot be fast-forwarded. Merge or rebase instead"
        ))),
        MergeHow::Rebase => rebase(repo, before, head, &by),
        MergeHow::Merge | MergeHow::Squash => {
            let mut index = repo.merge_commits(&ours, &theirs, Some(&MergeOptions::new()))?;
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
