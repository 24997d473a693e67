//! Shows the changes of a session in its worktree, file by file, as text. It covers the same changes as `changes`, and
//! holds at most two files and the returned text in memory.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use git2::{DiffOptions, Oid, Patch};
use plexus_protocol::claudecode::{BranchCommit, Person};
use plexus_protocol::visible;
use plexus_protocol::worktree::{BranchState, FileDiff, FileMode, FileStatus, Worktree};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::changes::ChildIndex;
use crate::comparison::Difference;
use crate::current::{Current, GITLINK, LINK};
use crate::digest::Digest;
use crate::lines::Contents;
use crate::review::Review;
use crate::work::Work;
use crate::{InitialState, Result, branch, image, renames};

/// The maximum number of files in a diff.
pub(crate) const MAX_FILES: usize = 500;
/// The maximum text of one file in a diff of all files.
const MAX_TEXT_BYTES: usize = 128 * 1024;
/// The maximum text of a diff: of all files together, or of the single requested file.
pub(crate) const MAX_DIFF_BYTES: usize = 1024 * 1024;
/// The time limit for comparing contents. Files beyond it are listed without their contents.
const COMPARED_FOR: Duration = Duration::from_secs(10);

/// The part of the changes to show.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Shown {
    /// The one file to show; `None` for all.
    pub only: Option<String>,
    /// The number of unchanged lines around each change; 3 by default.
    pub context_lines: Option<u32>,
}

/// The differences of a worktree from its base commit.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct WorktreeDiff {
    /// The files that differ, by path.
    pub files: Vec<FileDiff>,
    /// Whether the diff omits further files.
    pub truncated: bool,
    /// Identifies the content of all files that differ; `None` if they cannot be read in time.
    pub digest: Option<String>,
    /// The head of the branch, if all its content is part of the diff.
    pub head: Option<String>,
    /// The commits of the branch.
    pub commits: Vec<BranchCommit>,
    /// What is left to commit and to merge.
    pub state: BranchState,
    /// The author of the base commit.
    pub base_author: Option<Person>,
}

/// The differences from the base commit: committed, uncommitted and untracked work.
pub fn diff(worktree: &Worktree, initial_state: &InitialState, shown: &Shown) -> Result<WorktreeDiff> {
    let work = Work::of(worktree, initial_state)?;
    let (comparison, differences) = (&work.comparison, &work.differences);
    let until = Instant::now() + COMPARED_FOR;
    let (child_index, moved) = (ChildIndex::of(worktree)?, renames::find(&work, until)?);
    let gone: BTreeSet<&PathBuf> = moved.values().map(|origin| &origin.path).collect();
    let is_wanted = |difference: &Difference| match &shown.only {
        Some(only) => display(&difference.path) == *only,
        None => !gone.contains(&difference.path),
    };
    let (mut found, mut left) = (WorktreeDiff::default(), MAX_DIFF_BYTES);
    let most = if shown.only.is_some() { MAX_DIFF_BYTES } else { MAX_TEXT_BYTES };
    let mut review = Review::new(&work);
    let (mut large, mut listed) = (Vec::new(), 0);
    for difference in differences {
        // The patch, the digest and the comparison with the branch use the same bytes.
        let now = (Instant::now() <= until).then(|| work.read_for_diff(&difference.path)).transpose()?;
        match &now {
            Some(Current::TooLarge(_)) => large.push(&difference.path),
            now => review.add(&difference.path, now.as_ref())?,
        }
        if now.as_ref().is_some_and(|now| difference.exists == matches!(now, Current::Missing)) {
            // It was created or deleted since the scan, which decided how the diff shows it.
            review.mark_incomplete();
        }
        if !gone.contains(&difference.path) {
            listed += 1;
        }
        if listed > MAX_FILES {
            // A person has not seen the names of these files.
            found.truncated = true;
            review.mark_incomplete();
        }
        if !is_wanted(difference) || found.files.len() == MAX_FILES {
            continue;
        }
        let origin = moved.get(&difference.path);
        let mut file = described(difference, origin.map(|origin| &origin.path), &child_index);
        // A moved file is compared with the file that it was.
        let old = origin.map_or(difference.old, |origin| Some(origin.old));
        let old_mode = work.base_entry(origin.map_or(&difference.path, |origin| &origin.path))?;
        match now {
            None => file.truncated = true,
            Some(now) => {
                let old_mode = old_mode.map(|entry| entry.mode);
                set_modes(&mut file, old_mode, now.mode());
                file.version = Some(version(old, &now));
                let contents = Contents::of(comparison, old, now)?;
                if shown.only.is_some() {
                    file.image = contents.as_ref().and_then(image::compared);
                }
                compare(&mut file, contents, most.min(left), shown.context_lines.unwrap_or(3))?;
            }
        }
        left -= file.patch.as_ref().map_or(0, String::len).min(left);
        found.files.push(file);
    }
    // Large files are read last: they are not shown, and must not use up the time for the others.
    for path in large {
        let now = (Instant::now() <= until).then(|| work.read_for_commit(path)).transpose()?;
        review.add(path, now.as_ref())?;
        let name = display(path);
        let file = found.files.iter_mut().find(|file| file.path == name);
        if let (Some(file), Some(now)) = (file, &now) {
            let old = work.base_entry(path)?;
            set_modes(file, old.map(|entry| entry.mode), now.mode());
            file.version = Some(version(old.map(|entry| entry.id), now));
        }
    }
    found.state = branch::state(worktree, &work, review.uncommitted)?;
    found.head = work.tip.filter(|_| !review.unseen).map(|tip| tip.to_string());
    found.digest = review.digest();
    found.commits = branch::commits(&work)?;
    found.base_author = branch::base_author(&work)?;
    Ok(found)
}

