//! How many transactions a host has committed, and the number of the last transaction of any host that it has seen, in a file of its data directory. If
//! the database has counted fewer, it has lost commits: it was restored from a backup, or a standby without them took over. The file is not synced, so
//! after a crash of the machine it may have older numbers. The operator can accept that commits were lost; then the file says so until the next hub starts.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::StoreError;

/// The content of a file whose operator has accepted that commits were lost.
const ACCEPTED: &str = "accepted";
/// The content of a file whose hub has noticed that the database has lost commits. The next commits would hide it.
const LOST: &str = "lost";
/// The length of each content, with spaces at its end.
const WIDTH: usize = 41;

/// The file.
#[derive(Debug)]
pub(super) struct CommitCount {
    file: File,
}

/// The numbers in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// How many transactions the host has committed.
    pub(super) own: u64,
    /// The number of the last transaction of any host that was seen.
    pub(super) seen: u64,
}

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// At least these transactions were committed.
    AtLeast(Counts),
    /// The database has lost commits.
    Lost,
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
            "" => Counted::AtLeast(Counts::default()),
            ACCEPTED => Counted::Anything,
            LOST => Counted::Lost,
            text => Counted::AtLeast(parse(text).ok_or_else(|| {
                StoreError::Unusable(format!("{} does not contain the numbers of commits", path.display()))
            })?),
        };
        Ok((Self { file }, counted))
    }

    /// Notes that the operator accepts whatever the database has.
    pub(super) fn accept_anything(&self) -> io::Result<()> {
        self.replace(ACCEPTED)
    }

    /// Notes that the database has lost commits, until the operator accepts it.
    pub(super) fn set_lost(&self) {
        if let Err(error) = self.replace(LOST) {
            tracing::warn!(%error, "cannot store that the database has lost commits; it may not be noticed after a restart");
        }
    }

    fn replace(&self, content: &str) -> io::Result<()> {
        self.write(content)?;
        self.file.sync_all()
    }

    /// Overwrites all of the old content at once: a hub that is killed leaves the one or the other.
    fn write(&self, content: &str) -> io::Result<()> {
        self.file.write_all_at(format!("{content:<WIDTH$}\n").as_bytes(), 0)
    }

    /// Stores the numbers.
    pub(super) fn set(&self, Counts { own, seen }: Counts) {
        if let Err(error) = self.write(&format!("{own:020} {seen:020}")) {
            tracing::warn!(%error, "cannot store the number of commits; lost commits may not be noticed after a restart");
        }
    }
}

fn parse(text: &str) -> Option<Counts> {
    let (own, seen) = text.split_once(' ').unwrap_or((text, "0"));
    Some(Counts { own: own.parse().ok()?, seen: seen.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_kept() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("commits");
        let (count, before) = CommitCount::open(&path).unwrap();
        let numbers = |own, seen| Counts { own, seen };
        assert_eq!(before, Counted::AtLeast(numbers(0, 0)));
        count.set(numbers(12, 40));
        count.set(numbers(7, 41));
        assert_eq!(CommitCount::open(&path).unwrap().1, Counted::AtLeast(numbers(7, 41)));
        count.accept_anything().unwrap();
        assert_eq!(CommitCount::open(&path).unwrap().1, Counted::Anything);
        count.set_lost();
        assert_eq!(CommitCount::open(&path).unwrap().1, Counted::Lost);
        count.set(numbers(3, 4));
        assert_eq!(CommitCount::open(&path).unwrap().1, Counted::AtLeast(numbers(3, 4)));
        for unreadable in ["many", "1 many", "1 2 3"] {
            std::fs::write(&path, unreadable).unwrap();
            assert!(CommitCount::open(&path).is_err(), "{unreadable}");
        }
    }
}
