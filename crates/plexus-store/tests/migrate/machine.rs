//! A machine: a data directory, and a database that it can move to.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use plexus_protocol::HostName;
use plexus_store::migrate::{MigrateError, Migration, Moved, Observer, Step, to_postgres, to_sqlite};
use plexus_store::{Capacity, Host, PostgresAddress, SqlStore, StoreError, StoreFiles};
use plexus_testkit::postgres::Postgres;
use plexus_testkit::skip;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tempfile::TempDir;

use crate::common;
use crate::state::fill;

/// A data directory, and an empty database.
pub struct Machine {
    pub server: &'static Postgres,
    pub database: String,
    pub dir: TempDir,
}

/// The direction of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    Postgres,
    Sqlite,
}

/// Ends a migration at a step.
pub struct StopAt(pub Option<Step>);

impl Observer for StopAt {
    fn progress(&mut self, _done: u64, _total: u64) {}

    fn reached(&mut self, step: Step) -> Result<(), StoreError> {
        match self.0 == Some(step) {
            true => Err(StoreError::Unavailable("stopped by the test".to_owned())),
            false => Ok(()),
        }
    }
}

impl Machine {
    /// A machine with a state in its file. `None` if PostgreSQL is missing.
    pub fn new(test: &str) -> Option<Self> {
        let machine = Self::empty(test)?;
        run(async {
            let store = common::open(&machine.files().sqlite());
            fill(&store, "one").await;
            fill(&store, "two").await;
        });
        Some(machine)
    }

    /// A machine without a state.
    pub fn empty(test: &str) -> Option<Self> {
        let Some(server) = Postgres::shared() else {
            skip(test, "PostgreSQL");
            return None;
        };
        let database = server.database().unwrap();
        Some(Self { server, database, dir: TempDir::new().unwrap() })
    }

    pub fn files(&self) -> StoreFiles {
        StoreFiles::of(self.dir.path())
    }

    pub fn host(&self) -> Host {
        host(self.dir.path())
    }

    pub fn url(&self) -> String {
        self.server.url(&self.database)
    }

    pub fn sql(&self, sql: &str) -> String {
        self.server.psql(&self.database, &format!("SET search_path = plexus; {sql}")).unwrap()
    }

    /// Joins the database as the hub of this machine.
    pub fn join(&self) -> SqlStore {
        common::postgres(&self.url(), &self.host()).unwrap()
    }

    pub fn migrate(&self, to: To) -> Result<Moved, MigrateError> {
        self.migrate_with(to, &mut StopAt(None))
    }

    pub fn migrate_with(&self, to: To, observer: &mut dyn Observer) -> Result<Moved, MigrateError> {
        migrate_in(self.dir.path(), &self.url(), to, observer)
    }

    /// The content of the file.
    pub fn dump(&self) -> String {
        dump(&self.files().sqlite())
    }

    /// A copy of the data directory and of the database.
    pub fn copy(&self) -> Self {
        let dir = TempDir::new().unwrap();
        for entry in std::fs::read_dir(self.dir.path()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
        }
        Self { server: self.server, database: self.server.database().unwrap(), dir }
    }

    /// A machine with the file of an earlier version.
    pub fn of_earlier_version(test: &str) -> Option<Self> {
        let machine = Self::empty(test)?;
        let saved = "../../tests/fixtures/data-dir-v1/data/plexus.db";
        let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join(saved);
        std::fs::copy(saved, machine.files().sqlite()).unwrap();
        Some(machine)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// The machine with this data directory.
fn host(dir: &Path) -> Host {
    Host {
        name: HostName::try_from("laptop".to_owned()).unwrap(),
        machine: dir.display().to_string(),
        commit_count: StoreFiles::of(dir).commit_count(),
        capacity: Capacity::default(),
    }
}

pub fn migrate_in(dir: &Path, url: &str, to: To, observer: &mut dyn Observer) -> Result<Moved, MigrateError> {
    let (files, host) = (StoreFiles::of(dir), host(dir));
    let address = PostgresAddress::parse(url).unwrap();
    let migration = Migration { files: &files, address: &address, host: &host };
    match to {
        To::Postgres => to_postgres(&migration, observer),
        To::Sqlite => to_sqlite(&migration, observer),
    }
}

/// Runs a future to its end, on a runtime of its own.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

#[expect(clippy::disallowed_methods, reason = "the test reads the file without the store")]
pub fn open(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

/// All rows of all tables of a file, except the search index, which is in a format of its own.
pub fn dump(path: &Path) -> String {
    let connection = open(path);
    let mut tables = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'node_text*' ORDER BY name")
        .unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(tables.len() > 20 && tables.contains(&"sqlite_sequence".to_owned()), "{tables:?}");
    let mut dump = String::new();
    for table in tables {
        let mut lines = rows(&connection, &table);
        lines.sort_unstable();
        writeln!(dump, "# {table}: {}\n{}", lines.len(), lines.join("\n")).unwrap();
    }
    dump
}

fn rows(connection: &Connection, table: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([]).unwrap();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let value = |(i, name): (usize, &String)| match row.get_ref(i).unwrap() {
            ValueRef::Text(text) => format!("{name}={:?}", std::str::from_utf8(text).unwrap()),
            other => format!("{name}={other:?}"),
        };
        lines.push(names.iter().enumerate().map(value).collect::<Vec<_>>().join(" "));
    }
    lines
}
