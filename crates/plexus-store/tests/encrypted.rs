//! Encrypted connections to PostgreSQL, and passwords. The server has a certificate for `db.example` and listens on 127.0.0.1.
#![cfg(test)]

mod common;

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use plexus_store::{Ledger as _, PostgresAddress, SqlStore, Store as _, StoreError};
use plexus_testkit::authority::Authority;
use plexus_testkit::postgres::Postgres;
use plexus_testkit::skip;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use common::{NOW, host, new_session};

const PASSWORD: &str = "A-SECRET: \\ and more";
const LIMIT: Duration = Duration::from_secs(20);

/// The server of all tests, and the authority of its certificate.
struct Server {
    postgres: Postgres,
    authority: Authority,
}

impl Server {
    fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        let start = || {
            let authority = Authority::new().unwrap();
            let postgres = Postgres::with_certificate(&authority, "db.example").unwrap()?;
            let roles = format!("CREATE ROLE hub LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE certified LOGIN");
            postgres.psql("postgres", &roles).unwrap();
            Some(Self { postgres, authority })
        };
        SERVER.get_or_init(start).as_ref()
    }
}

/// A new database on that server, and a directory for the files of the hub.
struct World {
    server: &'static Server,
    database: String,
    files: TempDir,
}

impl World {
    fn new(test: &str) -> Option<Self> {
        let Some(server) = Server::shared() else {
            skip(test, "PostgreSQL");
            return None;
        };
        let database = server.postgres.database().unwrap();
        server.postgres.psql("postgres", &format!("ALTER DATABASE {database} OWNER TO hub")).unwrap();
        let world = Self { server, database, files: TempDir::new().unwrap() };
        world.file("ca.pem", &server.authority.pem());
        world.file("password", &format!("{PASSWORD}\n"));
        Some(world)
    }

    /// A file that only its owner can read.
    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.files.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// An address with this place, such as `hub@localhost`, and these parameters. `FILES` is the directory of the files.
    fn address(&self, place: &str, parameters: &str) -> PostgresAddress {
        let parameters = parameters.replace("FILES", self.files.path().to_str().unwrap());
        let (port, database) = (self.server.postgres.port(), &self.database);
        PostgresAddress::parse(&format!("postgres://{place}:{port}/{database}?{parameters}")).unwrap()
    }

    /// Connects as `hub` with its password to the host `db.example`, which is at 127.0.0.1.
    fn connect(&self, parameters: &str) -> Result<SqlStore, StoreError> {
        let address = self.address("hub@db.example", &format!("hostaddr=127.0.0.1&{parameters}"));
        connect(&address.with_password_file(Some(self.files.path().join("password"))))
    }

    fn sql(&self, sql: &str) -> String {
        self.server.postgres.psql(&self.database, sql).unwrap()
    }

    /// The number of connections of the hub that are encrypted, or not.
    fn connections(&self, encrypted: &str) -> usize {
        let sql = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
            WHERE application_name = 'plexus' AND datname = current_database() AND ssl =";
        self.sql(&format!("{sql} {encrypted}")).parse().unwrap()
    }
}

fn connect(address: &PostgresAddress) -> Result<SqlStore, StoreError> {
    SqlStore::postgres(address, &host("one"))
}

/// The reason of an error that waiting does not repair. It shows no password.
fn refused(connected: Result<SqlStore, StoreError>) -> String {
    match connected.err() {
        Some(StoreError::Unusable(why)) => {
            assert!(!why.contains("SECRET"), "{why}");
            why
        }
        other => panic!("not refused: {other:?}"),
    }
}

