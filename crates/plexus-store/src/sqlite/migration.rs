//! An SQLite file as the source or the target of a migration.

use std::fs::File;
use std::path::Path;

use rusqlite::Connection;

use super::{Durability, connection};
use crate::StoreError;
use crate::rows::Stored;
use crate::sql::{Coverage, Database, INDEX_BATCH, add_batch};

/// Opens a file to read all of it, and migrates it if an older version has written it. No other program can write to it until the connection is closed.
pub(crate) fn open_source(path: &Path) -> Stored<Connection> {
    connection::prepare(path)?;
    let source = connection::writer(path, Durability::Full)?;
    checkpoint(&source).map_err(|error| error.in_file(path))?;
    source.execute_batch("BEGIN IMMEDIATE").map_err(|error| StoreError::from(error).in_file(path))?;
    Ok(source)
}

/// Creates an empty store in a new file.
pub(crate) fn create_target(path: &Path) -> Stored<Connection> {
    connection::prepare(path)?;
    // It is synced when it is complete.
    connection::writer(path, Durability::Normal)
}

/// Adds all nodes to the search index. Reports how many it has added.
pub(crate) fn index_all(target: &Connection, added: &mut dyn FnMut(u64)) -> Stored<()> {
    let database: &dyn Database = target;
    let mut left: u64 = database.value("SELECT count(*) FROM nodes", ())?;
    while add_batch(database)? != Coverage::All {
        let batch = (INDEX_BATCH as u64).min(left);
        added(batch);
        left -= batch;
    }
    added(left);
    Ok(())
}

/// Closes a file that is complete, and makes it durable.
pub(crate) fn close_target(target: Connection, path: &Path) -> Stored<()> {
    checkpoint(&target)?;
    target.close().map_err(|(_, error)| StoreError::from(error))?;
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| StoreError::Unavailable(format!("cannot sync {}: {error}", path.display())))
}

/// Writes everything in the write-ahead log to the file, so that the file is complete without it.
fn checkpoint(connection: &Connection) -> Stored<()> {
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    match is_busy {
        false => Ok(()),
        true => Err(StoreError::Unusable("is in use by another program: close it first".to_owned())),
    }
}
