//! Copies the commits of a branch on top of another commit, in memory.

use git2::{Oid, Repository, Signature, Sort};

use crate::merge::Merged;
use crate::objects::incomplete;
use crate::{Result, WorktreeError};

/// The maximum number of commits to copy.
const MAX_COMMITS: usize = 1000;

/// Copies the commits of `head` that `onto` lacks, oldest first. Authors and messages are kept; a commit that would
/// change nothing is skipped.
pub(crate) fn rebase(repo: &Repository, onto: Oid, head: Oid, committer: &Signature<'_>) -> Result<Merged> {
    let mut walk = repo.revwalk()?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE)?;
    walk.push(head)?;
    walk.hide(onto)?;
    let commits =
        walk.take(MAX_COMMITS + 1).collect::<std::result::Result<Vec<_>, _>>().map_err(incomplete)?;
    if commits.len() > MAX_COMMITS {
        return Err(WorktreeError::Refused(format!(
            "The branch has more than {MAX_COMMITS} commits. Merge or squash it instead"
        )));
    }
    let mut last = repo.find_commit(onto)?;
    for id in commits {
        let commit = repo.find_commit(id)?;
        if commit.parent_count() != 1 {
            return Err(WorktreeError::Refused(format!(
                "The branch contains the merge {id}, which cannot be rebased. Merge or squash it instead"
            )));
        }
        let mut index = repo.cherrypick_commit(&commit, &last, 0, None)?;
        if index.has_conflicts() {
            return Ok(Merged::Conflicts { index, commit: Some(id) });
        }
        let tree = repo.find_tree(index.write_tree_to(repo)?)?;
        if tree.id() == last.tree_id() {
            continue;
        }
        let message = String::from_utf8_lossy(commit.message_raw_bytes()).into_owned();
        let copy = repo.commit(None, &commit.author(), committer, &message, &tree, &[&last])?;
        last = repo.find_commit(copy)?;
    }
    if last.id() == onto {
        return Err(WorktreeError::Refused(
            "The branch has no changes that the target branch lacks".to_owned(),
        ));
    }
    Ok(Merged::Commit(last.id()))
}
