//! Moves the state of a stopped hub between its file and a PostgreSQL database. The data directory is locked meanwhile, as a hub locks it.

use std::path::Path;

use plexus_protocol::HostName;
use plexus_store::migrate::{MigrateError, Migration, Moved, Observer, to_postgres, to_sqlite};
use plexus_store::{Capacity, Host, PostgresAddress};
use thiserror::Error;

use crate::data_dir::{DataDir, DataDirError};
use crate::identity::Identity;

/// The direction of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveTo {
    /// To the PostgreSQL database.
    Postgres,
    /// To the file of the data directory.
    Sqlite,
}

/// Why the state was not moved.
#[derive(Debug, Error)]
pub enum MoveError {
    /// The data directory is unusable, or a hub uses it.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// It was refused, or failed.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
}

/// Moves the state of the hub in a data directory. Agents that the hub has left running continue with the next hub: their files stay where they
/// are. Returns what was moved, and the name of this machine in the database.
///
/// # Errors
/// If a hub is running, or the state cannot be moved.
pub fn move_store(
    data_dir: &Path,
    address: &PostgresAddress,
    host: Option<&HostName>,
    to: MoveTo,
    observer: &mut dyn Observer,
) -> Result<(Moved, HostName), MoveError> {
    let dir = DataDir::open(data_dir)?;
    let name = dir.name_of_host(host)?;
    let machine = Identity::open(&dir)?.public().0;
    // The next hub stores what its settings say.
    let capacity = Capacity::default();
    let host = Host { name: name.clone(), machine, commit_count: dir.commit_count(), capacity };
    let migration = Migration { files: &dir.store_files(), address, host: &host };
    let moved = match to {
        MoveTo::Postgres => to_postgres(&migration, observer)?,
        MoveTo::Sqlite => to_sqlite(&migration, observer)?,
    };
    Ok((moved, name))
}
