//! The files of a data directory that say where the state of its hub is: in an SQLite file, or in a PostgreSQL database, where this machine is a
//! host. An unfinished migration between the two leaves a note, and no hub starts until the migration is repeated.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use plexus_protocol::HostName;
use serde::{Deserialize, Serialize};

/// The SQLite file.
const SQLITE: &str = "plexus.db";
/// An SQLite file that a migration has not finished.
const DRAFT: &str = "plexus.db.new";
/// Contains the name of this machine among the hosts of the database, and the address of the database without its password.
const HOST: &str = "host";
/// Contains how many transactions this host has committed.
const COMMITS: &str = "commits";
/// Contains the note of a migration.
const NOTE: &str = "migration";
/// The files that SQLite has for one database, by the ends of their names.
const SQLITE_FILES: [&str; 3] = ["-wal", "-shm", ""];

/// The files of a data directory that say where the state is.
#[derive(Debug, Clone)]
pub struct StoreFiles {
    dir: PathBuf,
}

/// The database that contains the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// The name of this machine among the hosts of the database.
    pub host: String,
    /// The address of the database without its password, if it is known.
    pub database: Option<String>,
}

/// What an unfinished migration has noted. The hub must not start: each of the two stores may be the one that is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "snake_case")]
pub enum MigrationNote {
    /// The state was copied from the file to the database. If the database has the transaction, the copy is complete.
    Postgres {
        /// The address of the database, without its password.
        database: String,
        /// The name of this machine among the hosts of the database.
        host: HostName,
        /// The last transaction of the host, if the copy is complete.
        transaction: String,
        /// The name that the file gets.
        old: String,
    },
    /// The state was copied from the database to a new file, which is complete. If the database has the schema, it was given up.
    Sqlite {
        /// The address of the database, without its password.
        database: String,
        /// The name that the schema with the old state gets.
        schema: String,
    },
}

impl StoreFiles {
    /// The files in this data directory.
    pub fn of(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The SQLite file.
    pub fn sqlite(&self) -> PathBuf {
        self.dir.join(SQLITE)
    }

    /// The file in which a hub counts its commits, if the state is in a database.
    pub fn commit_count(&self) -> PathBuf {
        self.dir.join(COMMITS)
    }

    /// The file that names the database.
    pub fn host(&self) -> PathBuf {
        self.dir.join(HOST)
    }

    /// The file with the note of a migration.
    pub fn note(&self) -> PathBuf {
        self.dir.join(NOTE)
    }

    /// The SQLite file that a migration creates.
    pub(crate) fn draft(&self) -> PathBuf {
        self.dir.join(DRAFT)
    }

    /// The database that contains the state, if it is in one.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn joined(&self) -> io::Result<Option<Joined>> {
        let Some(text) = self.read(HOST)? else { return Ok(None) };
        let mut lines = text.lines().map(|line| line.trim().to_owned());
        Ok(Some(Joined { host: lines.next().unwrap_or_default(), database: lines.next() }))
    }

