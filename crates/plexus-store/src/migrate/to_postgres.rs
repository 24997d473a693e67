//! From the file to the database. The transaction that copies all rows also adds the host, with the id of a last transaction. That id is in the note, so
//! a later run can tell whether the transaction was committed.

use std::ops::ControlFlow;
use std::path::Path;

use super::copy::{Progress, check_count, check_schemas, copy_tables};
use super::tables::{AUDIT_HOST, HOST, INDEXED, SEARCH_INDEX};
use super::{MigrateError, Migration, MigrationNote, Moved, Observer, Step, at};
use crate::postgres::PgMigration;
use crate::rows::Stored;
use crate::sql::columns::Column;
use crate::sql::{ColumnRef, Columns, Database, Row, each_searchable};
use crate::sqlite;

/// Moves the state of a data directory from its SQLite file to a PostgreSQL database, which must be empty. Afterwards this machine is a host of the
/// database. If an earlier run was interrupted, finishes it.
///
/// # Errors
/// If it is refused, or failed. The state is then where it was, or the next run finishes the migration.
pub fn to_postgres(migration: &Migration<'_>, observer: &mut dyn Observer) -> Result<Moved, MigrateError> {
    let files = migration.files;
    match migration.note()? {
        None => {}
        Some(note @ MigrationNote::Postgres { .. }) => {
            if let Some(moved) = finish_earlier(migration, &note, observer)? {
                return Ok(moved);
            }
        }
        Some(note @ MigrationNote::Sqlite { .. }) => return Err(migration.other(&note)),
    }
    if let Some(joined) = files.joined().map_err(at(files.host()))? {
        return Err(MigrateError::InDatabase(joined.database.unwrap_or(joined.host)));
    }
    let file = files.sqlite();
    if !file.exists() {
        return Err(MigrateError::NoFile(file));
    }
    let rows = copy(migration, &file, observer)?;
    observer.reached(Step::Committed)?;
    let note = migration.note()?.ok_or_else(|| MigrateError::NoFile(files.note()))?;
    Ok(Moved { rows: Some(rows), ..finish(migration, &note, observer)? })
}

/// Finishes a migration that was interrupted after its transaction was committed. If it was not committed, forgets it.
fn finish_earlier(
    migration: &Migration<'_>,
    note: &MigrationNote,
    observer: &mut dyn Observer,
) -> Result<Option<Moved>, MigrateError> {
    let MigrationNote::Postgres { database, host, transaction, .. } = note else { return Ok(None) };
    if *database != migration.database() {
        return Err(migration.other(note));
    }
    let postgres = PgMigration::connect(migration.address)?;
    if postgres.last_transaction(host)?.as_ref() == Some(transaction) {
        return finish(migration, note, observer).map(Some);
    }
    migration.remove_note()?;
    Ok(None)
}

/// Copies the rows, writes the note, and commits. Returns how many rows there are.
fn copy(migration: &Migration<'_>, file: &Path, observer: &mut dyn Observer) -> Result<u64, MigrateError> {
    let sqlite = sqlite::open_source(file)?;
    let postgres = PgMigration::connect(migration.address)?;
    check_schemas(&sqlite, postgres.tables())?;
    postgres.begin()?;
    postgres.check_owner()?;
    postgres.check_empty()?;
    let transaction = postgres.add_host(migration.host)?;
    postgres.disable_triggers()?;
    let mut progress = Progress::new(observer, &sqlite)?;
    let replaced = [
        (&HOST, format!("'{}'", migration.host.name.as_str().replace('\'', "''"))),
        (&INDEXED, "1".to_owned()),
        (&AUDIT_HOST, "NULL".to_owned()),
    ];
    let rows = copy_tables(&sqlite, postgres.tables(), &replaced, &mut progress)?;
    index(&sqlite, &postgres, &mut progress)?;
    postgres.enable_triggers()?;
    postgres.finish_copy()?;
    observer.reached(Step::Copied)?;

    let (database, host) = (migration.database(), migration.host.name.clone());
    let old = migration.files.name_for_old();
    migration.write_note(&MigrationNote::Postgres { database, host, transaction, old })?;
    observer.reached(Step::Noted)?;
    migration.commit(&postgres)?;
    Ok(rows)
}

/// Adds all nodes to the search index.
fn index(sqlite: &rusqlite::Connection, postgres: &PgMigration, progress: &mut Progress<'_>) -> Stored<()> {
    let columns = ["rowid".to_owned(), "text".to_owned()];
    let mut sent = 0;
    let stored = postgres.tables().fill(SEARCH_INDEX, &columns, &mut |add| {
        let database: &dyn Database = sqlite;
        each_searchable(database, &mut |ordinal, text| {
            let text = postgres.indexed_text(text);
            add(&Row(&IndexRow { ordinal, text }))?;
            sent += 1;
            progress.add(1);
            Ok(ControlFlow::Continue(()))
        })
    })?;
    check_count(SEARCH_INDEX, sent, stored)
}

/// A row of the search index.
struct IndexRow {
    ordinal: i64,
    text: String,
}

impl Columns for IndexRow {
    fn column(&self, column: ColumnRef<'_>) -> Stored<Column<'_>> {
        Ok(match column {
            ColumnRef::Index(0) => Column::Int(self.ordinal),
            _ => Column::Text(self.text.as_str().into()),
        })
    }
}

/// Makes the database the store of the data directory.
fn finish(
    migration: &Migration<'_>,
    note: &MigrationNote,
    observer: &mut dyn Observer,
) -> Result<Moved, MigrateError> {
    let MigrationNote::Postgres { database, host, old, .. } = note else { return Err(migration.other(note)) };
    let files = migration.files;
    files.rename_sqlite(old).map_err(at(files.sqlite()))?;
    observer.reached(Step::Renamed)?;
    PgMigration::note_commit(&files.commit_count())?;
    files.set_joined(host, database).map_err(at(files.host()))?;
    observer.reached(Step::Named)?;
    migration.remove_note()?;
    Ok(Moved { rows: None, old: files.sqlite().with_file_name(old).display().to_string() })
}
