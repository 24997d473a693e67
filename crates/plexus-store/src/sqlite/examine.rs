//! Examines a database file before anything is written to it: its owner, its version and its integrity. It only reads: a refused
//! file is not changed, nor are SQLite's files beside it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::connection::{Opening, open};
use super::schema;

/// The time limit of the search for damage at a start: enough for a few hundred megabytes. Damage in the rest of a larger
/// file is reported when it is read.
const TIMEOUT: Duration = Duration::from_millis(250);
/// How many SQLite steps pass between two checks of the clock.
const STEPS: i32 = 1000;
/// The tables that a hub needs to start come first.
const CHECKS: &[&str] = &["(sessions)", "(runs)", "(turns)", "(approvals)", ""];

/// Accepts an empty file, and a Plexus database in which no damage was found within the time limit.
pub(super) fn examine(path: &Path) -> Result<(), Opening> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    match schema::check(&connection) {
        Ok(schema::Contents::Blank) => Ok(()),
        Ok(schema::Contents::Ours) => find_damage(connection),
        Err(Opening::Sqlite(error)) if is_unfinished(&error) => check_unfinished(path),
        Err(refused) => Err(refused),
    }
}

fn find_damage(mut connection: Connection) -> Result<(), Opening> {
    let give_up_at = Instant::now() + TIMEOUT;
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
                tracing::debug!(check = which, "the database is too large for a complete check at startup");
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

/// An interrupted transaction waits beside the file to be rolled back. Our file can be in that state only while it is created,
/// before it uses a write-ahead log. A larger file belongs to another program.
fn check_unfinished(path: &Path) -> Result<(), Opening> {
    match std::fs::metadata(path) {
        Ok(file) if file.len() <= 4096 => Ok(()),
        _ => Err(Opening::Refused(
            "has an unfinished transaction of another program: open it with that program, or use another \
             data directory"
                .to_owned(),
        )),
    }
}