    /// Notes that the state is in this database.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_joined(&self, host: &HostName, database: &str) -> io::Result<()> {
        self.replace(HOST, &format!("{host}\n{database}\n"))
    }

    /// What an unfinished migration has noted.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn unfinished(&self) -> io::Result<Option<MigrationNote>> {
        let Some(text) = self.read(NOTE)? else { return Ok(None) };
        Ok(Some(serde_json::from_str(&text)?))
    }

    pub(crate) fn write_note(&self, note: &MigrationNote) -> io::Result<()> {
        self.replace(NOTE, &serde_json::to_string(note)?)
    }

    pub(crate) fn remove_note(&self) -> io::Result<()> {
        remove(&self.note())?;
        self.sync()
    }

    /// Notes that the state is in no database any more.
    pub(crate) fn leave_database(&self) -> io::Result<()> {
        remove(&self.commit_count())?;
        remove(&self.host())?;
        self.sync()
    }

    /// A name for the SQLite file that no file has.
    pub(crate) fn name_for_old(&self) -> String {
        let mut names = (1_u64..).map(|number| match number {
            1 => format!("{SQLITE}.moved"),
            _ => format!("{SQLITE}.moved-{number}"),
        });
        // There are fewer files than numbers.
        names.find(|name| !self.dir.join(name).exists()).unwrap_or_default()
    }

    /// Renames the SQLite file, and the files of SQLite beside it. Does nothing if that was done.
    pub(crate) fn rename_sqlite(&self, old: &str) -> io::Result<()> {
        for end in SQLITE_FILES {
            rename(&self.dir.join(format!("{SQLITE}{end}")), &self.dir.join(format!("{old}{end}")))?;
        }
        self.sync()
    }

    /// Makes the draft the SQLite file. Does nothing if that was done.
    pub(crate) fn accept_draft(&self) -> io::Result<()> {
        rename(&self.draft(), &self.sqlite())?;
        self.sync()
    }

    /// Removes what an earlier migration has left.
    pub(crate) fn remove_draft(&self) -> io::Result<()> {
        SQLITE_FILES.into_iter().try_for_each(|end| remove(&self.dir.join(format!("{DRAFT}{end}"))))
    }

    fn read(&self, name: &str) -> io::Result<Option<String>> {
        match std::fs::read_to_string(self.dir.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a file, durably.
    fn replace(&self, name: &str, content: &str) -> io::Result<()> {
        replace_file(&self.dir, name, content.as_bytes())?;
        self.sync()
    }

    /// Makes new, renamed and removed files durable.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }
}

/// Replaces a private file of a directory. A reader, or a crash, finds either the old content or the new one.
///
/// # Errors
/// If it cannot be written.
pub fn replace_file(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let draft = dir.join(format!(".{name}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&draft, dir.join(name))
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    ignore_missing(std::fs::rename(from, to))
}

fn remove(path: &Path) -> io::Result<()> {
    ignore_missing(std::fs::remove_file(path))
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_remembered_and_forgotten() {
        let dir = tempfile::TempDir::new().unwrap();
        let files = StoreFiles::of(dir.path());
        assert_eq!(files.joined().unwrap(), None);
        std::fs::write(files.host(), "one\n").unwrap();
        assert_eq!(files.joined().unwrap(), Some(Joined { host: "one".to_owned(), database: None }));
        files.set_joined(&HostName::try_from("one".to_owned()).unwrap(), "postgres://u@db/p").unwrap();
        assert_eq!(files.joined().unwrap().unwrap().database.as_deref(), Some("postgres://u@db/p"));
        files.leave_database().unwrap();
        assert_eq!(files.joined().unwrap(), None);
    }

    #[test]
    fn an_old_file_is_never_replaced() {
        let dir = tempfile::TempDir::new().unwrap();
        let files = StoreFiles::of(dir.path());
        for (content, name) in
            [("1", "plexus.db.moved"), ("2", "plexus.db.moved-2"), ("3", "plexus.db.moved-3")]
        {
            std::fs::write(files.sqlite(), content).unwrap();
            let old = files.name_for_old();
            assert_eq!(old, name);
            files.rename_sqlite(&old).unwrap();
            files.rename_sqlite(&old).unwrap();
            assert_eq!(std::fs::read_to_string(dir.path().join(old)).unwrap(), content);
        }
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let dir = tempfile::TempDir::new().unwrap();
        let files = StoreFiles::of(dir.path());
        let note = MigrationNote::Sqlite { database: "d".to_owned(), schema: "s".to_owned() };
        files.write_note(&note).unwrap();
        assert_eq!(files.unfinished().unwrap(), Some(note));
        files.remove_note().unwrap();
        assert_eq!(files.unfinished().unwrap(), None);
        std::fs::write(files.note(), "?").unwrap();
        assert!(files.unfinished().is_err());
    }
}
