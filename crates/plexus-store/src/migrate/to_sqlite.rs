//! From the database to a file. The file is complete and synced before the transaction that renames the schema of the database is committed. The new name of
//! the schema is in the note, so a later run can tell whether the transaction was committed.

use super::copy::{Progress, check_schemas, copy_tables};
use super::tables::HOST;
use super::{MigrateError, Migration, MigrationNote, Moved, Observer, Step, at};
use crate::postgres::PgMigration;
use crate::sqlite;

/// Moves the state of a host from its PostgreSQL database to the SQLite file of its data directory. The database must have no other host. If an earlier
/// run was interrupted, finishes it.
///
/// # Errors
/// If it is refused, or failed. The state is then where it was, or the next run finishes the migration.
pub fn to_sqlite(migration: &Migration<'_>, observer: &mut dyn Observer) -> Result<Moved, MigrateError> {
    let files = migration.files;
    match migration.note()? {
        None => {}
        Some(note @ MigrationNote::Sqlite { .. }) => {
            if let Some(moved) = finish_earlier(migration, &note, observer)? {
                return Ok(moved);
            }
        }
        Some(note @ MigrationNote::Postgres { .. }) => return Err(migration.other(&note)),
    }
    let file = files.sqlite();
    if file.exists() {
        return Err(MigrateError::InFile(file));
    }
    let rows = copy(migration, observer).or_else(|error| {
        // Without a note, nobody needs the draft.
        if migration.note()?.is_none() {
            files.remove_draft().map_err(at(files.draft()))?;
        }
        Err(error)
    })?;
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
    let MigrationNote::Sqlite { database, schema } = note else { return Ok(None) };
    if *database != migration.database() {
        return Err(migration.other(note));
    }
    // The file gets its name after the commit.
    let is_committed = migration.files.sqlite().exists()
        || PgMigration::connect_as_is(migration.address)?.has_schema(schema)?;
    if is_committed {
        return finish(migration, note, observer).map(Some);
    }
    migration.remove_note()?;
    Ok(None)
}

/// Copies the rows to a new file, writes the note, and commits. Returns how many rows there are.
fn copy(migration: &Migration<'_>, observer: &mut dyn Observer) -> Result<u64, MigrateError> {
    let files = migration.files;
    files.remove_draft().map_err(at(files.draft()))?;
    let postgres = PgMigration::connect(migration.address)?;
    postgres.begin()?;
    postgres.check_owner()?;
    postgres.check_only_host(migration.host)?;

    let sqlite = sqlite::create_target(&files.draft())?;
    check_schemas(&sqlite, postgres.tables())?;
    let mut progress = Progress::new(observer, postgres.tables())?;
    let replaced = [(&HOST, "NULL::TEXT".to_owned())];
    let rows = copy_tables(postgres.tables(), &sqlite, &replaced, &mut progress)?;
    sqlite::index_all(&sqlite, &mut |nodes| progress.add(nodes))?;
    sqlite::close_target(sqlite, &files.draft())?;
    observer.reached(Step::Copied)?;

    let schema = postgres.retire()?;
    migration.write_note(&MigrationNote::Sqlite { database: migration.database(), schema })?;
    observer.reached(Step::Noted)?;
    migration.commit(&postgres)?;
    Ok(rows)
}

/// Makes the file the store of the data directory.
fn finish(
    migration: &Migration<'_>,
    note: &MigrationNote,
    observer: &mut dyn Observer,
) -> Result<Moved, MigrateError> {
    let MigrationNote::Sqlite { schema, .. } = note else { return Err(migration.other(note)) };
    let files = migration.files;
    files.accept_draft().map_err(at(files.sqlite()))?;
    if !files.sqlite().exists() {
        return Err(MigrateError::NoFile(files.draft()));
    }
    observer.reached(Step::Renamed)?;
    files.leave_database().map_err(at(files.host()))?;
    observer.reached(Step::Named)?;
    migration.remove_note()?;
    Ok(Moved { rows: None, old: format!("schema {schema} of {}", migration.database()) })
}
