//! Returns the conflicts of a merge as data: the files, and their text with conflict markers, within limits.

use std::path::Path;

use git2::{Index, IndexEntry, MergeFileOptions, Repository};
use plexus_protocol::claudecode::{ConflictFile, ConflictSides};
use plexus_protocol::visible;

use crate::Result;
use crate::diff::display;
use crate::lines::MAX_FILE_BYTES;

/// The maximum number of files.
const MAX_FILES: usize = 100;
/// The maximum text of one file, in bytes.
const MAX_TEXT_BYTES: usize = 128 * 1024;
/// The maximum text of all files together, in bytes.
const MAX_TOTAL_BYTES: usize = 1024 * 1024;

/// The files that conflict, and whether there are more.
pub(crate) fn conflicts(
    repo: &Repository,
    index: &Index,
    ours: &str,
    theirs: &str,
) -> Result<(Vec<ConflictFile>, bool)> {
    let mut files = Vec::new();
    let mut left = MAX_TOTAL_BYTES;
    let mut conflicts = index.conflicts()?;
    for conflict in conflicts.by_ref().take(MAX_FILES) {
        let conflict = conflict?;
        let sides = [&conflict.ancestor, &conflict.our, &conflict.their];
        let Some(path) = sides.iter().find_map(|side| side.as_ref().map(|side| side.path.clone())) else {
            continue;
        };
        let (text, truncated) = match marked(repo, sides, ours, theirs)? {
            None => (None, false),
            Some(mut text) => {
                let most = MAX_TEXT_BYTES.min(left);
                let truncated = text.len() > most;
                text.truncate(text.floor_char_boundary(most));
                left -= text.len();
                (Some(text), truncated)
            }
        };
        files.push(ConflictFile {
            path: display(Path::new(&*String::from_utf8_lossy(&path))),
            sides: ConflictSides {
                base: conflict.ancestor.is_some(),
                ours: conflict.our.is_some(),
                theirs: conflict.their.is_some(),
            },
            text,
            truncated,
        });
    }
    let more = conflicts.next().is_some();
    Ok((files, more))
}

/// The text with conflict markers; `None` if a side is missing, too large or not text.
fn marked(
    repo: &Repository,
    [base, ours, theirs]: [&Option<IndexEntry>; 3],
    our_name: &str,
    their_name: &str,
) -> Result<Option<String>> {
    let (Some(our), Some(their)) = (ours, theirs) else { return Ok(None) };
    let odb = repo.odb()?;
    for side in [base, ours, theirs].into_iter().flatten() {
        let is_file = side.mode & 0o170_000 == 0o100_000;
        if !is_file || odb.read_header(side.id)?.0 as u64 > MAX_FILE_BYTES {
            return Ok(None);
        }
    }
    let content = |side: &IndexEntry| Ok::<_, git2::Error>(repo.find_blob(side.id)?.content().to_vec());
    let contents =
        [base.as_ref().map(content).transpose()?.unwrap_or_default(), content(our)?, content(their)?];
    if contents.iter().any(|content| content.contains(&0)) {
        return Ok(None);
    }
    let [base, our, their] = contents;
    let mut inputs = [(); 3].map(|()| git2::MergeFileInput::new());
    for (input, content) in inputs.iter_mut().zip([&base, &our, &their]) {
        input.content(content);
    }
    let mut options = MergeFileOptions::new();
    options.style_diff3(true).ancestor_label("base").our_label(our_name).their_label(their_name);
    // The contents have no names, so no attribute applies.
    let merged = git2::merge_file(&inputs[0], &inputs[1], &inputs[2], Some(&mut options))?;
    let text = String::from_utf8_lossy(merged.content()).into_owned();
    Ok(Some(visible(&text).unwrap_or(text)))
}
