//! SQLite: the store in one file. `connection`, `examine` and `schema` open, check and migrate the file, `database` executes statements.

mod audit_file;
mod bulk;
mod connection;
mod database;
mod examine;
#[cfg(debug_assertions)]
pub mod faulty_disk;
mod migration;
mod schema;
#[cfg(debug_assertions)]
pub mod work_count;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;

pub use audit_file::AuditFile;
pub use connection::Durability;
#[cfg(test)]
pub(crate) use database::DIALECT;
pub(crate) use migration::{close_target, create_target, index_all, open_source};

use crate::StoreError;
use crate::sql::{Connection, Source, SqlStore};

impl SqlStore {
    /// Opens an SQLite file, or creates it (mode 0600) if it does not exist or is empty.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if the file belongs to another program, is damaged, was written by a newer Plexus or cannot be
    /// opened; it is not changed. [`StoreError::Unavailable`] if a retry may succeed.
    pub fn sqlite(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        Self::start(Arc::new(SqliteFile::prepare(path, durability)?))
    }
}

/// A prepared file.
pub(crate) struct SqliteFile {
    path: PathBuf,
    durability: Durability,
}

impl SqliteFile {
    /// Creates the file if it does not exist, and refuses any other than an intact Plexus database.
    pub(crate) fn prepare(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        #[cfg(debug_assertions)]
        faulty_disk::install_from_environment();
        connection::prepare(path)?;
        Ok(Self { path: path.to_owned(), durability })
    }
}

impl Source for SqliteFile {
    fn writer(&self) -> Result<Connection, StoreError> {
        Ok(Box::new(connection::writer(&self.path, self.durability)?))
    }

    fn reader(&self) -> Result<Connection, StoreError> {
        Ok(Box::new(connection::reader(&self.path)?))
    }

    fn was_committed(&self, _transaction: &str) -> Result<bool, StoreError> {
        // COMMIT of a file always has an answer.
        Ok(false)
    }

    fn named(&self, error: StoreError) -> StoreError {
        error.in_file(&self.path)
    }
}

impl StoreError {
    /// Adds the name of the file to `Unusable`.
    fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Unusable(why) => Self::Unusable(format!("{}: {why}", path.display())),
            other => other,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::IntegralValueOutOfRange(..) => {
                Self::Unusable(format!("the database contains a row that cannot be read: {error}"))
            }
            _ => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Unusable(format!(
                    "the database is damaged ({error}): {}",
                    connection::INSTEAD_OF_DAMAGED
                )),
                _ => Self::Unavailable(error.to_string()),
            },
        }
    }
}
