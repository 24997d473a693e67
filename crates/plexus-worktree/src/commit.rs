//! Prepares a commit of a session's work: writes its objects, and changes no branch. Each file is read once, and the same
//! bytes are hashed for the digest and stored, so a child that writes meanwhile cannot add anything that was not
//! reviewed. No filter runs, so files that need one are refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{AttrCheckFlags, AttrValue, Index, IndexEntry, IndexTime, Repository};
use plexus_protocol::claudecode::Person;
use plexus_protocol::worktree::Worktree;
use serde::{Deserialize, Serialize};

use crate::current::{Current, Entry, GITLINK, LINK, has_crlf};
use crate::diff::display;
use crate::digest::Digest;
use crate::layout::{check_admin_dir, check_layout};
use crate::person::{author, signature, stored};
use crate::target::check_idle;
use crate::update::{AffectedTree, BranchUpdate};
use crate::work::{MAX_COMMIT_FILE, Work};
use crate::{InitialState, Result, WorktreeError, admin_dir, files, name};

/// The parameters of a commit.
#[derive(Debug, Serialize, Deserialize)]
pub struct CommitRequest {
    /// The digest of the reviewed diff.
    pub digest: String,
    /// The message.
    pub message: String,
    /// Author and committer; by default the author of the base commit.
    pub author: Option<Person>,
    /// The files to commit, as the diff shows their paths; `None` for all.
    pub paths: Option<Vec<String>>,
}

/// A commit whose objects exist, but that no branch names.
#[derive(Debug, Serialize, Deserialize)]
pub struct PreparedCommit {
    /// How to complete it.
    pub update: BranchUpdate,
    /// The number of files that it changes.
    pub files: u64,
    /// Files whose line endings were converted to LF, as the repository's attributes or configuration require.
    pub converted: Vec<String>,
}

/// Writes a commit of the reviewed work.
pub fn prepare_commit(
    worktree: &Worktree,
    initial_state: &InitialState,
    request: &CommitRequest,
) -> Result<PreparedCommit> {
    let message = stored(&request.message)?;
    check_layout(worktree.repo.as_ref(), &worktree.branch)?;
    check_admin_dir(worktree.repo.as_ref(), name(worktree)?)?;
    check_on_branch(worktree)?;
    let work = Work::of(worktree, initial_state)?;
    let repo = &work.comparison.repo;
    let by = author(repo, worktree, request.author.as_ref())?;
    let author = signature(&by)?;
    let tip = work.tip.ok_or_else(|| WorktreeError::BranchChanged(worktree.branch.clone()))?;
    let parent = repo.find_commit(tip)?;
    let selected: Option<BTreeSet<&str>> =
        request.paths.as_ref().map(|paths| paths.iter().map(String::as_str).collect());
    let is_selected = |path: &str| selected.as_ref().is_none_or(|selected| selected.contains(path));
    let mut tree = Index::new()?;
    tree.read_tree(&parent.tree()?)?;
    let mut digest = Digest::new(work.comparison.base, work.tip);
    let mut found = BTreeSet::new();
    let mut converted = Vec::new();
    for difference in &work.differences {
        let (now, is_converted) = work.read_converted(&difference.path)?;
        digest.add(&difference.path, &now);
        let shown = display(&difference.path);
        if !is_selected(&shown) {
            check_left_out(&work, &difference.path, &now)?;
            continue;
        }
        if !is_exactly_committed(&work, &difference.path, &now)? {
            let written = write(&work, &difference.path, now)?;
            converted.extend(is_converted.then(|| shown.clone()));
            set(&mut tree, &difference.path, written)?;
        }
        found.insert(shown);
    }
    let base = repo.find_commit(work.comparison.base)?.tree()?;
    for path in work.undone() {
        // The worktree has this file as in the base, so the diff does not show it.
        if selected.is_some() {
            return Err(unshown_version(path));
        }
        let entry = base.get_path(path).ok();
        set(&mut tree, path, entry.map(|entry| Entry { mode: entry.filemode() as u32, id: entry.id() }))?;
    }
    if digest.finish() != request.digest {
        return Err(WorktreeError::Changed);
    }
    if let Some(missing) = selected.iter().flatten().find(|path| !found.contains(**path)) {
        return Err(WorktreeError::Refused(format!("`{missing}` is not a changed file of the worktree")));
    }
    let tree = repo.find_tree(tree.write_tree_to(repo)?)?;
    let files = repo.diff_tree_to_tree(Some(&parent.tree()?), Some(&tree), None)?.deltas().len() as u64;
    if files == 0 {
        return Err(WorktreeError::Refused("There is nothing to commit".to_owned()));
    }
    let new = repo.commit(None, &author, &author, &message, &tree, &[&parent])?;
    let update = BranchUpdate {
        repo: worktree.repo.clone(),
        branch: worktree.branch.clone(),
        old: tip.to_string(),
        new: new.to_string(),
        tree: AffectedTree::Index { dir: admin_dir(worktree)?.to_string_lossy().into_owned() },
        by,
        reason: "commit: by Plexus".to_owned(),
    };
    Ok(PreparedCommit { update, files, converted })
}

