//! The digest of a review: a hash of everything that a diff shows, computed from the same bytes. A commit recomputes it
//! from the bytes that it stores, so it commits exactly what was shown, or nothing.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::Oid;
use sha2::{Digest as _, Sha256};

use crate::current::Current;

/// Collects the contents of a review, in any order.
pub(crate) struct Digest {
    start: Sha256,
    files: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Digest {
    pub(crate) fn new(base: Oid, tip: Option<Oid>) -> Self {
        let mut start = Sha256::new();
        start.update(b"plexus review 1\0");
        start.update(base.as_bytes());
        start.update(tip.map_or(vec![0], |tip| tip.as_bytes().to_vec()));
        Self { start, files: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, path: &Path, now: &Current) {
        self.files.insert(path.as_os_str().as_bytes().to_vec(), Self::of_file(now));
    }

    /// The hash of one file.
    pub(crate) fn of_file(now: &Current) -> Vec<u8> {
        let (mode, content) = match now {
            Current::Missing => (0, &[][..]),
            Current::File { mode, content } => (*mode, &content[..]),
            // Neither can be committed, so their contents do not matter.
            Current::TooLarge(_) => (1, &[][..]),
            Current::Other => (2, &[][..]),
        };
        Sha256::new().chain_update(mode.to_le_bytes()).chain_update(content).finalize().to_vec()
    }

    pub(crate) fn finish(self) -> String {
        let mut hash = self.start;
        for (path, file) in self.files {
            hash.update((path.len() as u64).to_le_bytes());
            hash.update(path);
            hash.update(file);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_file_changes_the_digest() {
        let base = Oid::ZERO_SHA1;
        let of = |files: &[(&str, Current)]| {
            let mut digest = Digest::new(base, None);
            for (path, now) in files {
                digest.add(Path::new(path), now);
            }
            digest.finish()
        };
        let file = |mode, content: &str| Current::File { mode, content: content.into() };
        let all = [
            of(&[]),
            of(&[("a", file(0o100_644, "x"))]),
            of(&[("a", file(0o100_755, "x"))]),
            of(&[("a", file(0o100_644, "y"))]),
            of(&[("b", file(0o100_644, "x"))]),
            of(&[("a", Current::Missing)]),
            of(&[("a", Current::Other)]),
            of(&[("a", file(0o100_644, "")), ("b", file(0o100_644, ""))]),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
