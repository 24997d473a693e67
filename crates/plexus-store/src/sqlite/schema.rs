//! The schema of the database file: its owner (`application_id`), its version (`user_version`), and the migration from each
//! version to the next. A released migration is never changed.

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
];

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
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", STEPS.len())?;
    transaction.commit()?;
    connection.pragma_update(None, "foreign_keys", true)
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    // No version is negative; such a file counts as newer.
    let version: i64 = connection.pragma_query_one(None, "user_version")?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}
