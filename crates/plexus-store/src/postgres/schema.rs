//! The schema in a PostgreSQL database: its version, and the migration from each version to the next. A released migration is never changed.
//!
//! Hubs of two releases can share a database, so that a team can update its machines one by one. The first hub of the newer release migrates the database, and
//! hubs of the release before continue with it. So a migration only adds: tables, columns that older hubs need not write, indexes. What a release no longer uses is
//! removed by the release after it.

use super::connection::PgConnection;
use crate::StoreError;
use crate::rows::Stored;
use crate::sql::Database;

/// A release of Plexus.
struct Release {
    /// Step n migrates version n to version n + 1. Their number is the version of the schema that the release was written for.
    steps: &'static [&'static str],
    /// The version of the release before: its hubs can share the database with hubs of this release.
    oldest: u64,
    /// Its name.
    plexus: &'static str,
}

const THIS: Release = Release {
    steps: &[
        include_str!("schema.sql"),
        include_str!("migrations/0002.sql"),
        include_str!("migrations/0003.sql"),
        include_str!("migrations/0004.sql"),
        include_str!("migrations/0005.sql"),
    ],
    // No release has used PostgreSQL yet. When one is made, this becomes its version.
    oldest: 1,
    plexus: env!("CARGO_PKG_VERSION"),
};

/// The version of the schema that this release was written for.
pub(super) const VERSION: u64 = THIS.version();

/// Replaces the rights of hosts with a role of their own, after the steps.
const HOST_ROLES: &str = include_str!("host_roles.sql");
/// Creates or replaces the view of sessions for hosts with a role of their own.
pub(super) const HOST_VIEW: &str = include_str!("host_view.sql");

/// The version from which `schema_version` and `hosts` have the columns for the versions of hubs.
const WITH_OVERLAP: u64 = 3;

/// Locks of hubs that start together, so that only one of them creates or upgrades the schema. Any role could hold the first one, "PLXS", but before there
/// is a schema, there are no other roles. Only the owner can take the second one.
const LOCK_CREATION: &str = "SELECT pg_advisory_xact_lock(1347180627)";
const LOCK_SCHEMA: &str = "LOCK TABLE plexus.schema_version IN SHARE ROW EXCLUSIVE MODE";
const EXISTS: &str = "SELECT to_regclass('plexus.schema_version') IS NOT NULL";
const OUTDATED: &str = "SELECT h.name, h.version FROM hosts h JOIN leases l ON l.host = h.name WHERE h.schema_version < ?1 AND h.state NOT IN ('lost', 'removed') \
    AND l.until > (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT ORDER BY h.name";

/// Creates the schema, or migrates an older one. Refuses a newer one that this release cannot use, and a database that cannot store every text.
pub(super) fn migrate(connection: &PgConnection) -> Result<(), StoreError> {
    THIS.migrate(connection)
}

/// The state of a schema.
struct Found {
    version: u64,
    /// The lowest version whose hubs can use it.
    oldest: u64,
    /// The version of Plexus that has migrated it.
    plexus: String,
}

impl Release {
    const fn version(&self) -> u64 {
        self.steps.len() as u64
    }

    fn migrate(&self, connection: &PgConnection) -> Result<(), StoreError> {
        let database: &dyn Database = connection;
        let encoding: String = database.value("SELECT current_setting('server_encoding')", ())?;
        if encoding != "UTF8" {
            let why = format!("it has the encoding {encoding}: create a database with ENCODING 'UTF8'");
            return Err(StoreError::Unusable(why));
        }
        if !database.value::<bool>(EXISTS, ())? {
            self.in_transaction(connection, LOCK_CREATION, || self.create(connection, database))?;
        }
        let found = found(database)?;
        if found.version < self.version() {
            self.check_owner(database, found.version)?;
            return self.in_transaction(connection, LOCK_SCHEMA, || self.upgrade(connection, database));
        }
        // A hub of the next release has kept what this one needs.
        if found.oldest <= self.version() { Ok(()) } else { Err(self.is_too_old(&found)) }
    }

