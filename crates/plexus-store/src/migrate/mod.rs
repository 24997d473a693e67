//! Moves the state of one machine from an SQLite file to a PostgreSQL database, and back. `tables` says what is copied, `copy` copies it, and
//! `to_postgres` and `to_sqlite` are the steps of each direction.
//!
//! The target becomes visible when it is complete: a transaction of PostgreSQL, or a file that gets its name last. The source is only renamed, and
//! only after the target is durable. Between the two, a note in the data directory keeps every hub from starting, and the
//! next run finds out from the note and the database whether it has to finish or to start again. So no hub can start on the wrong store.

pub(crate) mod copy;
pub(crate) mod tables;
mod to_postgres;
mod to_sqlite;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub use to_postgres::to_postgres;
pub use to_sqlite::to_sqlite;

use crate::files::{MigrationNote, StoreFiles};
use crate::postgres::{Ending, PgMigration, PostgresAddress};
use crate::{Host, StoreError};

/// The data directory and the database of a migration. No hub may run on the data directory.
#[derive(Debug)]
pub struct Migration<'a> {
    /// The files of the data directory.
    pub files: &'a StoreFiles,
    /// The database, and a role that owns its schema, or may create it.
    pub address: &'a PostgresAddress,
    /// This machine, as a host of the database.
    pub host: &'a Host,
}

/// What a migration has moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// How many rows; `None` if an earlier run has copied them.
    pub rows: Option<u64>,
    /// Where the old state is kept: a file, or a schema of the database.
    pub old: String,
}

/// Follows a migration.
pub trait Observer {
    /// Reports that `done` of `total` rows are copied.
    fn progress(&mut self, done: u64, total: u64);

    /// The migration has reached a step. Tests return an error to simulate a crash at this step.
    ///
    /// # Errors
    /// To end the migration.
    fn reached(&mut self, _step: Step) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The steps of a migration, in order. A crash after each one leaves a different state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// All rows are copied, but the copy is not visible.
    Copied,
    /// The note is written.
    Noted,
    /// The database has committed: the target is complete.
    Committed,
    /// The file has its new name.
    Renamed,
    /// The data directory names the new store. Only the note is left.
    Named,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Copied, Self::Noted, Self::Committed, Self::Renamed, Self::Named];
}

/// Why a migration was refused, has failed, or has to be repeated.
#[derive(Debug, Error)]
pub enum MigrateError {
    /// The data directory has no state.
    #[error("{0} does not exist: there is nothing to migrate")]
    NoFile(PathBuf),
    /// The state is in a database.
    #[error("the state is already in a database ({0})")]
    InDatabase(String),
    /// The state is in a file.
    #[error("the state is already in the file {0}")]
    InFile(PathBuf),
    /// The database has a state.
    #[error(
        "the database already contains {0}: only an empty database can be the target, because approvals, rules, feed entries and \
         audit entries are numbered, and the numbers would collide. Use another database, or start this machine with an empty data directory"
    )]
    NotEmpty(String),
    /// The database does not know this machine.
    #[error(
        "the database does not know host `{0}` of this data directory: it is another database, or was restored from an old backup"
    )]
    UnknownHost(String),
    /// The host was declared lost, and its hub has not ended its agents yet.
    #[error(
        "host `{0}` was declared lost: start its hub with this database, which stops the agents that still run, then stop it and try again"
    )]
    LostHost(String),
    /// The database has lost commits that the host had made or seen.
    #[error(
        "the database has lost commits that host `{0}` had made or seen: start its hub with this database, run `plexus host accept-rollback`, start the \
         hub again, then stop it and try again"
    )]
    LostCommits(String),
    /// Other hosts use the database.
    #[error(
        "the database is shared with other hosts ({0}), whose state cannot move to this machine: delete their sessions and remove them with \
         `plexus host rm`"
    )]
    OtherHosts(String),
    /// The role cannot change the schema.
    #[error("role `{0}` does not own the tables of the database: a migration needs the role that does")]
    NotOwner(String),
    /// Another migration was interrupted.
    #[error(
        "a migration {0} was interrupted: run it again to finish it. If that database does not exist any more, {1}"
    )]
    Other(String, String),
    /// The outcome is unknown.
    #[error(
        "the connection was lost before the database confirmed the last step ({0}): run the same command again. It finds out whether the \
         migration is complete, and finishes it"
    )]
    Unknown(StoreError),
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn at(path: PathBuf) -> impl FnOnce(io::Error) -> MigrateError {
    move |source| MigrateError::File { path, source }
}

impl MigrationNote {
    /// The migration, in words.
    pub fn direction(&self) -> String {
        match self {
            Self::Postgres { database, .. } => format!("to {database}"),
            Self::Sqlite { database, .. } => format!("from {database} to a file"),
        }
    }
}

impl Migration<'_> {
    /// The database, without its password.
    fn database(&self) -> String {
        self.address.without_password()
    }

    fn note(&self) -> Result<Option<MigrationNote>, MigrateError> {
        self.files.unfinished().map_err(at(self.files.note()))
    }

    fn write_note(&self, note: &MigrationNote) -> Result<(), MigrateError> {
        self.files.write_note(note).map_err(at(self.files.note()))
    }

    fn remove_note(&self) -> Result<(), MigrateError> {
        self.files.remove_note().map_err(at(self.files.note()))
    }

    /// Commits the transaction whose note is written. If it was not committed, nothing has moved, and the note is removed.
    fn commit(&self, postgres: &PgMigration) -> Result<(), MigrateError> {
        match postgres.commit() {
            Ending::Committed => Ok(()),
            Ending::NotCommitted(error) => {
                self.remove_note()?;
                Err(error.into())
            }
            Ending::Unknown(error) => Err(MigrateError::Unknown(error)),
        }
    }

    /// The error for an interrupted migration that this one cannot finish.
    fn other(&self, note: &MigrationNote) -> MigrateError {
        let note_file = self.files.note();
        let (sqlite, note_file) = (self.files.sqlite(), note_file.display());
        let sqlite = sqlite.display();
        let repair = match note {
            MigrationNote::Postgres { old, .. } => {
                format!("rename `{old}` back to {sqlite} if that file is missing, then delete {note_file}")
            }
            MigrationNote::Sqlite { .. } => format!(
                "rename {} to {sqlite} if that file is missing, then delete {note_file} and {}",
                self.files.draft().display(),
                self.files.host().display()
            ),
        };
        MigrateError::Other(note.direction(), repair)
    }
}
