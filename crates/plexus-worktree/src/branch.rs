//! The branch of a worktree: its commits, and its relation to the base branch.

use git2::{MergeOptions, Oid, Repository};
use plexus_protocol::claudecode::{BranchCommit, Person};
use plexus_protocol::visible;
use plexus_protocol::worktree::{BranchState, Worktree};

use crate::objects::{ahead_behind, commits_since};
use crate::person::person_of;
use crate::work::Work;
use crate::{Result, WorktreeError};

/// The maximum number of commits to list.
const MAX_LISTED: usize = 100;
/// The maximum number of commits to count where the history is incomplete.
const MAX_COUNTED: usize = 10_000;
/// The maximum length of a text of a commit, in bytes.
const MAX_TEXT_BYTES: usize = 300;

/// What is left to commit and to merge.
pub(crate) fn state(worktree: &Worktree, work: &Work, uncommitted: u64) -> Result<BranchState> {
    let repo = &work.comparison.repo;
    let target = worktree.base_branch.as_ref().and_then(|branch| target(repo, branch).ok().flatten());
    let (Some(tip), Some(target)) = (work.tip, target) else {
        return Ok(BranchState { uncommitted, ..BranchState::default() });
    };
    let objects = &work.objects;
    let (ahead, behind) = ahead_behind(objects, tip, target, MAX_COUNTED)?;
    let merged =
        tip != work.comparison.base && (ahead == 0 || (behind > 0 && adds_nothing(objects, target, tip)?));
    Ok(BranchState { uncommitted, ahead: Some(ahead as u64), behind: Some(behind as u64), merged })
}

/// Whether a merge of `tip` would not change `target`, for example because it was already merged by squash or rebase.
pub(crate) fn adds_nothing(repo: &Repository, target: Oid, tip: Oid) -> Result<bool> {
    let (target, tip) = (repo.find_commit(target)?, repo.find_commit(tip)?);
    let mut options = MergeOptions::new();
    options.fail_on_conflict(true);
    let Ok(merged) = repo.merge_commits(&target, &tip, Some(&options)) else { return Ok(false) };
    let unchanged = repo.diff_tree_to_index(Some(&target.tree()?), Some(&merged), None)?.deltas().len() == 0;
    Ok(unchanged)
}

/// The commit of a local branch; `None` if it does not exist. A symbolic reference is an error, because an agent could
/// point it to any other reference.
pub(crate) fn target(repo: &Repository, branch: &str) -> Result<Option<Oid>> {
    match repo.find_reference(&format!("refs/heads/{branch}")) {
        Ok(reference) => match reference.target() {
            Some(id) => Ok(Some(id)),
            None => {
                Err(WorktreeError::Refused(format!("`{branch}` is a symbolic reference. Choose a branch")))
            }
        },
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The commits of the branch since the base, newest first.
pub(crate) fn commits(work: &Work) -> Result<Vec<BranchCommit>> {
    let Some(tip) = work.tip.filter(|tip| *tip != work.comparison.base) else { return Ok(Vec::new()) };
    commits_since(&work.objects, work.comparison.base, tip, MAX_LISTED)?
        .into_iter()
        .map(|id| {
            let commit = work.objects.find_commit(id)?;
            Ok(BranchCommit {
                id: commit.id().to_string(),
                summary: line(commit.summary_bytes().unwrap_or_default()),
                author: line(commit.author().name_bytes()),
                time: u64::try_from(commit.time().seconds()).unwrap_or(0),
            })
        })
        .collect()
}

/// The author of the base commit.
pub(crate) fn base_author(work: &Work) -> Result<Option<Person>> {
    Ok(person_of(&work.comparison.repo.find_commit(work.comparison.base)?.author()))
}

/// One line of displayable text.
fn line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).replace(['\n', '\t'], " ");
    let mut text = visible(&text).unwrap_or(text);
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}
