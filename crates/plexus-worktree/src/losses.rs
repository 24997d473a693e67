//! Finds the work that is lost if a worktree and its branch are deleted: content that is not committed, and commits that no other branch
//! has. The search is conservative: content that is not certainly saved elsewhere counts as lost.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use git2::{Index, Oid, Repository};
use plexus_protocol::visible;
use plexus_protocol::worktree::Worktree;

use crate::branch::{adds_nothing, target};
use crate::changes::{branch_tip, head};
use crate::current::Current;
use crate::error::at;
use crate::work::Work;
use crate::{InitialState, Result, WorktreeError, admin_dir, open};

/// Files that git keeps beside HEAD during an operation, and the marker of a locked worktree; with the words for each.
const IN_PROGRESS: [(&str, &str); 8] = [
    ("MERGE_HEAD", "a merge is in progress"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is in progress"),
    ("REVERT_HEAD", "a revert is in progress"),
    ("BISECT_LOG", "a bisection is in progress"),
    ("rebase-merge", "a rebase is in progress"),
    ("rebase-apply", "a rebase is in progress"),
    ("sequencer", "a cherry-pick or revert is in progress"),
    ("locked", "git has locked the worktree"),
];
/// How many files a message names.
const NAMED_FILES: usize = 3;
/// The longest path in a message, in bytes.
const MAX_PATH_BYTES: usize = 200;
/// The maximum number of commits to count.
const MAX_COMMITS: usize = 10_000;

/// Work that is lost with a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// An operation of git has not ended, in words.
    InProgress(&'static str),
    /// Files whose content is not committed.
    Uncommitted {
        /// The paths of the first ones, displayable.
        named: Vec<String>,
        /// How many there are.
        count: usize,
    },
    /// Staged content that is neither committed nor in a file.
    Staged,
    /// Commits that no other branch or tag has.
    Commits(usize),
    /// A submodule with files, which are not compared.
    Submodule,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InProgress(words) => f.write_str(words),
            Self::Uncommitted { named, count } => {
                let verb = if *count == 1 { "file is" } else { "files are" };
                let more = if *count > named.len() { ", …" } else { "" };
                write!(f, "{count} {verb} not committed ({}{more})", named.join(", "))
            }
            Self::Staged => f.write_str("staged content is not committed"),
            Self::Commits(1) => f.write_str("1 commit is not merged into another branch"),
            Self::Commits(count) => write!(f, "{count} commits are not merged into another branch"),
            Self::Submodule => f.write_str("a submodule has files, which are not compared"),
        }
    }
}

/// The work that is lost with the worktree, without ignored files, copied files and files that setup created. If the
/// initial state is unknown, the files of an existing worktree cannot be compared.
pub fn losses(worktree: &Worktree, initial_state: Option<&InitialState>) -> Result<Vec<Loss>> {
    let base: Oid = worktree.base.parse()?;
    let repo = open(&worktree.repo)?;
    let admin = admin_dir(worktree)?;
    let in_progress = IN_PROGRESS.iter().find(|(name, _)| admin.join(name).symlink_metadata().is_ok());
    let mut losses: Vec<Loss> = in_progress.map(|(_, words)| Loss::InProgress(words)).into_iter().collect();
    let tip = branch_tip(&repo, worktree)?;
    match Path::new(&worktree.path).symlink_metadata() {
        // The directory was deleted, and its HEAD with it.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            losses.extend(unmerged(&repo, worktree, base, &[tip])?);
            return Ok(losses);
        }
        Err(error) => return Err(at(Path::new(&worktree.path))(error)),
        Ok(_) => {}
    }
    let head = head(&repo, &admin)?;
    if head.is_none() {
        losses.push(Loss::InProgress("its HEAD names a branch without a commit"));
    }
    losses.extend(unmerged(&repo, worktree, base, &[tip, head])?);
    let work = Work::at(worktree, initial_state.ok_or(WorktreeError::NoRecord)?, head)?;
    match uncommitted(&work)? {
        Some(loss) => losses.push(loss),
        None if is_staged(&work, head.unwrap_or(base), &admin)? => losses.push(Loss::Staged),
        None => {}
    }
    if work.comparison.has_submodules() {
        losses.push(Loss::Submodule);
    }
    Ok(losses)
}

/// The commits of these tips that no other branch or tag has. A branch whose content was squashed or rebased into the base branch
/// counts as merged.
fn unmerged(repo: &Repository, worktree: &Worktree, base: Oid, tips: &[Option<Oid>]) -> Result<Option<Loss>> {
    let mut walk = repo.revwalk()?;
    let mut pushed = false;
    for tip in tips.iter().flatten().filter(|tip| **tip != base) {
        if !is_squashed(repo, worktree, base, *tip)? {
            walk.push(*tip)?;
            pushed = true;
        }
    }
    if !pushed {
        return Ok(None);
    }
    walk.hide(base)?;
    let own = format!("refs/heads/{}", worktree.branch);
    for reference in repo.references()? {
        let reference = reference?;
        let saves = [&b"refs/heads/"[..], b"refs/tags/", b"refs/remotes/"]
            .iter()
            .any(|folder| reference.name_bytes().starts_with(folder));
        // A symbolic reference may lead to the branch that is deleted.
        if !saves || reference.name_bytes() == own.as_bytes() || reference.target().is_none() {
            continue;
        }
        // A tag may name something other than a commit.
        if let Ok(commit) = reference.peel_to_commit() {
            walk.hide(commit.id())?;
        }
    }
    let count = walk.take(MAX_COMMITS).collect::<std::result::Result<Vec<_>, _>>()?.len();
    Ok((count > 0).then_some(Loss::Commits(count)))
}

/// Whether the base branch has the changes of `tip` in other commits. A tip that equals the base in content has nothing that
/// could be squashed, and its commits may be work that was undone.
fn is_squashed(repo: &Repository, worktree: &Worktree, base: Oid, tip: Oid) -> Result<bool> {
    let branch = worktree.base_branch.as_ref().and_then(|branch| target(repo, branch).ok().flatten());
    let Some(branch) = branch.filter(|branch| *branch != base) else { return Ok(false) };
    let has_changes = repo.find_commit(tip)?.tree_id() != repo.find_commit(base)?.tree_id();
    Ok(has_changes && adds_nothing(repo, branch, tip)?)
}

fn uncommitted(work: &Work) -> Result<Option<Loss>> {
    let mut paths: Vec<&Path> = work.undone().map(AsRef::as_ref).collect();
    for difference in &work.differences {
        let now = work.read_for_commit(&difference.path)?;
        if matches!(now, Current::TooLarge(_)) || !work.is_committed(&difference.path, &now)? {
            paths.push(&difference.path);
        }
    }
    let named = paths.iter().take(NAMED_FILES).map(|path| displayable(path)).collect();
    Ok((!paths.is_empty()).then_some(Loss::Uncommitted { named, count: paths.len() }))
}

fn displayable(path: &Path) -> String {
    let text = path.to_string_lossy().replace(['\n', '\t'], " ");
    let mut text = visible(&text).unwrap_or(text);
    text.truncate(text.floor_char_boundary(MAX_PATH_BYTES));
    text
}

/// Whether the child's own index differs from its commit. Staged content may be nowhere else.
fn is_staged(work: &Work, head: Oid, admin: &Path) -> Result<bool> {
    let repo = &work.comparison.repo;
    let index = Index::open(&admin.join("index"))?;
    let tree = repo.find_commit(head)?.tree()?;
    Ok(repo.diff_tree_to_index(Some(&tree), Some(&index), None)?.deltas().len() > 0)
}