    fn in_transaction(
        &self,
        connection: &PgConnection,
        lock: &str,
        change: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        connection.batch("BEGIN")?;
        let changed = connection.batch(lock).and_then(|()| change());
        connection.batch(if changed.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        changed
    }

    /// Creates the schema, unless another hub has done so meanwhile.
    fn create(&self, connection: &PgConnection, database: &dyn Database) -> Result<(), StoreError> {
        if database.value::<bool>(EXISTS, ())? {
            return Ok(());
        }
        // A role without the right to create a schema can use an existing one.
        if !database.value::<bool>("SELECT to_regnamespace('plexus') IS NOT NULL", ())? {
            connection.batch("CREATE SCHEMA plexus")?;
        }
        connection.batch("CREATE TABLE plexus.schema_version (version BIGINT NOT NULL); INSERT INTO plexus.schema_version VALUES (0)")?;
        self.continue_from(connection, database, 0)
    }

    /// Upgrades the schema, unless another hub has done so meanwhile.
    fn upgrade(&self, connection: &PgConnection, database: &dyn Database) -> Result<(), StoreError> {
        let found = found(database)?;
        match found.version < self.version() {
            true => self.continue_from(connection, database, found.version),
            false => Ok(()),
        }
    }

    fn continue_from(
        &self,
        connection: &PgConnection,
        database: &dyn Database,
        version: u64,
    ) -> Result<(), StoreError> {
        if version >= WITH_OVERLAP {
            self.check_connected_hubs(database)?;
        }
        for step in self.steps.iter().skip(usize::try_from(version).unwrap_or(usize::MAX)) {
            connection.batch(step)?;
        }
        connection.batch(HOST_ROLES)?;
        if database.value::<bool>("SELECT to_regnamespace('plexus_host') IS NOT NULL", ())? {
            connection.batch(HOST_VIEW)?;
        }
        // A hub that is too old, and that nobody can see, must not write any more. The next one of its host refuses to start.
        database.run("UPDATE hosts SET epoch = epoch + 1 WHERE schema_version < ?1", [self.oldest])?;
        let store = "UPDATE schema_version SET version = ?1, oldest = ?2, plexus = ?3";
        database.run(store, (self.version(), self.oldest, self.plexus))?;
        Ok(())
    }

    /// Only the owner can upgrade the schema.
    fn check_owner(&self, database: &dyn Database, version: u64) -> Result<(), StoreError> {
        let owns = "SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'plexus'";
        if !database.value::<bool>(owns, ())? {
            return Err(StoreError::Unusable(format!(
                "it has the schema of an older Plexus (store version {version}; this Plexus {} needs {}): first start a hub of this version whose role owns the \
                 database",
                self.plexus,
                self.version()
            )));
        }
        Ok(())
    }

    /// A hub that is older than the release before this one could not continue with the new schema.
    fn check_connected_hubs(&self, database: &dyn Database) -> Result<(), StoreError> {
        let outdated: Vec<String> = database.all(OUTDATED, [self.oldest], |row| {
            Ok(format!("`{}` (Plexus {})", row.get::<String>(0)?, row.get::<String>(1)?))
        })?;
        if outdated.is_empty() {
            return Ok(());
        }
        Err(StoreError::Unusable(format!(
            "it is used by hubs that are more than one release older than this Plexus {}: update or stop {} first",
            self.plexus,
            outdated.join(", ")
        )))
    }

    fn is_too_old(&self, found: &Found) -> StoreError {
        let Found { version, oldest, plexus } = found;
        StoreError::Unusable(format!(
            "it has the schema of Plexus {plexus}, and this Plexus {} is more than one release older (store version {version}, for hubs of version {oldest} or later; this \
             one has {}): update Plexus on this machine",
            self.plexus,
            self.version()
        ))
    }
}

fn found(database: &dyn Database) -> Stored<Found> {
    let version = database.value("SELECT version FROM schema_version", ())?;
    if version < WITH_OVERLAP {
        return Ok(Found { version, oldest: 1, plexus: String::new() });
    }
    let read = "SELECT oldest, plexus FROM schema_version";
    let row = database.one(read, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (oldest, plexus) =
        row.ok_or_else(|| StoreError::Unusable("its table `schema_version` is empty".to_owned()))?;
    Ok(Found { version, oldest, plexus })
}

#[cfg(test)]
mod tests {
    use plexus_testkit::postgres::Postgres;
    use plexus_testkit::skip;

    use super::super::connector::Connector;
    use super::super::{JOIN_SETUP, PostgresAddress};
    use super::*;

    const LATER: &str = "ALTER TABLE hosts ADD COLUMN later TEXT";
    const LATER_STILL: &str = "ALTER TABLE hosts ADD COLUMN later_still TEXT";
    const NEXT: Release = Release {
        steps: &[THIS.steps[0], THIS.steps[1], THIS.steps[2], THIS.steps[3], THIS.steps[4], LATER],
        oldest: VERSION,
        plexus: "next",
    };
    const AFTER_NEXT: Release = Release {
        steps: &[
            THIS.steps[0],
            THIS.steps[1],
            THIS.steps[2],
            THIS.steps[3],
            THIS.steps[4],
            LATER,
            LATER_STILL,
        ],
        oldest: VERSION + 1,
        plexus: "after-next",
    };

    /// A connection to an empty database.
    fn connection(test: &str) -> Option<PgConnection> {
        let Some(server) = Postgres::shared() else {
            skip(test, "PostgreSQL");
            return None;
        };
        let url = server.url(&server.database().unwrap());
        let connector = Connector::new(&PostgresAddress::parse(&url).unwrap()).unwrap();
        Some(PgConnection::open_patient(&connector, JOIN_SETUP).unwrap())
    }

    /// Adds a host whose hub was written for this version of the schema, and is connected for this many seconds more.
    fn add_host(connection: &PgConnection, version: u64, connected_secs: i64) {
        connection
            .batch(&format!(
                "INSERT INTO hosts (name, machine, epoch, last_commit, version, joined_at, schema_version) VALUES ('old', 'm', 1, 'c', '0.1', 0, {version}); \
                 INSERT INTO leases VALUES ('old', (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + {connected_secs} * 1000)"
            ))
            .unwrap();
    }

    fn value(connection: &PgConnection, sql: &'static str) -> String {
        let database: &dyn Database = connection;
        database.value(sql, ()).unwrap()
    }

    fn refusal(migrated: Result<(), StoreError>) -> String {
        match migrated {
            Err(StoreError::Unusable(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_database_of_an_earlier_version_is_migrated() {
        let Some(connection) = connection("a_database_of_an_earlier_version_is_migrated") else { return };
        let first = Release { steps: &THIS.steps[..1], ..THIS };
        connection.batch("CREATE SCHEMA plexus; CREATE TABLE schema_version (version BIGINT NOT NULL); INSERT INTO schema_version VALUES (1)").unwrap();
        connection.batch(first.steps[0]).unwrap();
        migrate(&connection).unwrap();
        migrate(&connection).unwrap();
        assert_eq!(
            value(&connection, "SELECT concat_ws(' ', version, oldest, plexus) FROM schema_version"),
            format!("{VERSION} 1 {}", env!("CARGO_PKG_VERSION"))
        );
        value(&connection, "SELECT concat(count(labels), count(slots), count(schema_version)) FROM hosts");
    }

    #[test]
    fn an_upgrade_replaces_the_rights_of_runners() {
        let Some(connection) = connection("an_upgrade_replaces_the_rights_of_runners") else { return };
        migrate(&connection).unwrap();
        let before = rights(&connection);
        // A policy and a function of another version, and a table without one of its policies.
        connection
            .batch(
                "CREATE POLICY former ON tokens USING (TRUE); DROP POLICY own ON audit; \
                 CREATE OR REPLACE FUNCTION own_host() RETURNS TEXT LANGUAGE sql AS 'SELECT NULL'",
            )
            .unwrap();
        assert_ne!(rights(&connection), before);
        NEXT.migrate(&connection).unwrap();
        assert_eq!(rights(&connection), before);
    }

    /// The policies and functions of the schema.
    fn rights(connection: &PgConnection) -> String {
        value(
            connection,
            "SELECT string_agg(it, E'\\n' ORDER BY it) FROM ( \
             SELECT concat_ws(' ', tablename, policyname, cmd, qual, with_check) AS it FROM pg_policies WHERE schemaname = 'plexus' \
             UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'plexus'::regnamespace \
             UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal \
             UNION ALL SELECT concat(relname, relrowsecurity) FROM pg_class WHERE relnamespace = 'plexus'::regnamespace AND relkind = 'r') AS rights",
        )
    }

    #[test]
    fn a_hub_goes_on_with_the_schema_of_the_next_release_and_not_of_a_later_one() {
        let Some(connection) =
            connection("a_hub_goes_on_with_the_schema_of_the_next_release_and_not_of_a_later_one")
        else {
            return;
        };
        migrate(&connection).unwrap();
        NEXT.migrate(&connection).unwrap();
        migrate(&connection).unwrap();
        assert_eq!(
            value(&connection, "SELECT plexus FROM schema_version"),
            "next",
            "an older hub changes nothing"
        );
        AFTER_NEXT.migrate(&connection).unwrap();
        NEXT.migrate(&connection).unwrap();
        let refused = refusal(migrate(&connection));
        for part in
            ["Plexus after-next", "store version 7", "this one has 5", "update Plexus on this machine"]
        {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }

    #[test]
    fn a_hub_waits_with_a_migration_until_hubs_that_are_too_old_are_stopped() {
        let Some(connection) =
            connection("a_hub_waits_with_a_migration_until_hubs_that_are_too_old_are_stopped")
        else {
            return;
        };
        migrate(&connection).unwrap();
        add_host(&connection, VERSION, 10);
        NEXT.migrate(&connection).unwrap();
        let refused = refusal(AFTER_NEXT.migrate(&connection));
        assert!(refused.contains("update or stop `old` (Plexus 0.1) first"), "{refused}");
        assert_eq!(value(&connection, "SELECT plexus FROM schema_version"), "next");
        // A hub that is not connected may still run: it is fenced.
        connection.batch("UPDATE leases SET until = 0").unwrap();
        AFTER_NEXT.migrate(&connection).unwrap();
        assert_eq!(value(&connection, "SELECT concat_ws(' ', epoch, later_still) FROM hosts"), "2");
    }
}
