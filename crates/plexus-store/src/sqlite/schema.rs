//! The schema of the database file: its owner (`application_id`), its version (`user_version`), and the migration from each
//! version to the next. A released migration is never changed.

use plexus_protocol::title_of;
use rusqlite::{Connection, TransactionBehavior};

use super::connection::Opening;

/// "PLXS", which distinguishes our files from those of other programs.
const APPLICATION_ID: i32 = 0x504C_5853;

/// Step n migrates version n to version n + 1.
const STEPS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
    include_str!("migrations/0008.sql"),
    include_str!("migrations/0009.sql"),
    include_str!("migrations/0010.sql"),
    include_str!("migrations/0011.sql"),
    include_str!("migrations/0012.sql"),
    include_str!("migrations/0013.sql"),
];

/// The version from which sessions have titles.
const TITLES: usize = 12;

/// The contents of a file that we may use.
pub(super) enum Contents {
    /// It is empty.
    Blank,
    /// A store of this version or an older one.
    Ours,
}

/// Refuses a file of another program or of a newer version. Changes nothing.
pub(super) fn check(connection: &Connection) -> Result<Contents, Opening> {
    let owner: i32 = connection.pragma_query_one(None, "application_id")?;
    let version = version(connection)?;
    if owner == 0 && version == 0 && is_blank(connection)? {
        return Ok(Contents::Blank);
    }
    if owner != APPLICATION_ID {
        return Err(Opening::Refused(
            "belongs to another program: move it away, or use another data directory".to_owned(),
        ));
    }
    if version > STEPS.len() {
        return Err(Opening::Refused(format!(
            "was written by a newer version of plexus (store version {version}; this one supports up to {}): \
             use that version or a newer one, or use another data directory",
            STEPS.len()
        )));
    }
    Ok(Contents::Ours)
}

/// Migrates a file that `check` accepted, in one transaction.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let from = version(connection)?;
    if from == STEPS.len() {
        return Ok(());
    }
    // A table that is rebuilt is missing for a moment, and foreign keys refer to it.
    connection.pragma_update(None, "foreign_keys", false)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in STEPS.iter().skip(from) {
        transaction.execute_batch(step)?;
    }
    if from < TITLES {
        derive_titles(&transaction)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", STEPS.len())?;
    transaction.commit()?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// Gives sessions of earlier versions a title from their first prompt, as new sessions get one.
fn derive_titles(connection: &Connection) -> rusqlite::Result<()> {
    let mut prompts = connection.prepare(
        "SELECT s.ordinal, t.prompt FROM sessions s JOIN turns t ON t.session = s.id AND t.turn = 1 \
         WHERE s.title IS NULL",
    )?;
    let mut rows = prompts.query([])?;
    while let Some(row) = rows.next()? {
        let (ordinal, prompt): (i64, String) = (row.get(0)?, row.get(1)?);
        if let Some(title) = title_of(&prompt) {
            connection.execute("UPDATE sessions SET title = ?2 WHERE ordinal = ?1", (ordinal, title))?;
        }
    }
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    // No version is negative; such a file counts as newer.
    let version: i64 = connection.pragma_query_one(None, "user_version")?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}
