//! How many transactions a host has committed, in a file of its data directory. If the database has counted fewer, it has lost commits: it was
//! restored from a backup, or a standby without them took over. The file is not synced, so after a crash of the machine it may have an older number.
//! The operator can accept that commits were lost; then the file says so until the next hub starts.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::StoreError;

/// The content of a file whose operator has accepted that commits were lost.
const ACCEPTED: &str = "accepted";

/// The file.
#[derive(Debug)]
pub(super) struct CommitCount {
    file: File,
}

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// At least this many transactions were committed.
    AtLeast(u64),
    /// Whatever the database has is accepted.
    Anything,
}

impl CommitCount {
    /// Opens the file; creates it if it is missing.
    pub(super) fn open(path: &Path) -> Result<(Self, Counted), StoreError> {
        let opened = || -> io::Result<(File, String)> {
            let mut options = OpenOptions::new();
            let mut file =
                options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            Ok((file, text))
        };
        let (file, text) = opened()
            .map_err(|error| StoreError::Unusable(format!("cannot use {}: {error}", path.display())))?;
        // An empty file was just created. One that cannot be read must not hide that commits were lost.
        let counted = match text.trim() {
            "" => Counted::AtLeast(0),
            ACCEPTED => Counted::Anything,
            text => Counted::AtLeast(text.parse().map_err(|_| {
                StoreError::Unusable(format!("{} does not contain a number of commits", path.display()))
            })?),
        };
        Ok((Self { file }, counted))
    }

    /// Notes that the operator accepts whatever the database has.
    pub(super) fn accept_anything(&self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all_at(ACCEPTED.as_bytes(), 0)?;
        self.file.sync_all()
    }

    /// Stores a number.
    pub(super) fn set(&self, count: u64) {
        // As long as any other content, which it replaces.
        if let Err(error) = self.file.write_all_at(format!("{count:020}\n").as_bytes(), 0) {
            tracing::warn!(%error, "cannot store the number of commits; lost commits may not be noticed after a restart");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_kept() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("commits");
        let (count, before) = CommitCount::open(&path).unwrap();
        assert_eq!(before, Counted::AtLeast(0));
        count.set(12);
        count.set(7);
        assert_eq!(CommitCount::open(&path).unwrap().1, Counted::AtLeast(7));
        count.accept_anything().unwrap();
        assert_eq!(CommitCount::open(&path).unwrap().1, Counted::Anything);
        count.set(3);
        assert_eq!(CommitCount::open(&path).unwrap().1, Counted::AtLeast(3));
        std::fs::write(&path, "many").unwrap();
        assert!(CommitCount::open(&path).is_err());
    }
}