fn described(difference: &Difference, old_path: Option<&PathBuf>, child_index: &ChildIndex) -> FileDiff {
    let status = match difference {
        _ if old_path.is_some() => FileStatus::Renamed,
        Difference { exists: false, .. } => FileStatus::Deleted,
        Difference { untracked: true, path, .. } if child_index.has(path) => FileStatus::Added,
        Difference { untracked: true, .. } => FileStatus::Untracked,
        Difference { old: None, .. } => FileStatus::Added,
        Difference { .. } => FileStatus::Modified,
    };
    FileDiff { old_path: old_path.map(|path| display(path)), ..unread(&difference.path, status) }
}

/// A file whose contents are not compared yet.
pub(crate) fn unread(path: &Path, status: FileStatus) -> FileDiff {
    FileDiff {
        path: display(path),
        old_path: None,
        status,
        old_mode: None,
        new_mode: None,
        version: None,
        insertions: 0,
        deletions: 0,
        binary: false,
        patch: None,
        truncated: false,
        image: None,
    }
}

/// Shows the modes of a file, unless it is and was a plain file.
pub(crate) fn set_modes(file: &mut FileDiff, old: Option<u32>, new: Option<u32>) {
    let (old, new) = (old.map(mode), new.map(mode));
    if [old, new].into_iter().flatten().any(|mode| mode != FileMode::Plain) {
        (file.old_mode, file.new_mode) = (old, new);
    }
}

fn mode(bits: u32) -> FileMode {
    match bits {
        LINK => FileMode::Link,
        GITLINK => FileMode::Submodule,
        bits if bits & 0o111 != 0 => FileMode::Executable,
        _ => FileMode::Plain,
    }
}

/// A hash of a file before and after.
fn version(old: Option<Oid>, now: &Current) -> String {
    let hash = Sha256::new().chain_update(old.map_or(Vec::new(), |old| old.as_bytes().to_vec()));
    let hash = hash.chain_update(Digest::of_file(now)).finalize();
    hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares the contents, and adds a patch of at most `most` bytes.
pub(crate) fn compare(
    file: &mut FileDiff,
    contents: Option<Contents>,
    most: usize,
    context: u32,
) -> Result<()> {
    let Some(contents) = contents else {
        file.truncated = true;
        return Ok(());
    };
    if !contents.is_text() {
        file.binary = true;
        return Ok(());
    }
    // The buffers have no names, because a child could configure a diff driver for a name.
    let mut options = DiffOptions::new();
    options.context_lines(context);
    let patch = Patch::from_buffers(&contents.old, None, &contents.new, None, Some(&mut options))?;
    let (_, new, gone) = patch.line_stats()?;
    (file.insertions, file.deletions) = (new as u64, gone as u64);
    if patch.num_hunks() == 0 {
        return Ok(());
    }
    let (text, truncated) = written(&patch, file, most)?;
    (file.patch, file.truncated) = (text, truncated);
    Ok(())
}

/// A patch as text of at most `most` bytes, and whether it is truncated. The text is `None` if no text fits.
fn written(patch: &Patch<'_>, file: &FileDiff, most: usize) -> Result<(Option<String>, bool)> {
    let name = &file.path;
    let nothing = "/dev/null".to_owned();
    let (old, new) = match file.status {
        FileStatus::Added | FileStatus::Untracked => (nothing, format!("b/{name}")),
        FileStatus::Deleted => (format!("a/{name}"), nothing),
        FileStatus::Modified => (format!("a/{name}"), format!("b/{name}")),
        FileStatus::Renamed => {
            let old = file.old_path.as_deref().unwrap_or(name);
            (format!("a/{old}"), format!("b/{name}"))
        }
    };
    let mut text = format!("--- {old}\n+++ {new}\n");
    if text.len() >= most {
        return Ok((None, true));
    }
    for hunk in 0..patch.num_hunks() {
        let (header, lines) = patch.hunk(hunk)?;
        let header = String::from_utf8_lossy(header.header());
        text += &visible(&header).map_or(header, Into::into);
        for line in 0..lines {
            let line = patch.line_in_hunk(hunk, line)?;
            if matches!(line.origin(), ' ' | '+' | '-') {
                text.push(line.origin());
            }
            let content = String::from_utf8_lossy(line.content());
            text += &visible(&content).map_or(content, Into::into);
            if text.len() > most {
                text.truncate(text.floor_char_boundary(most));
                return Ok((Some(text), true));
            }
        }
    }
    Ok((Some(text), false))
}

/// A path in the form in which it is displayed and requested. Different paths have different forms: a path with a character that would
/// be misleading is escaped as a whole, with its backslashes.
pub(crate) fn display(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains(['\\', '\n', '\t'])
        && visible(text).is_none()
    {
        return text.to_owned();
    }
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
        shown += &visible(&valid).unwrap_or(valid);
        shown.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn different_paths_are_displayed_differently() {
        let paths: [&[u8]; 12] = [
            b"a/b.txt",
            b"x\xff",
            b"x\xfe",
            b"x\\xff",
            "y\u{202e}".as_bytes(),
            b"y\\u{202e}",
            b"z\nq",
            b"z\tq",
            b"z\\nq",
            b"z q",
            b"w\\",
            b"w\\\\",
        ];
        let shown: BTreeSet<String> =
            paths.iter().map(|path| display(Path::new(OsStr::from_bytes(path)))).collect();
        assert_eq!(shown.len(), paths.len(), "{shown:?}");
        assert!(
            shown.contains("a/b.txt") && shown.contains("x\\xff") && shown.contains("z\\nq"),
            "{shown:?}"
        );
        assert!(shown.iter().all(|path| visible(path).is_none() && !path.contains(['\n', '\t'])));
    }
}
