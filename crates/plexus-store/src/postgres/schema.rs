//! The schema in a PostgreSQL database: its version, and the migration from each version to the next. A released migration is never changed.

use super::connection::PgConnection;
use crate::StoreError;
use crate::sql::Database;

/// Step n migrates version n to version n + 1.
const STEPS: &[&str] = &[include_str!("schema.sql")];

/// The lock that a hub takes while it migrates, so that hubs that start together do not migrate twice: "PLXS".
const LOCK: &str = "SELECT pg_advisory_xact_lock(1347180627)";

/// Creates the schema, or migrates an older one. Refuses a newer one, and a database that cannot store every text.
pub(super) fn migrate(connection: &PgConnection) -> Result<(), StoreError> {
    let database: &dyn Database = connection;
    let encoding: String = database.value("SELECT current_setting('server_encoding')", ())?;
    if encoding != "UTF8" {
        let why = format!("has the encoding {encoding}: create a database with ENCODING 'UTF8'");
        return Err(StoreError::Unusable(why));
    }
    connection.batch(&format!("BEGIN; {LOCK}"))?;
    let migrated = locked(connection, database);
    connection.batch(if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    migrated
}

fn locked(connection: &PgConnection, database: &dyn Database) -> Result<(), StoreError> {
    // A role without the right to create a schema can use an existing one.
    if !database.value::<bool>("SELECT to_regnamespace('plexus') IS NOT NULL", ())? {
        connection.batch("CREATE SCHEMA plexus; CREATE TABLE schema_version (version BIGINT NOT NULL); INSERT INTO schema_version VALUES (0)")?;
    }
    continue_from(connection, database.value("SELECT version FROM schema_version", ())?)
}

fn continue_from(connection: &PgConnection, version: usize) -> Result<(), StoreError> {
    let Some(missing) = STEPS.get(version..) else {
        return Err(StoreError::Unusable(format!(
            "was written by a newer version of plexus (store version {version}; this one supports up to {}): use that \
             version or a newer one",
            STEPS.len()
        )));
    };
    if missing.is_empty() {
        return Ok(());
    }
    for step in missing {
        connection.batch(step)?;
    }
    connection.batch(&format!("UPDATE schema_version SET version = {}", STEPS.len()))
}
