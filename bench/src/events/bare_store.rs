//! A program that stores every event and does nothing else: one thread parses each line and inserts it into one table of SQLite, in the same
//! batches as the hub. It has no child, no conversation, no search and no listener.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;

/// The bytes of a batch.
const BATCH: usize = 256 * 1024;

/// Returns the number of lines.
#[expect(clippy::disallowed_methods, reason = "the database is not one of Plexus")]
pub(super) fn parse_and_insert(dir: &Path, recording: &Path) -> anyhow::Result<usize> {
    let mut connection = Connection::open(dir.join("lines.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection
        .execute_batch("CREATE TABLE lines (number INTEGER PRIMARY KEY, kind TEXT, text TEXT) STRICT")?;
    let mut recorded = BufReader::new(std::fs::File::open(recording)?).lines();
    let mut count = 0;
    loop {
        let batch = connection.transaction()?;
        let mut bytes = 0;
        while bytes < BATCH
            && let Some(line) = recorded.next()
        {
            let line = line?;
            bytes += line.len();
            count += 1;
            let parsed: Value = serde_json::from_str(&line)?;
            batch
                .prepare_cached("INSERT INTO lines (kind, text) VALUES (?1, ?2)")?
                .execute((parsed["type"].as_str(), &line))?;
        }
        batch.commit()?;
        if bytes == 0 {
            return Ok(count);
        }
    }
}
