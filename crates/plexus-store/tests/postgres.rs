//! Failures of PostgreSQL and of the connection to it. A proxy between store and server cuts the connection at a chosen statement.
#![cfg(test)]

mod common;

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use plexus_protocol::SessionId;
use plexus_store::{Arbor as _, Change, Ledger as _, SqlStore, Store as _, StoreError};
use plexus_testkit::postgres::{Postgres, SOCKET, url};
use plexus_testkit::skip;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use common::{NOW, new_session};

/// The time limit for a commit.
const LIMIT: Duration = Duration::from_secs(20);

/// A store in a new database, behind a proxy.
struct World {
    server: &'static Postgres,
    database: String,
    proxy: Proxy,
    store: SqlStore,
}

impl World {
    fn new(test: &str) -> Option<Self> {
        let Some(server) = Postgres::shared() else {
            skip(test, "PostgreSQL");
            return None;
        };
        let database = server.database().unwrap();
        let proxy = Proxy::start(server.socket());
        let store = common::postgres(&url(proxy.dir.path(), &database), &common::host("one")).unwrap();
        Some(Self { server, database, proxy, store })
    }

    fn sql(&self, sql: &str) -> String {
        self.server.psql(&self.database, &format!("SET search_path = plexus; {sql}")).unwrap()
    }

    async fn create(&self, name: &str) -> SessionId {
        let new = new_session(name);
        let id = new.id;
        self.store.commit(NOW, vec![Change::CreateSession(Box::new(new))]).await.unwrap();
        id
    }

    /// Ends all connections to the database, as a restart of the server does.
    fn terminate_connections(&self) {
        self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()");
    }
}

/// Forwards connections to a server.
struct Proxy {
    dir: TempDir,
    cut: Arc<Mutex<Option<Cut>>>,
}

/// Where the next connection is cut.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    /// Before the server receives COMMIT.
    BeforeCommit,
    /// After the server has received COMMIT, before the store receives the answer.
    AfterCommit,
}

impl Proxy {
    fn start(server: PathBuf) -> Self {
        let dir = TempDir::new().unwrap();
        let listener = UnixListener::bind(dir.path().join(SOCKET)).unwrap();
        let cut = Arc::<Mutex<Option<Cut>>>::default();
        let due = Arc::clone(&cut);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, due) = (client.unwrap(), Arc::clone(&due));
                let server = UnixStream::connect(&server).unwrap();
                let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                // What the server answers after the cut is read, so that the server can finish, and dropped.
                let deaf = Arc::<Mutex<bool>>::default();
                let is_deaf = Arc::clone(&deaf);
                thread::spawn(move || forward(from_server, to_client, |_| !*is_deaf.lock().unwrap()));
                thread::spawn(move || {
                    let ended = client.try_clone().unwrap();
                    forward(client, server.try_clone().unwrap(), |bytes| {
                        let mut due = due.lock().unwrap();
                        let Some(cut) = *due else { return true };
                        if !is_commit(bytes) {
                            return true;
                        }
                        *due = None;
                        *deaf.lock().unwrap() = true;
                        ended.shutdown(Shutdown::Both).unwrap();
                        cut == Cut::AfterCommit
                    });
                });
            }
        });
        Self { dir, cut }
    }

    fn cut_next(&self, cut: Cut) {
        *self.cut.lock().unwrap() = Some(cut);
    }

    fn has_cut(&self) -> bool {
        self.cut.lock().unwrap().is_none()
    }
}

