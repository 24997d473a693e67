//! Finds the working tree that has the target branch of a merge checked out. Only the main working tree is ever updated,
//! at the path in the session's row, and only if it has no uncommitted changes.

use std::path::{Path, PathBuf};

use git2::{Repository, StatusOptions};
use plexus_protocol::worktree::Worktree;

use crate::diff::display;
use crate::error::at;
use crate::files::read_at_most;
use crate::update::AffectedTree;
use crate::{Result, WorktreeError, name};

/// The number of files to name in an error.
const NAMED: usize = 5;
/// The files that git keeps beside HEAD while an operation is in progress.
const IN_PROGRESS: [&str; 8] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "index.lock",
];

/// Refuses to work while another git operation is in progress.
pub(crate) fn check_idle(git_dir: &Path, whose: &str) -> Result<()> {
    match IN_PROGRESS.iter().map(|name| git_dir.join(name)).find(|path| path.symlink_metadata().is_ok()) {
        None => Ok(()),
        Some(path) => Err(WorktreeError::Refused(format!(
            "{whose} is in the middle of another git operation ({}). Finish or abort it first",
            display(&path)
        ))),
    }
}

/// Finds the working tree that a change of `branch` affects.
pub(crate) fn affected_tree(worktree: &Worktree, branch: &str) -> Result<AffectedTree> {
    let common = Path::new(&worktree.repo);
    for (admin, whose) in linked(common)? {
        if is_on(&admin, branch)? && whose != name(worktree)? {
            return Err(WorktreeError::Refused(format!(
                "`{branch}` is checked out in the linked worktree `{}`, which Plexus does not change. Merge there with \
                 git, or push the branch `{}`",
                display(Path::new(&whose)),
                worktree.branch
            )));
        }
    }
    if !is_on(common, branch)? {
        return Ok(AffectedTree::None);
    }
    match &worktree.checkout {
        Some(root) => Ok(AffectedTree::Checkout { root: root.clone() }),
        // A bare repository also has a HEAD, but no working tree.
        None if common.file_name().is_none_or(|name| name != ".git") && is_bare(common)? => {
            Ok(AffectedTree::None)
        }
        None => Err(WorktreeError::Refused(format!(
            "`{branch}` is checked out in a working tree whose path Plexus did not record. Merge there with git, or \
             push the branch `{}`",
            worktree.branch
        ))),
    }
}

fn is_bare(common: &Path) -> Result<bool> {
    Ok(crate::open(&common.to_string_lossy())?.is_bare())
}

/// The directories of the linked worktrees of a repository, with their names.
fn linked(common: &Path) -> Result<Vec<(PathBuf, String)>> {
    let dir = common.join("worktrees");
    let entries = match dir.read_dir() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(at(&dir))?,
    };
    entries
        .map(|entry| {
            let entry = entry.map_err(at(&dir))?;
            Ok((entry.path(), entry.file_name().to_string_lossy().into_owned()))
        })
        .collect()
}

/// Whether a working tree has a branch checked out, or rebases or bisects it.
fn is_on(git_dir: &Path, branch: &str) -> Result<bool> {
    let full = format!("refs/heads/{branch}");
    let names = |file: &str| match read_at_most(&git_dir.join(file), 4096) {
        Ok(text) => {
            let text = text.unwrap_or_default();
            let text = String::from_utf8_lossy(&text).trim().to_owned();
            text == full
                || text.strip_prefix("ref: ").is_some_and(|name| name.trim() == full)
                || text == branch
        }
        Err(_) => false,
    };
    Ok(["HEAD", "rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"].into_iter().any(names))
}

/// Opens the repository with the main working tree at `root`, and checks that it has `branch` checked out and no changes.
pub(crate) fn open_clean(repo: &str, root: &str, branch: &str) -> Result<Repository> {
    let path = Path::new(root);
    let real = path.canonicalize().map_err(at(path))?;
    if real != path || !path.join(".git").canonicalize().is_ok_and(|git_dir| git_dir == Path::new(repo)) {
        return Err(WorktreeError::Moved(path.to_owned()));
    }
    check_idle(Path::new(repo), root)?;
    let opened = crate::open(repo)?;
    // A child can set `core.worktree` to another path.
    opened.set_workdir(path, false)?;
    let settings = opened.config()?.snapshot()?;
    if settings.get_bool("core.sparseCheckout").unwrap_or(false) {
        return Err(refused(root, branch, "is a sparse checkout"));
    }
    check_head(&opened, root, branch)?;
    let mut options = StatusOptions::new();
    options.include_untracked(false).include_ignored(false).exclude_submodules(true);
    let statuses = opened.statuses(Some(&mut options))?;
    if !statuses.is_empty() {
        let paths = statuses.iter().take(NAMED).map(|status| {
            let path = String::from_utf8_lossy(status.path_bytes()).into_owned();
            format!("`{}`", display(Path::new(&path)))
        });
        let mut named = paths.collect::<Vec<_>>().join(", ");
        if statuses.len() > NAMED {
            named += ", …";
        }
        return Err(refused(
            root,
            branch,
            &format!("has uncommitted changes ({named}). Commit or stash them"),
        ));
    }
    drop(statuses);
    Ok(opened)
}

/// Checks that the main working tree has `branch` checked out.
pub(crate) fn check_head(repo: &Repository, root: &str, branch: &str) -> Result<()> {
    let head = repo.find_reference("HEAD")?;
    if head.symbolic_target()? == Some(&format!("refs/heads/{branch}")) {
        return Ok(());
    }
    Err(WorktreeError::Refused(format!(
        "{root} has switched from `{branch}` to another branch since the merge started. Merge again"
    )))
}

pub(crate) fn refused(root: &str, branch: &str, why: &str) -> WorktreeError {
    WorktreeError::Refused(format!(
        "`{branch}` is checked out in {root}, which {why}. You can also merge later, or push the worktree's branch"
    ))
}
