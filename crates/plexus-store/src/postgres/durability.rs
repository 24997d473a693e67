//! Checks that the server keeps what it has committed. Plexus acknowledges a commit as soon as the server does.

use super::connection::PgConnection;
use crate::StoreError;
use crate::sql::Database;

/// Logs a warning if a crash of the server or its machine can lose commits.
pub(super) fn check(connection: &PgConnection) -> Result<(), StoreError> {
    let database: &dyn Database = connection;
    for (setting, loses) in [("fsync", "the whole database"), ("synchronous_commit", "the last commits")] {
        let value: String = database.value("SELECT current_setting(?1)", [setting])?;
        if value != "on" {
            tracing::warn!(
                "the PostgreSQL server has {setting} = {value}: a crash of its machine can lose {loses}, decisions included. Set it to on"
            );
        }
    }
    Ok(())
}