/// Checks that a file that is not selected leaves no version in the branch that the diff does not show.
fn check_left_out(work: &Work, path: &Path, now: &Current) -> Result<()> {
    if work.has_committed(path) && !is_exactly_committed(work, path, now)? {
        return Err(unshown_version(path));
    }
    Ok(())
}

/// Whether the branch has exactly this content. A file that is too large to be read counts as different.
fn is_exactly_committed(work: &Work, path: &Path, now: &Current) -> Result<bool> {
    Ok(!matches!(now, Current::TooLarge(_)) && work.is_committed(path, now)?)
}

fn unshown_version(path: &Path) -> WorktreeError {
    let path = display(path);
    WorktreeError::Refused(format!(
        "The branch has a committed version of `{path}` that the diff does not show. Select this file too, or commit \
         all files"
    ))
}

/// Checks that a commit would extend the branch of the worktree, and that no git operation is in progress there.
fn check_on_branch(worktree: &Worktree) -> Result<()> {
    let admin = admin_dir(worktree)?;
    let path = admin.join("HEAD");
    let head = files::read_at_most(&path, 4096).map_err(crate::error::at(&path))?.unwrap_or_default();
    if String::from_utf8_lossy(&head).trim() != format!("ref: refs/heads/{}", worktree.branch) {
        return Err(WorktreeError::Refused(format!(
            "The worktree is not on its branch `{}`. Ask the agent to switch back to it",
            worktree.branch
        )));
    }
    check_idle(&admin, "The worktree")
}

/// Stores the content of a file; `None` if the file is missing.
fn write(work: &Work, path: &Path, now: Current) -> Result<Option<Entry>> {
    let (repo, shown) = (&work.comparison.repo, display(path));
    let (mode, content) = match now {
        Current::Missing => return Ok(None),
        Current::File { mode: GITLINK, .. } => return Err(WorktreeError::Changed),
        Current::File { mode, content } => (mode, content),
        Current::TooLarge(size) => {
            return Err(WorktreeError::Refused(format!(
                "`{shown}` has {} MiB; files over {} MiB are not committed here. Commit it with git, or select the \
                 other files",
                size / 1024 / 1024,
                MAX_COMMIT_FILE / 1024 / 1024
            )));
        }
        Current::Other => {
            return Err(WorktreeError::Refused(format!(
                "`{shown}` is a directory with a repository of its own, or a special file. Select the other files"
            )));
        }
    };
    if mode == LINK {
        return Ok(Some(Entry { mode, id: repo.blob(&content)? }));
    }
    check_filters(repo, path, &content)?;
    let may_change = has_crlf(&content) || content.windows(3).any(|text| text == b"$Id");
    if may_change && work.comparison.as_stored(path, &content)? != content {
        return Err(WorktreeError::Refused(format!(
            "git would change `{shown}` when it is committed (attribute `ident`, or line endings). Commit it with git, or \
             select the other files"
        )));
    }
    Ok(Some(Entry { mode, id: repo.blob(&content)? }))
}

/// Refuses a file that git would pass through a program or convert to another encoding. A Git LFS pointer is already in
/// the form that git stores.
pub(crate) fn check_filters(repo: &Repository, path: &Path, content: &[u8]) -> Result<()> {
    for attribute in ["filter", "working-tree-encoding"] {
        let value = repo.get_attr_bytes(path, attribute, AttrCheckFlags::FILE_THEN_INDEX)?;
        if let AttrValue::Bytes(value) = AttrValue::always_bytes(value)
            && !(value == b"lfs" && is_lfs_pointer(content))
        {
            return Err(needs_filter(path, attribute, &String::from_utf8_lossy(value)));
        }
    }
    Ok(())
}

fn needs_filter(path: &Path, attribute: &str, value: &str) -> WorktreeError {
    let (path, value) = (display(path), display(Path::new(value)));
    WorktreeError::Refused(format!(
        "`{path}` has the attribute `{attribute}={value}`, and Plexus runs no filters. Use git in a terminal for this \
         file"
    ))
}

/// Whether this is the pointer that Git LFS stores in place of a file.
pub(crate) fn is_lfs_pointer(content: &[u8]) -> bool {
    content.len() < 1024 && content.starts_with(b"version https://git-lfs.github.com/spec/")
}

/// Sets or removes a file in an index.
pub(crate) fn set(index: &mut Index, path: &Path, entry: Option<Entry>) -> Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let Some(Entry { mode, id }) = entry else {
        return match index.remove_path(path) {
            Err(error) if error.code() != git2::ErrorCode::NotFound => Err(error.into()),
            _ => Ok(()),
        };
    };
    // Without times and size, git compares the content when it next looks at the file.
    let zero = IndexTime::new(0, 0);
    let path = PathBuf::from(path).as_os_str().as_bytes().to_vec();
    Ok(index.add(&IndexEntry {
        ctime: zero,
        mtime: zero,
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path,
    })?)
}
