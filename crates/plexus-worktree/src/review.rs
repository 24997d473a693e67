//! Collects what a diff must return for a later commit or merge: the digest of the shown content, the number of
//! uncommitted files, and whether the branch has content that the diff does not show.

use std::path::Path;

use crate::Result;
use crate::current::Current;
use crate::digest::Digest;
use crate::work::Work;

/// The state of a review, built file by file.
pub(crate) struct Review<'a> {
    work: &'a Work,
    digest: Option<Digest>,
    /// The number of files whose content is not committed.
    pub(crate) uncommitted: u64,
    /// Whether the branch has content that the diff does not show.
    pub(crate) unseen: bool,
}

impl<'a> Review<'a> {
    pub(crate) fn new(work: &'a Work) -> Self {
        let undone = work.undone().count() as u64;
        let digest = Some(Digest::new(work.comparison.base, work.tip));
        Self { work, digest, uncommitted: undone, unseen: undone > 0 }
    }

    /// Marks the review as incomplete: not all content was shown, so it permits neither a commit nor a merge.
    pub(crate) fn mark_incomplete(&mut self) {
        self.digest = None;
        self.unseen = true;
    }

    /// Adds a file; `None` if there was no time to read it.
    pub(crate) fn add(&mut self, path: &Path, now: Option<&Current>) -> Result<()> {
        match (now, &mut self.digest) {
            (Some(now), Some(digest)) => digest.add(path, now),
            _ => self.digest = None,
        }
        let is_committed = match now {
            // Too large for a commit, so it was not read.
            Some(Current::TooLarge(_)) | None => false,
            Some(now) => self.work.is_committed(path, now)?,
        };
        self.uncommitted += u64::from(!is_committed);
        self.unseen |= !is_committed && self.work.has_committed(path);
        Ok(())
    }

    /// The digest of all files, if all were read.
    pub(crate) fn digest(self) -> Option<String> {
        self.digest.map(Digest::finish)
    }
}
