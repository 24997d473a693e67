//! The old and new content of a file, up to a limit, and its added and deleted lines. The contents are passed to libgit2
//! without a name: with a name, libgit2 would apply attributes and diff drivers that
//! a child configured for it.

use git2::{DiffOptions, Oid, Patch, Repository};

use crate::Result;
use crate::comparison::{Comparison, Difference};
use crate::current::Current;

/// The largest file whose lines are counted. Larger files are treated like binary files.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The number of bytes to search for a zero byte, which marks a binary file. Git uses the same number.
const BINARY_CHECK_BYTES: usize = 8000;

/// The line counts of one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) new: u64,
    pub(crate) gone: u64,
}

/// The old and new content of a file.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) old: Vec<u8>,
    pub(crate) new: Vec<u8>,
}

impl Contents {
    /// An object of the base and the present content; `None` if one is too large, or the path is not a file.
    pub(crate) fn of(comparison: &Comparison, old: Option<Oid>, now: Current) -> Result<Option<Self>> {
        let old = match old {
            None => Vec::new(),
            Some(id) => match Self::stored(&comparison.repo, id)? {
                Some(old) => old,
                None => return Ok(None),
            },
        };
        let new = match now {
            Current::Missing => Vec::new(),
            Current::File { content, .. } if content.len() as u64 <= MAX_FILE_BYTES => content,
            Current::File { .. } | Current::TooLarge(_) | Current::Other => return Ok(None),
        };
        Ok(Some(Self { old, new }))
    }

    /// The content of an object; `None` if it is too large.
    pub(crate) fn stored(repo: &Repository, id: Oid) -> Result<Option<Vec<u8>>> {
        match repo.odb()?.read_header(id)? {
            (size, _) if size as u64 > MAX_FILE_BYTES => Ok(None),
            _ => Ok(Some(repo.find_blob(id)?.content().to_vec())),
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        let is_text = |content: &[u8]| !content[..content.len().min(BINARY_CHECK_BYTES)].contains(&0);
        is_text(&self.old) && is_text(&self.new)
    }

    fn lines(&self) -> Result<Lines> {
        let Self { old, new } = self;
        if !self.is_text() {
            return Ok(Lines::default());
        }
        if old.is_empty() || new.is_empty() {
            return Ok(Lines { new: all(new), gone: all(old) });
        }
        let patch = Patch::from_buffers(old, None, new, None, Some(DiffOptions::new().context_lines(0)))?;
        let (_, new, gone) = patch.line_stats()?;
        Ok(Lines { new: new as u64, gone: gone as u64 })
    }
}

/// Counts the lines of one difference.
pub(crate) fn count(comparison: &Comparison, difference: &Difference, now: Current) -> Result<Lines> {
    Contents::of(comparison, difference.old, now)?
        .map_or_else(|| Ok(Lines::default()), |contents| contents.lines())
}

fn all(content: &[u8]) -> u64 {
    let ended = content.iter().filter(|&&byte| byte == b'\n').count() as u64;
    ended + u64::from(content.last().is_some_and(|&byte| byte != b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_git_counts_them() {
        for (old, new, counted) in [
            ("", "a\nb\n", (2, 0)),
            ("", "a\nb", (2, 0)),
            ("a\nb\nc\n", "", (0, 3)),
            ("a\nb\nc\n", "a\nB\nc\nd\n", (2, 1)),
            ("a\n", "a\n", (0, 0)),
            ("a\0b\n", "c\n", (0, 0)),
            ("", "\0\n\n", (0, 0)),
        ] {
            let contents = Contents { old: old.into(), new: new.into() };
            let lines = contents.lines().unwrap();
            assert_eq!((lines.new, lines.gone), counted, "{old:?} {new:?}");
        }
    }
}
