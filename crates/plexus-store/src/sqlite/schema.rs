//! What stands in the database file: whose it is (`application_id`), which version (`user_version`), and the steps
//! that lead from one version to the next. A step that was ever released is never changed.

use rusqlite::{Connection, TransactionBehavior};

use super::connection::Opening;

/// "PLXS", so that a file of another program is told from ours.
const APPLICATION_ID: i32 = 0x504C_5853;

/// Step n leads from version n to version n + 1.
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
];

/// What was found in a file that we may use.
pub(super) enum Contents {
    /// Nothing yet.
    Blank,
    /// A store of ours, of this version or an older one.
    Ours,
}

/// Refuses a file that is not ours, or newer than we are. Changes nothing.
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
            "was written by a newer plexus (store version {version}; this one knows up to {}): start that \
             plexus or one after it, or use another data directory",
            STEPS.len()
        )));
    }
    Ok(Contents::Ours)
}

/// Brings a file that `check` let pass to our version, in one transaction.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let from = version(connection)?;
    if from == STEPS.len() {
        return Ok(());
    }
    // A table that is made anew is gone for a moment, and with it what others refer to.
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
    // A negative version is nobody's; it counts as newer than any.
    let version: i64 = connection.pragma_query_one(None, "user_version")?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}
