//! PostgreSQL: the store in a database that several hubs can share. `address` parses the URL, `connector` opens encrypted connections, `connection` executes
//! statements, `dialect` has the SQL that differs from SQLite, `schema` creates and migrates the tables. `membership` fences a hub that may no longer write,
//! `fleet` has wake-ups, leases and commands, `roles` the roles of runners, `migration` the PostgreSQL side of `plexus migrate`, `commit_count` notices
//! lost commits.

mod address;
mod announcements;
mod capacity;
mod certificate_check;
mod channel_binding;
mod columns;
mod commit_count;
mod connection;
mod connector;
mod dialect;
mod durability;
mod errors;
mod fleet;
mod fleet_rows;
mod membership;
mod migration;
mod password;
mod prepared_client;
mod roles;
mod schema;
mod secret_file;
mod text;
mod tls;

use std::sync::Arc;
use std::thread;

use connection::PgConnection;
use connector::Connector;
use fleet::PgFleet;
use membership::Membership;
use plexus_protocol::HostName;

pub use address::{AddressError, PostgresAddress};
pub use membership::Host;
pub(crate) use migration::{Ending, PgMigration};

use crate::sql::{Connection, Source, SqlStore, panicked};
use crate::{Role, StoreError};

/// All tables are in a schema of their own. Every text of the statements is written for these settings.
///
/// Each statement has an index. PostgreSQL plans a prepared statement once for all its executions, often while the table is empty, and would then read the whole
/// table for ever. So it must not read whole tables where an index exists.
///
/// The limits are shorter than the time that a connection waits for an answer. So a transaction of a connection that was lost does not hold its locks for long.
const STORE_SETUP: &str = "SET synchronous_commit = on; SET lock_timeout = '10s'; SET statement_timeout = '20s'; \
    SET idle_in_transaction_session_timeout = '5s'; SET enable_seqscan = off; SET jit = off";
/// For the connection that joins: its statements may take long.
const JOIN_SETUP: &str = "SET search_path = plexus; SET synchronous_commit = on; SET lock_timeout = '60s'";
/// Where the statements of the hub find their tables.
const OWNERS_TABLES: &str = "SET search_path = plexus";
/// The same for a role that does not own the schema: it has a view of `sessions`.
const RUNNERS_TABLES: &str = "SET search_path = plexus_host, plexus";
const READ_ONLY: &str = "SET default_transaction_read_only = on";

impl SqlStore {
    /// Connects to a PostgreSQL database as the hub of this host, and creates or migrates its tables.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if a file with a password or certificate cannot be used, the server cannot be verified, the database refuses the user, was
    /// written by a newer Plexus, or the host is another machine. [`StoreError::Unavailable`] if a retry may succeed.
    pub fn postgres(address: &PostgresAddress, host: &Host) -> Result<Self, StoreError> {
        let start = || {
            let database = PgDatabase::prepare(address, host)?;
            let fleet =
                PgFleet::new(database.connector.clone(), Arc::clone(&database.membership), database.role);
            Ok(Self::start(Arc::new(database))?.with_fleet(Arc::new(fleet)))
        };
        // A thread of a runtime cannot wait for another runtime.
        thread::scope(|scope| scope.spawn(start).join()).unwrap_or_else(|_| Err(panicked()))
    }
}

/// A database whose schema is known to be current, and that a host has joined.
struct PgDatabase {
    connector: Connector,
    name: String,
    membership: Arc<Membership>,
    role: Role,
}

impl PgDatabase {
    fn prepare(address: &PostgresAddress, host: &Host) -> Result<Self, StoreError> {
        let name = address.name();
        let connector = Connector::new(address).map_err(|error| named(&name, error))?;
        let (joined, role) = join(&connector, host).map_err(|error| named(&name, error))?;
        Ok(Self { connector, name, membership: Arc::new(joined), role })
    }

    fn setup(&self) -> String {
        match self.role {
            Role::Owner => format!("{OWNERS_TABLES}; {STORE_SETUP}"),
            Role::Runner => format!("{RUNNERS_TABLES}; {STORE_SETUP}"),
        }
    }
}

fn join(connector: &Connector, host: &Host) -> Result<(Membership, Role), StoreError> {
    let connection = PgConnection::open_patient(connector, JOIN_SETUP)?;
    durability::check(&connection)?;
    schema::migrate(&connection)?;
    let role = Role::of(&connection, &host.name)?;
    Ok((Membership::join(&connection, host)?, role))
}

/// Adds the name of the database to an error that a user has to repair.
fn named(database: &str, error: StoreError) -> StoreError {
    match error {
        StoreError::Unusable(why) => StoreError::Unusable(format!("{database}: {why}")),
        other => other,
    }
}

impl Source for PgDatabase {
    fn writer(&self) -> Result<Connection, StoreError> {
        let membership = Arc::clone(&self.membership);
        let connection = PgConnection::open_writer(&self.connector, &self.setup(), membership, self.role);
        Ok(Box::new(connection.map_err(later)?))
    }

    fn reader(&self) -> Result<Connection, StoreError> {
        Ok(Box::new(
            PgConnection::open(&self.connector, &format!("{}; {READ_ONLY}", self.setup())).map_err(later)?,
        ))
    }

    fn was_committed(&self, transaction: &str) -> Result<bool, StoreError> {
        let connection = self.writer()?;
        self.membership.is_last(&*connection, transaction)
    }

    fn host(&self) -> Option<&HostName> {
        Some(&self.membership.host)
    }

    fn named(&self, error: StoreError) -> StoreError {
        named(&self.name, error)
    }
}

/// A hub that runs waits for its database, whatever the reason: stopping its agents would not help.
fn later(error: StoreError) -> StoreError {
    match error {
        StoreError::Unusable(why) => StoreError::Unavailable(why),
        other => other,
    }
}
