//! Compares the result of a merge with what a person reviewed. A review shows the changes since the base of the worktree. A merge
//! follows the histories of the branches, which an agent can write: after `git merge -s ours main`, its branch shows no change of a file
//! and reverts that file in `main`. A merge is therefore completed without another look only if its result is the target branch plus the
//! reviewed changes.

use git2::{DiffOptions, Oid, Repository, Tree};
use plexus_protocol::worktree::{FileDiff, FileStatus, Worktree};
use sha2::{Digest as _, Sha256};

use crate::current::GITLINK;
use crate::diff::{MAX_DIFF_BYTES, MAX_FILES, compare, set_modes, unread};
use crate::lines::Contents;
use crate::{Result, WorktreeError};

/// The changes of a target branch that a person has to review before its merge.
pub(crate) struct Preview {
    /// Identifies the target's commit and the result.
    pub(crate) id: String,
    pub(crate) files: Vec<FileDiff>,
}

/// The preview of a merge of `head` into `before` with the tree `result`; `None` if the merge only adds what was reviewed.
pub(crate) fn preview(
    repo: &Repository,
    worktree: &Worktree,
    before: Oid,
    head: Oid,
    result: Oid,
) -> Result<Option<Preview>> {
    let tree = |commit: Oid| repo.find_commit(commit).and_then(|commit| commit.tree());
    let (base, target) = (tree(worktree.base.parse()?)?, tree(before)?);
    let mut reviewed = repo.merge_trees(&base, &target, &tree(head)?, None)?;
    if !reviewed.has_conflicts() && reviewed.write_tree_to(repo)? == result {
        return Ok(None);
    }
    let id = Sha256::new().chain_update(before.as_bytes()).chain_update(result.as_bytes()).finalize();
    let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(Preview { id, files: changed_files(repo, &target, &repo.find_tree(result)?)? }))
}

fn changed_files(repo: &Repository, old: &Tree<'_>, new: &Tree<'_>) -> Result<Vec<FileDiff>> {
    let mut options = DiffOptions::new();
    options.include_typechange(true).disable_pathspec_match(true);
    let diff = repo.diff_tree_to_tree(Some(old), Some(new), Some(&mut options))?;
    if diff.deltas().len() > MAX_FILES {
        return Err(WorktreeError::Refused(format!(
            "The merge changes {} files, and not in the way that you reviewed, because of the histories of the branches. Plexus \
             shows at most {MAX_FILES} files. Merge with git",
            diff.deltas().len()
        )));
    }
    let mut left = MAX_DIFF_BYTES;
    let mut files = Vec::new();
    for delta in diff.deltas() {
        let (old, new) = (delta.old_file(), delta.new_file());
        let Some(path) = new.path().or_else(|| old.path()) else { continue };
        let status = match (old.exists(), new.exists()) {
            (false, _) => FileStatus::Added,
            (_, false) => FileStatus::Deleted,
            _ => FileStatus::Modified,
        };
        let mut file = unread(path, status);
        let mode = |file: &git2::DiffFile<'_>| file.exists().then(|| u32::from(file.mode()));
        set_modes(&mut file, mode(&old), mode(&new));
        let (before, after) = (content(repo, &old)?, content(repo, &new)?);
        let contents = before.zip(after).map(|(old, new)| Contents { old, new });
        compare(&mut file, contents, left, 3)?;
        if file.truncated {
            // A person could not see what the merge does.
            return Err(WorktreeError::Refused(format!(
                "The merge changes `{}`, and not in the way that you reviewed, because of the histories of the branches. The change is \
                 too large to show. Merge with git",
                file.path
            )));
        }
        left -= file.patch.as_ref().map_or(0, String::len).min(left);
        files.push(file);
    }
    Ok(files)
}

/// The content of one side of a difference; `None` if it is too large.
fn content(repo: &Repository, file: &git2::DiffFile<'_>) -> Result<Option<Vec<u8>>> {
    if !file.exists() {
        return Ok(Some(Vec::new()));
    }
    if u32::from(file.mode()) == GITLINK {
        return Ok(Some(format!("Subproject commit {}\n", file.id()).into_bytes()));
    }
    Contents::stored(repo, file.id())
}
