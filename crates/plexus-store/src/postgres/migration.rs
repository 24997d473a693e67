//! The PostgreSQL side of `plexus migrate`: checks the role, checks that the database is empty or belongs to one host, and sets counters and triggers.
//! Everything happens in one transaction, which holds the lock of all transactions that write.

use std::path::Path;

use plexus_protocol::HostName;
use uuid::Uuid;

use super::commit_count::{CommitCount, Counts};
use super::connection::PgConnection;
use super::connector::Connector;
use super::membership::{LOCK_WRITER, Membership};
use super::{Host, JOIN_SETUP, PostgresAddress, durability, named, schema};
use crate::migrate::MigrateError;
use crate::migrate::copy::{Bulk, number};
use crate::migrate::tables::{SEARCH_INDEX, TABLES};
use crate::rows::Stored;
use crate::sql::Database;
use crate::sql::columns::Word;
use crate::{HostState, StoreError};

/// A transaction of a migration may take long, and waits only for the locks of others. A row that the role may not see is an error: it would be lost.
const MIGRATION_SETUP: &str = "SET row_security = off; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '20s'";

/// A connection for a migration. Its transaction is rolled back if it is dropped.
pub(crate) struct PgMigration {
    connection: PgConnection,
    name: String,
    role: String,
}

/// How a transaction ended.
pub(crate) enum Ending {
    Committed,
    NotCommitted(StoreError),
    /// The connection was lost before COMMIT was answered.
    Unknown(StoreError),
}

impl PgMigration {
    /// Connects, and creates or migrates the tables.
    pub(crate) fn connect(address: &PostgresAddress) -> Stored<Self> {
        let this = Self::connect_as_is(address)?;
        let prepared = durability::check(&this.connection).and_then(|()| schema::migrate(&this.connection));
        prepared.map_err(|error| named(&this.name, error))?;
        Ok(this)
    }

    /// Connects, and changes nothing.
    pub(crate) fn connect_as_is(address: &PostgresAddress) -> Stored<Self> {
        let name = address.name();
        let role = address.config.get_user().unwrap_or_default().to_owned();
        let connect = || {
            PgConnection::open_patient(&Connector::new(address)?, &format!("{JOIN_SETUP}; {MIGRATION_SETUP}"))
        };
        let connection = connect().map_err(|error| named(&name, error))?;
        Ok(Self { connection, name, role })
    }

    /// Its tables.
    pub(crate) fn tables(&self) -> &dyn Bulk {
        &self.connection
    }

    /// A text as the search index stores it.
    pub(crate) fn indexed_text(&self, text: String) -> String {
        (self.connection.dialect().indexed_text)(text)
    }

    fn database(&self) -> &dyn Database {
        &self.connection
    }

    /// Begins the transaction. No other one writes until it ends.
    pub(crate) fn begin(&self) -> Stored<()> {
        self.connection.batch("BEGIN")?;
        self.database().run(LOCK_WRITER, ()).map(drop)
    }

    /// Checks that the role owns the tables: only then it can write every row, and disable triggers.
    pub(crate) fn check_owner(&self) -> Result<(), MigrateError> {
        let owns_all = "SELECT coalesce(bool_and(pg_has_role(relowner, 'USAGE')), FALSE) FROM pg_class \
            WHERE relnamespace = to_regnamespace('plexus') AND relkind IN ('r', 'p')";
        match self.database().value(owns_all, ())? {
            true => Ok(()),
            false => Err(MigrateError::NotOwner(self.role.clone())),
        }
    }

    /// Checks that no table has rows.
    pub(crate) fn check_empty(&self) -> Result<(), MigrateError> {
        for table in TABLES {
            let sql = format!("SELECT count(*) FROM (SELECT 1 FROM \"{}\" LIMIT 1) found", table.name);
            if number(&self.connection, &sql)? > 0 {
                return Err(MigrateError::NotEmpty(self.contents(table.name)?));
            }
        }
        Ok(())
    }

    /// What the database contains, in words.
    fn contents(&self, table: &str) -> Stored<String> {
        let names = "SELECT DISTINCT host FROM sessions WHERE host IS NOT NULL ORDER BY host LIMIT 5";
        let hosts: Vec<String> = self.database().all(names, (), |row| row.get(0))?;
        Ok(match hosts.is_empty() {
            true => format!("rows in its table `{table}`"),
            false => format!("sessions of host {}", hosts.join(", ")),
        })
    }

