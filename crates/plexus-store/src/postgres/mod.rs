//! PostgreSQL: the store in a database that several hubs can share. `connection` executes statements, `dialect` has the SQL that differs from SQLite,
//! `schema` creates and migrates the tables.

mod columns;
mod connection;
mod dialect;
mod schema;
mod text;

use std::str::FromStr as _;
use std::sync::Arc;
use std::thread;

use tokio_postgres::Config;

use connection::PgConnection;

use crate::StoreError;
use crate::sql::{Connection, Database, Source, SqlStore, panicked};

/// All tables are in a schema of their own. Every text of the statements is written for these settings.
///
/// The limits are shorter than the time that a connection waits for an answer. So a transaction of a connection that was lost does not hold its locks for long.
const SETUP: &str = "SET search_path = plexus; SET synchronous_commit = on; SET lock_timeout = '10s'; SET statement_timeout = '20s'; \
    SET idle_in_transaction_session_timeout = '20s'";
const READ_ONLY: &str = "SET default_transaction_read_only = on";

impl SqlStore {
    /// Connects to a PostgreSQL database (`postgres://user@host/name`), and creates or migrates its tables.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if the address is wrong, the database refuses the user, or was written by a newer Plexus.
    /// [`StoreError::Unavailable`] if a retry may succeed.
    pub fn postgres(url: &str) -> Result<Self, StoreError> {
        // A thread of a runtime cannot wait for another runtime.
        let start = || Self::start(Arc::new(PgDatabase::prepare(url)?));
        thread::scope(|scope| scope.spawn(start).join()).unwrap_or_else(|_| Err(panicked()))
    }
}

/// A database whose schema is known to be current.
struct PgDatabase {
    config: Config,
    name: String,
}

impl PgDatabase {
    fn prepare(url: &str) -> Result<Self, StoreError> {
        let mut config = Config::from_str(url).map_err(|error| {
            StoreError::Unusable(format!(
                "the address of the PostgreSQL database: {}",
                connection::describe(&error)
            ))
        })?;
        config.application_name("plexus");
        let name = format!("PostgreSQL database {}", config.get_dbname().unwrap_or("(without a name)"));
        let database = Self { config, name };
        database.create().map_err(|error| database.named(error))?;
        Ok(database)
    }

    fn create(&self) -> Result<(), StoreError> {
        schema::migrate(&PgConnection::open_patient(&self.config, "SET search_path = plexus")?)
    }
}

impl Source for PgDatabase {
    fn writer(&self) -> Result<Connection, StoreError> {
        Ok(Box::new(PgConnection::open(&self.config, SETUP).map_err(later)?))
    }

    fn reader(&self) -> Result<Connection, StoreError> {
        Ok(Box::new(PgConnection::open(&self.config, &format!("{SETUP}; {READ_ONLY}")).map_err(later)?))
    }

    fn was_committed(&self, transaction: &str) -> Result<bool, StoreError> {
        let connection = self.writer()?;
        let database: &dyn Database = &*connection;
        // The lock waits for the end of the transaction, if the database still executes it.
        let last: String = database.value("SELECT transaction FROM writer FOR UPDATE", ())?;
        Ok(last == transaction)
    }

    fn named(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Unusable(why) => StoreError::Unusable(format!("{}: {why}", self.name)),
            other => other,
        }
    }
}

/// A hub that runs waits for its database, whatever the reason: stopping its agents would not help.
fn later(error: StoreError) -> StoreError {
    match error {
        StoreError::Unusable(why) => StoreError::Unavailable(why),
        other => other,
    }
}
