//! Looks a database file over before anything is written to it: whose it is, which version, and whether it is whole. It
//! only reads; a file that does not pass is left as it is, with what SQLite keeps beside it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::connection::{Opening, open};
use super::schema;

/// How long a start may take over looking for damage: enough for a few hundred megabytes. What a larger file holds
/// beyond that is called damage when it is read.
const WITHIN: Duration = Duration::from_millis(250);
/// How many steps of SQLite pass between two looks at the clock.
const STEPS: i32 = 1000;
/// What a hub cannot start without comes first.
const CHECKS: &[&str] = &["(sessions)", "(runs)", "(turns)", "(approvals)", ""];

/// Lets pass what is blank, or ours and whole as far as could be seen in time.
pub(super) fn examine(path: &Path) -> Result<(), Opening> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    match schema::check(&connection) {
        Ok(schema::Contents::Blank) => Ok(()),
        Ok(schema::Contents::Ours) => look_for_damage(connection),
        Err(Opening::Sqlite(error)) if is_unfinished(&error) => check_unfinished(path),
        Err(refused) => Err(refused),
    }
}

fn look_for_damage(mut connection: Connection) -> Result<(), Opening> {
    let give_up_at = Instant::now() + WITHIN;
    connection.progress_handler(STEPS, Some(move || Instant::now() >= give_up_at))?;
    for which in CHECKS {
        let found = connection
            .prepare(&format!("PRAGMA quick_check{which}"))?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>();
        match found {
            Ok(found) if found == ["ok"] => {}
            Ok(found) => return Err(Opening::Damaged(found.first().cloned().unwrap_or_default())),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                tracing::debug!(
                    check = which,
                    "the database is too large to be looked over whole at a start"
                );
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn is_unfinished(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_READONLY_ROLLBACK)
}

/// A transaction that broke off waits beside the file to be rolled back. Ours can be in that state only in the first
/// instant of its life, before it is a write-ahead log; anything larger is somebody else's to tidy up.
fn check_unfinished(path: &Path) -> Result<(), Opening> {
    match std::fs::metadata(path) {
        Ok(file) if file.len() <= 4096 => Ok(()),
        _ => Err(Opening::Refused(
            "has an unfinished change of another program beside it: open it with that one, or use another data \
             directory"
                .to_owned(),
        )),
    }
}