    /// Adds this machine as a host. Returns the id of its last transaction, which is this one.
    pub(crate) fn add_host(&self, host: &Host) -> Stored<String> {
        Membership::join_locked(&self.connection, host)?;
        let transaction = Uuid::new_v4().to_string();
        let set = "UPDATE hosts SET last_commit = ?2, commits = commits + 1 WHERE name = ?1";
        self.database().run(set, (host.name.as_str(), &transaction))?;
        Ok(transaction)
    }

    /// Notes in the data directory that the host has committed: its hub refuses a database that does not know the host.
    pub(crate) fn note_commit(path: &Path) -> Stored<()> {
        CommitCount::open(path)?.0.set(Counts { own: 1, seen: 0 });
        Ok(())
    }

    /// The id of the last transaction of a host.
    pub(crate) fn last_transaction(&self, host: &HostName) -> Stored<Option<String>> {
        self.wait_for_writers()?;
        let sql = "SELECT last_commit FROM hosts WHERE name = ?1";
        self.database().one(sql, [host.as_str()], |row| row.get(0))
    }

    /// Lets rows keep the numbers that they have: triggers would give them new ones.
    pub(crate) fn disable_triggers(&self) -> Stored<()> {
        self.triggers("DISABLE")
    }

    pub(crate) fn enable_triggers(&self) -> Stored<()> {
        self.triggers("ENABLE")
    }

    fn triggers(&self, verb: &str) -> Stored<()> {
        let tables = TABLES.iter().map(|table| table.name).chain([SEARCH_INDEX]);
        let change: Vec<String> =
            tables.map(|table| format!("ALTER TABLE \"{table}\" {verb} TRIGGER USER")).collect();
        self.connection.batch(&change.join("; "))
    }

    /// Tells hubs of other hosts that anything may have changed, and the planner how large the tables are.
    pub(crate) fn finish_copy(&self) -> Stored<()> {
        // A number without a record in `commits`.
        self.connection.batch("UPDATE writer SET number = number + 1; ANALYZE")
    }

    /// Checks that this machine is the only host of the database, and that the database is complete. Keeps every earlier hub of the host from writing.
    pub(crate) fn check_only_host(&self, host: &Host) -> Result<(), MigrateError> {
        let name = host.name.to_string();
        let others = "SELECT name FROM hosts WHERE name <> ?1 AND state <> 'removed' ORDER BY name";
        let others: Vec<String> = self.database().all(others, [name.as_str()], |row| row.get(0))?;
        if !others.is_empty() {
            return Err(MigrateError::OtherHosts(others.join(", ")));
        }
        let state = "SELECT state FROM hosts WHERE name = ?1";
        let state = self.database().one(state, [name.as_str()], |row| row.get(0))?;
        let Some(Word(state)) = state else {
            return Err(MigrateError::UnknownHost(name));
        };
        let joined = Membership::join_locked(&self.connection, host)?;
        match state {
            HostState::Active | HostState::Draining if !joined.has_lost_commits() => Ok(()),
            HostState::Active | HostState::Draining | HostState::RolledBack => {
                Err(MigrateError::LostCommits(name))
            }
            HostState::Lost | HostState::Removed | HostState::Rejoined => Err(MigrateError::LostHost(name)),
        }
    }

    /// Renames the schema, so that no hub uses it any more. Returns its new name.
    pub(crate) fn retire(&self) -> Stored<String> {
        let id = Uuid::new_v4().simple().to_string();
        let name = format!("plexus_moved_{}", id.get(..12).unwrap_or(&id));
        self.connection.batch(&format!("ALTER SCHEMA plexus RENAME TO {name}"))?;
        Ok(name)
    }

    /// Waits until a transaction has ended whose COMMIT had no answer: the server may still execute it.
    fn wait_for_writers(&self) -> Stored<()> {
        if self.database().value("SELECT to_regclass('plexus.writer') IS NOT NULL", ())? {
            self.database().run(LOCK_WRITER, ())?;
        }
        Ok(())
    }

    pub(crate) fn has_schema(&self, name: &str) -> Stored<bool> {
        self.wait_for_writers()?;
        self.database().value("SELECT to_regnamespace(?1) IS NOT NULL", [name])
    }

    pub(crate) fn commit(&self) -> Ending {
        match self.connection.execute_commit() {
            Ok(()) => Ending::Committed,
            Err(error) if !self.connection.is_usable() => Ending::Unknown(error),
            Err(error) => Ending::NotCommitted(error),
        }
    }
}
