//! Examines a database file before anything is written to it: its owner, its version and its integrity. It only reads: a refused
//! file is not changed, nor are SQLite's files beside it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use rustix::time::{ClockId, clock_gettime};

use super::connection::{Opening, open};
use super::schema;

/// The time limits of the search for damage at a start: of the processor, so that a busy machine finds as much as an idle one, and on the
/// clock, for a slow disk. They are enough for about a hundred megabytes. Damage in the rest of a larger file is reported when it is read.
const CPU_TIME: Duration = Duration::from_millis(50);
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

/// The processor time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

fn find_damage(mut connection: Connection) -> Result<(), Opening> {
    let (started, cpu_started) = (Instant::now(), cpu_time());
    let is_over = move || started.elapsed() >= TIMEOUT || cpu_time().saturating_sub(cpu_started) >= CPU_TIME;
    connection.progress_handler(STEPS, Some(is_over))?;
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
