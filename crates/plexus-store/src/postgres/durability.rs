//! Checks that the server keeps what it has committed. Plexus acknowledges a commit as soon as the server does. Only `fsync` is a setting of the server alone:
//! each connection that writes sets `synchronous_commit` itself.

use super::connection::PgConnection;
use crate::StoreError;
use crate::sql::Database;

/// Logs a warning if a crash of the server or its machine can lose commits.
pub(super) fn check(connection: &PgConnection) -> Result<(), StoreError> {
    let database: &dyn Database = connection;
    let fsync: String = database.value("SELECT current_setting('fsync')", ())?;
    if fsync != "on" {
        tracing::warn!(
            "the PostgreSQL server has fsync = {fsync}: a crash of its machine can lose the whole database, decisions included. Set it to on"
        );
    }
    Ok(())
}