/// Copies bytes as long as `pass` returns true for them.
fn forward(mut from: UnixStream, mut to: UnixStream, mut pass: impl FnMut(&[u8]) -> bool) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read) = from.read(&mut bytes)
        && read > 0
    {
        if pass(&bytes[..read]) && to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn is_commit(bytes: &[u8]) -> bool {
    bytes.windows(7).any(|part| part == b"COMMIT\0")
}

fn notice(session: SessionId, text: &str) -> Change {
    Change::Notice { to: "operator".to_owned(), session, data: json!(text) }
}

/// The texts of all notices, in the order of the feed.
fn notices(world: &World) -> Vec<String> {
    world
        .sql("SELECT data FROM feed WHERE kind = 'notice' ORDER BY number")
        .lines()
        .map(str::to_owned)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_reported_as_it_was() {
    let Some(world) = World::new("a_commit_whose_answer_is_lost_is_reported_as_it_was") else { return };
    let session = world.create("a").await;
    // Completes the search index: its transactions must not be the ones that are cut.
    world.store.search("word", None, None, 1).await.unwrap();
    for round in 0..20 {
        world.proxy.cut_next(Cut::AfterCommit);
        let stored = world.store.commit(NOW, vec![notice(session, &format!("after {round}"))]).await;
        assert!(world.proxy.has_cut());
        // The server may notice the end of the connection before it executes COMMIT, or after.
        let is_there = notices(&world).contains(&format!("\"after {round}\""));
        assert_eq!(stored.is_ok(), is_there, "round {round}: {stored:?}");

        world.proxy.cut_next(Cut::BeforeCommit);
        let lost = world.store.commit(NOW, vec![notice(session, "before")]).await;
        assert!(matches!(lost, Err(StoreError::Unavailable(_))), "{lost:?}");
    }
    assert!(!notices(&world).contains(&"\"before\"".to_owned()));
    assert!(world.store.audit_head().await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_continue_after_the_search_index_has_lost_the_answer_to_a_commit() {
    let test = "commits_continue_after_the_search_index_has_lost_the_answer_to_a_commit";
    let Some(world) = World::new(test) else { return };
    let mut names = (0..).map(|number| format!("session-{number}"));
    let session = loop {
        let session = world.create(&names.next().unwrap()).await;
        world.proxy.cut_next(Cut::AfterCommit);
        // It fails if its transaction was cut. The index may be complete before, because the writing thread also adds to it when it is idle.
        let _ = world.store.search("word", None, None, 1).await;
        if world.proxy.has_cut() {
            break session;
        }
        *world.proxy.cut.lock().unwrap() = None;
    };
    let next = world.store.commit(NOW, vec![notice(session, "next")]);
    timeout(LIMIT, next).await.expect("the writing thread continues").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_connection_is_replaced_before_its_next_use() {
    let Some(world) = World::new("a_closed_connection_is_replaced_before_its_next_use") else { return };
    let session = world.create("a").await;
    for round in 0..10 {
        assert_eq!(world.store.sessions().await.unwrap().len(), 1);
        assert!(world.store.session(session).await.unwrap().is_some());
        world.terminate_connections();
        world.store.commit(NOW, vec![notice(session, "on")]).await.unwrap();
        assert_eq!(notices(&world).len(), round + 1);
    }
    assert_eq!(world.store.sessions().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_fails_refuses_its_own_commit_only() {
    let Some(world) = World::new("a_statement_that_fails_refuses_its_own_commit_only") else { return };
    let session = world.create("a").await;
    world.sql("ALTER TABLE positions ADD CHECK (position < 100)");
    let position = |reader: &str, position| {
        let reader = reader.to_owned();
        vec![Change::Position { reader, session, turn: 1, position }]
    };
    for round in 0..10 {
        // The first commit keeps the writing thread busy, so the others become a group.
        let name = |i: u64| format!("{round}-{i}");
        let commits = (0..20).map(|i| {
            let commit = position(&name(i), if i % 5 == 3 { 200 } else { i });
            world.store.commit(NOW, commit)
        });
        let answers = futures::future::join_all(commits).await;
        for (i, answer) in answers.into_iter().enumerate() {
            let i = i as u64;
            assert_eq!(answer.is_err(), i % 5 == 3, "{i}: {answer:?}");
            let stored = world.store.position(&name(i), session, 1).await.unwrap();
            assert_eq!(stored, if i % 5 == 3 { 0 } else { i });
        }
    }
    let transactions = world.store.transactions();
    assert!(transactions < 200, "no commits shared a transaction: {transactions}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_text_is_read_as_it_was_written() {
    let Some(world) = World::new("every_text_is_read_as_it_was_written") else { return };
    let session = world.create("a").await;
    common::start_run(&world.store, session).await;
    let text = "NUL \0, escape \u{1}, \u{1}0, quote ' and \u{10FFFF}";
    let turn = Change::StartTurn { session, turn: 1, prompt: text.to_owned(), woken_to: None };
    world.store.commit(NOW, vec![turn, common::says(session, 1, text), notice(session, text)]).await.unwrap();
    assert_eq!(world.store.turn(session, 1).await.unwrap().unwrap().prompt, text);
    let events = world.store.events(session, 1, 0, 10).await.unwrap();
    let event: Value = serde_json::from_str(events[0].event.as_str()).unwrap();
    assert!(event.to_string().contains(&json!(text).to_string()), "{event}");
    common::ask(&world.store, common::question(session, 1, text)).await;
    assert_eq!(world.store.sessions_with_state().await.unwrap()[0].open[0].tool_use_id, text);
    assert!(world.store.search("nothing", None, None, 10).await.unwrap().is_empty());
}