async fn create(store: &SqlStore, name: &str) -> Result<(), StoreError> {
    let session = plexus_store::Change::CreateSession(Box::new(new_session(name)));
    store.commit(NOW, vec![session]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_to_another_machine_is_encrypted_by_default() {
    let Some(world) = World::new("every_connection_to_another_machine_is_encrypted_by_default") else {
        return;
    };
    let store = world.connect("sslrootcert=FILES/ca.pem").unwrap();
    create(&store, "a").await.unwrap();
    assert_eq!(store.sessions().await.unwrap().len(), 1);
    let fleet = Arc::clone(store.fleet().unwrap());
    let connection = Arc::clone(&fleet);
    tokio::spawn(async move { connection.run().await });
    fleet.last_commit().await.unwrap();
    // A writer, a reader and the connection to other hubs.
    assert!(world.connections("true") >= 3, "{}", world.connections("true"));
    assert_eq!(world.connections("false"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_authority_is_refused() {
    let Some(world) = World::new("a_server_of_another_authority_is_refused") else { return };
    world.file("other.pem", &Authority::new().unwrap().pem());
    for parameters in [
        "sslrootcert=FILES/other.pem",
        "sslmode=verify-ca&sslrootcert=FILES/other.pem",
        "sslmode=require&sslrootcert=FILES/other.pem",
    ] {
        let why = refused(world.connect(parameters));
        assert!(why.contains("not trusted") && why.contains("sslrootcert"), "{parameters}: {why}");
    }
    // By default the authorities of the system are trusted. This machine may have none.
    for parameters in ["", "sslmode=verify-full", "sslrootcert=system"] {
        assert!(refused(world.connect(parameters)).contains("sslrootcert"), "{parameters}");
    }
    assert_eq!(world.sql("SELECT to_regnamespace('plexus') IS NULL"), "t", "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_the_certificate_of_another_host_is_refused() {
    let Some(world) = World::new("a_server_with_the_certificate_of_another_host_is_refused") else { return };
    let password = Some(world.files.path().join("password"));
    for place in ["hub@127.0.0.1", "hub@localhost"] {
        let at = |parameters: &str| {
            let common = "hostaddr=127.0.0.1&sslrootcert=FILES/ca.pem";
            let address = world.address(place, &format!("{common}&{parameters}"));
            connect(&address.with_password_file(password.clone()))
        };
        let why = refused(at("sslmode=verify-full"));
        assert!(why.contains("not the host in the address") && why.contains("db.example"), "{why}");
        refused(at(""));
        at("sslmode=verify-ca").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unverified_connection_is_encrypted_if_the_address_asks_for_it() {
    let test = "an_unverified_connection_is_encrypted_if_the_address_asks_for_it";
    let Some(world) = World::new(test) else { return };
    let _store = world.connect("sslmode=require").unwrap();
    assert!(world.connections("true") > 0);
    assert_eq!(world.connections("false"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn this_machine_is_reached_without_encryption_by_default() {
    let Some(world) = World::new("this_machine_is_reached_without_encryption_by_default") else { return };
    let password = Some(world.files.path().join("password"));
    let address = world.address("hub@localhost", "hostaddr=127.0.0.1").with_password_file(password.clone());
    let store = connect(&address).unwrap();
    assert_eq!(world.connections("true"), 0);
    drop(store);
    let preferred = world.address("hub@127.0.0.1", "sslmode=prefer").with_password_file(password);
    let _store = connect(&preferred).unwrap();
    assert!(world.connections("true") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_refused() {
    let Some(world) = World::new("a_server_without_tls_is_refused") else { return };
    let plain = Postgres::shared().unwrap();
    let database = plain.database().unwrap();
    let port = forward(plain.socket());
    let url = |place: &str, parameters: &str| {
        let ca = world.files.path().join("ca.pem");
        let parameters = parameters.replace("CA", ca.to_str().unwrap());
        PostgresAddress::parse(&format!("postgres://{place}:{port}/{database}?{parameters}")).unwrap()
    };
    for parameters in ["sslrootcert=CA", "sslmode=require", "sslmode=verify-ca&sslrootcert=CA"] {
        let address = url("plexus@db.example", &format!("hostaddr=127.0.0.1&{parameters}"));
        let why = refused(connect(&address));
        assert!(why.contains("does not support TLS") && why.contains("sslmode=disable"), "{why}");
    }
    connect(&url("plexus@db.example", "hostaddr=127.0.0.1&sslmode=disable")).unwrap();
    connect(&url("plexus@localhost", "hostaddr=127.0.0.1&sslmode=prefer")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_or_missing_password_is_refused() {
    let Some(world) = World::new("a_wrong_or_missing_password_is_refused") else { return };
    let address = || world.address("hub@db.example", "hostaddr=127.0.0.1&sslrootcert=FILES/ca.pem");
    let wrong = world.file("wrong", "another-SECRET\n");
    let why = refused(connect(&address().with_password_file(Some(wrong))));
    assert!(why.contains("password authentication failed") && why.contains(&world.database), "{why}");
    let why = refused(connect(&address()));
    assert!(why.contains("password missing") && why.contains("password_file"), "{why}");
    let exposed = world.file("exposed", PASSWORD);
    std::fs::set_permissions(&exposed, Permissions::from_mode(0o644)).unwrap();
    let why = refused(connect(&address().with_password_file(Some(exposed))));
    assert!(why.contains("chmod 600"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_file_of_libpq_is_used() {
    let Some(world) = World::new("the_password_file_of_libpq_is_used") else { return };
    let escaped = PASSWORD.replace('\\', r"\\").replace(':', r"\:");
    let port = world.server.postgres.port();
    let lines = format!("# hubs\nother:*:*:*:wrong\ndb.example:{port}:{}:hub:{escaped}\n", world.database);
    let pgpass = world.file("pgpass", &lines);
    let connect_with = |pgpass: &Path| {
        let address = world.address("hub@db.example", "hostaddr=127.0.0.1&sslrootcert=FILES/ca.pem");
        connect(&address.with_pgpass(Some(pgpass.to_owned())))
    };
    create(&connect_with(&pgpass).unwrap(), "a").await.unwrap();
    std::fs::set_permissions(&pgpass, Permissions::from_mode(0o640)).unwrap();
    assert!(refused(connect_with(&pgpass)).contains("password missing"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_replaces_the_password() {
    let Some(world) = World::new("a_certificate_replaces_the_password") else { return };
    world.sql(&format!("ALTER DATABASE {} OWNER TO certified", world.database));
    let own = world.server.authority.client("certified").unwrap();
    let (_, key) = (world.file("hub.pem", &own.certificate), world.file("hub.key", &own.key));
    let stranger = Authority::new().unwrap().client("certified").unwrap();
    world.file("stranger.pem", &stranger.certificate);
    world.file("stranger.key", &stranger.key);
    let connect_with = |parameters: &str| {
        let common = "hostaddr=127.0.0.1&sslrootcert=FILES/ca.pem";
        connect(&world.address("certified@db.example", &format!("{common}&{parameters}")))
    };
    let store = connect_with("sslcert=FILES/hub.pem&sslkey=FILES/hub.key").unwrap();
    create(&store, "a").await.unwrap();
    assert!(refused(connect_with("")).contains("certificate"));
    assert!(connect_with("sslcert=FILES/stranger.pem&sslkey=FILES/stranger.key").is_err());
    let why = refused(connect_with("sslcert=FILES/hub.pem&sslkey=FILES/stranger.key"));
    assert!(why.contains("stranger.key"), "{why}");
    assert!(refused(connect_with("sslcert=FILES/none.pem&sslkey=FILES/hub.key")).contains("none.pem"));
    std::fs::set_permissions(key, Permissions::from_mode(0o644)).unwrap();
    assert!(refused(connect_with("sslcert=FILES/hub.pem&sslkey=FILES/hub.key")).contains("chmod 600"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proof_of_the_password_is_bound_to_the_certificate() {
    let Some(world) = World::new("the_proof_of_the_password_is_bound_to_the_certificate") else { return };
    world.connect("sslrootcert=FILES/ca.pem&channel_binding=require").unwrap();
    let plain = refused(world.connect("sslmode=disable&channel_binding=require"));
    assert!(plain.contains("channel binding"), "{plain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_connection_that_was_closed_is_replaced() {
    let Some(world) = World::new("an_encrypted_connection_that_was_closed_is_replaced") else { return };
    let store = world.connect("sslrootcert=FILES/ca.pem").unwrap();
    for round in 0..5 {
        create(&store, &format!("a-{round}")).await.unwrap();
        assert_eq!(store.sessions().await.unwrap().len(), round + 1);
        world.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE pid <> pg_backend_pid() AND datname = current_database()",
        );
        let ended = async {
            while world.connections("true") > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LIMIT, ended).await.unwrap();
    }
    create(&store, "last").await.unwrap();
    assert_eq!(world.connections("false"), 0);
}

/// Forwards connections from a port of 127.0.0.1 to a socket.
fn forward(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let client: TcpStream = client.unwrap();
            let server = UnixStream::connect(&socket).unwrap();
            let (to_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || {
                copy(&client, &to_server);
                let _ = to_server.shutdown(Shutdown::Both);
            });
            thread::spawn(move || {
                copy(&server, &to_client);
                let _ = to_client.shutdown(Shutdown::Both);
            });
        }
    });
    port
}

fn copy(mut from: impl Read, mut to: impl Write) {
    let _ = std::io::copy(&mut from, &mut to);
}
