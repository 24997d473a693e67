//! Internals: how commits are grouped, and how a failing commit affects the others of its group.

use plexus_protocol::arbor::Role;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use plexus_protocol::{AskedOf, NodeId, SessionId, TreeId};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::sql::columns::ToColumn;
use crate::sql::statements;
use crate::sqlite::{DIALECT, Durability, SqliteFile};
use crate::{NewSession, NodeRow, Refusal};

const LIMIT: Duration = Duration::from_secs(20);

/// A change that only carries a word to the function that the store was opened with.
fn word(word: &str) -> Vec<Change> {
    vec![Change::Notice { to: word.to_owned(), session: SessionId::random(), data: Value::Null }]
}

/// A store whose commits insert their words into a table. `fault` runs after each insert and may fail or panic.
fn scratch(
    mut fault: impl FnMut(&dyn Database, &str) -> Result<(), StoreError> + Send + 'static,
) -> (TempDir, SqlStore) {
    let dir = TempDir::new().unwrap();
    let apply: Apply = Box::new(move |database, _, _, changes| {
        database.run("CREATE TABLE IF NOT EXISTS words (word TEXT NOT NULL)", ())?;
        for change in changes {
            let Change::Notice { to, .. } = change else { panic!("only words") };
            database.run("INSERT INTO words VALUES (?1)", [to])?;
            fault(database, to)?;
        }
        Ok(Committed::default())
    });
    let file = SqliteFile::prepare(&dir.path().join("db"), Durability::Full).unwrap();
    let store = SqlStore::start_with(Arc::new(file), apply).unwrap();
    (dir, store)
}

async fn words(store: &SqlStore) -> Vec<String> {
    let sql = "SELECT word FROM words ORDER BY rowid";
    store.readers.read(move |database| database.all(sql, (), |row| row.get(0))).await.unwrap()
}

/// Stops the writer inside a commit while others queue up.
struct Gate {
    entered: mpsc::Receiver<()>,
    leave: mpsc::Sender<()>,
}

impl Gate {
    /// The gate, and a fault that stops the commit `wait` at it and calls `then`.
    fn before(
        mut then: impl FnMut(&dyn Database, &str) -> Result<(), StoreError> + Send + 'static,
    ) -> (Self, impl FnMut(&dyn Database, &str) -> Result<(), StoreError> + Send + 'static) {
        let (enter, entered) = mpsc::channel();
        let (leave, left) = mpsc::channel();
        let fault = move |database: &dyn Database, word: &str| {
            if word == "wait" {
                enter.send(()).unwrap();
                left.recv_timeout(LIMIT).unwrap();
            }
            then(database, word)
        };
        (Self { entered, leave }, fault)
    }

    /// Commits `wait`, and all of `queued` as one group behind it.
    async fn commit_behind(&self, store: &SqlStore, queued: &[&str]) -> Vec<Result<Committed, StoreError>> {
        let mut first = Box::pin(store.commit(0, word("wait")));
        assert!(poll_once(&mut first).await.is_none());
        self.entered.recv_timeout(LIMIT).unwrap();
        let mut waiting: Vec<_> = queued.iter().map(|text| Box::pin(store.commit(0, word(text)))).collect();
        for commit in &mut waiting {
            assert!(poll_once(commit).await.is_none(), "acknowledged before it could be durable");
        }
        self.leave.send(()).unwrap();
        tokio::time::timeout(LIMIT, first).await.unwrap().unwrap();
        let mut answers = Vec::new();
        for commit in waiting {
            answers.push(tokio::time::timeout(LIMIT, commit).await.unwrap());
        }
        answers
    }
}

/// `None` if the future is not ready. A commit is in the queue once it has been polled.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|context| match Pin::new(&mut *future).poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[tokio::test]
async fn commits_that_wait_together_share_one_transaction() {
    let (gate, fault) = Gate::before(|_, _| Ok(()));
    let (_dir, store) = scratch(fault);
    let names: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let queued: Vec<&str> = names.iter().map(String::as_str).collect();
    let answers = gate.commit_behind(&store, &queued).await;
    assert!(answers.iter().all(Result::is_ok));
    // One for `wait`, which was alone, and one for the hundred behind it.
    assert_eq!(store.transactions(), 2);
    assert_eq!(words(&store).await[1..], queued);
}

#[tokio::test]
async fn a_refused_commit_does_not_affect_others_of_its_group() {
    let (gate, fault) = Gate::before(|_, word| match word {
        "refuse" => Err(Refusal::KeyTaken.into()),
        _ => Ok(()),
    });
    let (_dir, store) = scratch(fault);
    let answers = gate.commit_behind(&store, &["a", "refuse", "b"]).await;
    assert!(
        matches!(&answers[..], [Ok(_), Err(StoreError::Refused(Refusal::KeyTaken)), Ok(_)]),
        "{answers:?}"
    );
    assert_eq!(store.transactions(), 2);
    assert_eq!(words(&store).await, ["wait", "a", "b"]);
}

#[tokio::test]
async fn a_panic_in_one_commit_affects_neither_the_others_nor_the_writer() {
    let (gate, fault) = Gate::before(|_, word| {
        assert_ne!(word, "panic");
        Ok(())
    });
    let (_dir, store) = scratch(fault);
    let answers = gate.commit_behind(&store, &["a", "panic", "b"]).await;
    assert!(matches!(&answers[..], [Ok(_), Err(StoreError::Unavailable(_)), Ok(_)]), "{answers:?}");
    store.commit(0, word("c")).await.unwrap();
    assert_eq!(words(&store).await, ["wait", "a", "b", "c"]);
}

#[tokio::test]
async fn a_full_database_stores_nothing_partially_and_recovers() {
    let room = Arc::new(AtomicU32::new(0));
    let limit = Arc::clone(&room);
    let (_dir, store) = scratch(move |database, word| {
        if word == "limit" {
            let pages = limit.load(Ordering::Relaxed);
            database.one(format!("PRAGMA max_page_count = {pages}").leak(), (), |_| Ok(()))?;
        }
        Ok(())
    });
    // SQLite raises the limit to the current size: from here on the file cannot grow.
    room.store(1, Ordering::Relaxed);
    store.commit(0, word("limit")).await.unwrap();
    let large = "x".repeat(100_000);
    let full = store.commit(0, word(&large)).await;
    assert!(matches!(full, Err(StoreError::Unavailable(_))), "{full:?}");
    assert_eq!(words(&store).await, ["limit"]);

    room.store(1_000_000, Ordering::Relaxed);
    store.commit(0, word("limit")).await.unwrap();
    store.commit(0, word(&large)).await.unwrap();
    assert_eq!(words(&store).await, ["limit", "limit", large.as_str()]);
}

#[tokio::test]
async fn a_lost_transaction_fails_all_of_its_commits_and_the_writer_continues() {
    let (gate, fault) = Gate::before(|database, word| {
        if word == "lose" {
            // SQLite does this itself after some I/O errors.
            database.run("ROLLBACK", ())?;
            return Err(StoreError::Unavailable("lost".to_owned()));
        }
        Ok(())
    });
    let (_dir, store) = scratch(fault);
    let answers = gate.commit_behind(&store, &["a", "lose", "b"]).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(StoreError::Unavailable(_)))), "{answers:?}");
    store.commit(0, word("c")).await.unwrap();
    assert_eq!(words(&store).await, ["wait", "c"]);
}

#[tokio::test]
async fn closing_finishes_queued_commits_and_refuses_later_ones() {
    let (dir, store) = scratch(|_, _| Ok(()));
    let mut queued = Box::pin(store.commit(0, word("queued")));
    let _ = poll_once(&mut queued).await;
    store.close();
    store.close();
    assert!(matches!(store.commit(0, word("late")).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.sessions().await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.approval(ApprovalId::random()).await, Err(StoreError::Unavailable(_))));
    let again = SqlStore::sqlite(&dir.path().join("db"), Durability::Full).unwrap();
    assert_eq!(words(&again).await, ["queued"]);
}

#[tokio::test]
async fn a_reading_thread_survives_a_failed_read() {
    let (_dir, store) = scratch(|_, _| Ok(()));
    let panicked = store.row_readers.read(|_| -> Result<(), StoreError> { panic!("on purpose") }).await;
    assert!(matches!(panicked, Err(StoreError::Unavailable(_))), "{panicked:?}");
    let failed = store.row_readers.read(|database| database.run("not SQL", ())).await;
    assert!(failed.is_err());
    assert!(store.approval(ApprovalId::random()).await.unwrap().is_none());
}

/// The row reads of others wait in a queue of their own, one of each caller at a time.
#[tokio::test]
async fn a_flood_of_row_reads_delays_neither_the_operator_nor_other_callers() {
    use crate::OnBehalf;

    let (_dir, store) = scratch(|_, _| Ok(()));
    let store = Arc::new(store);
    let (let_go, held) = mpsc::channel::<()>();
    let mut held = Some(held);
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut reads = Vec::new();
    for caller in ["flood"; 20].into_iter().chain(["other"]) {
        let (store, order, held) = (Arc::clone(&store), Arc::clone(&order), held.take());
        let read = async move {
            let noted = move |_: &dyn Database| {
                // The first read ends when the test has queued all others.
                let _ = held.map(|held| held.recv());
                order.lock().unwrap().push(caller);
                Ok::<_, StoreError>(())
            };
            store.row_readers.read(noted).await
        };
        reads.push(tokio::spawn(OnBehalf::caller(caller).perform(read)));
        tokio::task::yield_now().await;
    }
    assert!(store.approval(ApprovalId::random()).await.unwrap().is_none(), "the operator does not wait");
    assert!(order.lock().unwrap().is_empty(), "the flood is still held");
    drop(let_go);
    for read in reads {
        read.await.unwrap().unwrap();
    }
    let position = order.lock().unwrap().iter().position(|caller| *caller == "other");
    assert!(position.is_some_and(|position| position <= 1), "{position:?}");
}

#[tokio::test]
async fn closing_finishes_queued_row_reads() {
    let (_dir, store) = scratch(|_, _| Ok(()));
    let mut queued = Box::pin(store.approval(ApprovalId::random()));
    let _ = poll_once(&mut queued).await;
    store.close();
    assert!(queued.await.unwrap().is_none());
}

/// Many callers send many slow reads.
#[tokio::test]
async fn a_flood_of_reads_leaves_the_operator_a_reader() {
    use crate::OnBehalf;

    let (_dir, store) = scratch(|_, _| Ok(()));
    let store = Arc::new(store);
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let (began, mut beginning) = tokio::sync::mpsc::unbounded_channel();
    let mut flood = Vec::new();
    for caller in 0..10 {
        for _ in 0..10 {
            let (store, held, began) = (Arc::clone(&store), Arc::clone(&held), began.clone());
            let read = async move {
                let slow = move |_: &dyn Database| {
                    let _ = began.send(());
                    let _ = held.lock().unwrap().recv();
                    Ok::<_, StoreError>(())
                };
                store.readers.read(slow).await
            };
            flood.push(tokio::spawn(OnBehalf::caller(&format!("session:{caller}")).perform(read)));
        }
    }
    for _ in 0..4 {
        beginning.recv().await;
    }
    assert!(store.sessions().await.unwrap().is_empty());
    assert!(store.sessions_with_state().await.unwrap().is_empty());
    assert!(beginning.try_recv().is_err(), "the flood has all shared readers");
    assert!(!flood.iter().any(tokio::task::JoinHandle::is_finished), "and still has them");
    drop(let_go);
    for read in flood {
        read.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn every_read_uses_an_index() {
    let (_dir, store) = scratch(|_, _| Ok(()));
    let dialect = &DIALECT;
    let own = [dialect.unindexed_nodes, dialect.is_indexed];
    for sql in statements::ALL.iter().chain(&own) {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        // The plan does not depend on the parameters.
        let params = (1..20).filter(|number| sql.contains(&format!("?{number}"))).count();
        let read = store.readers.read(move |database| {
            let mut plan = Vec::new();
            let null: &dyn ToColumn = &None::<String>;
            database.query(explain.leak(), &vec![null; params], &mut |row| {
                plan.push(row.get::<String>("detail")?);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(plan)
        });
        let plan = read.await.unwrap();
        for step in &plan {
            // A statement without parameters returns the whole partial index, so a scan of that index is fine. So does one for a host: a file has
            // none.
            let returns_all = !sql.contains('?') || *sql == statements::OPEN_RUNS;
            let whole =
                ["sessions_living", "sessions_living_name", "runs_open", "approvals_open", "rules_in_force"];
            let goes_through = |index: &&str| step.ends_with(&format!("INDEX {index}"));
            let allowed = step.starts_with("SEARCH ")
                || (returns_all && whole.iter().any(goes_through))
                || ["SCAN CONSTANT ROW", "MERGE (UNION ALL)", "LEFT", "RIGHT"].contains(&step.as_str())
                || step.contains("SCALAR SUBQUERY")
                // The rows of a subquery with a limit.
                || (sql.contains(" LIMIT ")
                    && (step.starts_with("CO-ROUTINE ") || ["SCAN c", "SCAN latest"].contains(&step.as_str())))
                || (sql.contains("FROM (SELECT") && step == "USE TEMP B-TREE FOR GROUP BY")
                || (sql.contains("settled_at IS NULL") && step == "USE TEMP B-TREE FOR ORDER BY");
            assert!(allowed, "{sql}\n{plan:?}");
        }
    }
}

#[tokio::test]
async fn a_message_in_parts_is_one_node() {
    let dir = TempDir::new().unwrap();
    let store = SqlStore::sqlite(&dir.path().join("db"), Durability::Normal).unwrap();
    let new = session("a");
    let (id, tree, parent) = (new.id, new.tree, new.head);
    let node = NodeRow {
        id: NodeId::random(),
        tree,
        parent,
        role: Role::Assistant,
        content: json!([1]),
        turn: 1,
        uuid: None,
    };
    let extend =
        Change::ExtendNode { node: node.id, blocks: vec![json!({"type": "text"}), json!(3)], uuid: None };
    let of_node = node.id.to_string();
    let changes = vec![Change::CreateSession(Box::new(new)), Change::AddNode(id, Arc::new(node)), extend];
    store.commit(0, changes).await.unwrap();
    let read = store.readers.read(move |database| {
        database.only("SELECT role, content FROM nodes WHERE id = ?1", [of_node], |row| {
            Ok((row.get::<String>(0)?, row.get::<String>(1)?))
        })
    });
    assert_eq!(read.await.unwrap(), ("assistant".to_owned(), r#"[1,{"type":"text"},3]"#.to_owned()));
    assert!(
        store
            .commit(0, vec![Change::ExtendNode { node: NodeId::random(), blocks: Vec::new(), uuid: None }])
            .await
            .is_err()
    );
}

/// A node with this text below `parent`.
fn said(new: &NewSession, parent: NodeId, text: String) -> NodeRow {
    let content = json!([{"type": "text", "text": text}]);
    let (id, tree) = (NodeId::random(), new.tree);
    NodeRow { id, tree, parent, role: Role::Assistant, content, turn: 1, uuid: None }
}

/// The number of nodes in the search index.
async fn indexed(store: &SqlStore) -> u64 {
    let count = |database: &dyn Database| database.value("SELECT count(*) FROM node_text", ());
    store.readers.read(count).await.unwrap()
}

#[tokio::test]
async fn a_search_finds_the_nodes_of_all_commits_before_it_and_commits_do_not_wait_for_the_index() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("db");
    let store = SqlStore::sqlite(&path, Durability::Normal).unwrap();
    let new = session("a");
    let (id, mut parent) = (new.id, new.head);
    store.commit(0, vec![Change::CreateSession(Box::new(new.clone()))]).await.unwrap();
    let mut changes = Vec::new();
    for number in 0..500 {
        let node = said(&new, parent, format!("word {number} {}", "long ".repeat(2_000 * (number % 2))));
        parent = node.id;
        changes.push(Change::AddNode(id, Arc::new(node)));
    }
    store.commit(0, changes).await.unwrap();
    assert_eq!(indexed(&store).await, 0, "the commit itself");
    // A hub that is killed leaves nodes that are not in the index.
    drop(store);
    let store = SqlStore::sqlite(&path, Durability::Normal).unwrap();
    assert_eq!(store.search("499", None, None, 10).await.unwrap().len(), 1, "with a long text");
    assert_eq!(store.search("word", None, None, 1_000).await.unwrap().len(), 500);
    assert_eq!(indexed(&store).await, 501, "all nodes and the root");
    let more = Change::ExtendNode { node: parent, blocks: vec![json!({"text": "afterwards"})], uuid: None };
    store.commit(0, vec![more]).await.unwrap();
    let found = store.search("afterwards 499", None, None, 10).await.unwrap();
    assert_eq!(found.len(), 1, "an indexed node that was extended");
}

#[tokio::test]
async fn a_search_waits_for_the_index_only_as_long_as_the_store_accepts_it() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("db");
    let store = SqlStore::sqlite(&path, Durability::Normal).unwrap();
    let new = session("a");
    let node = said(&new, new.head, "word".to_owned());
    let changes = vec![Change::CreateSession(Box::new(new.clone())), Change::AddNode(new.id, Arc::new(node))];
    store.commit(0, changes).await.unwrap();
    let index = "ALTER TABLE node_text_docsize RENAME TO damaged";
    let file = SqliteFile::prepare(&path, Durability::Normal).unwrap();
    file.writer().unwrap().execute(index, &[]).unwrap();
    assert!(store.search("word", None, None, 10).await.is_err(), "an incomplete answer would mislead");
    let node = said(&new, new.head, "more".to_owned());
    store.commit(0, vec![Change::AddNode(new.id, Arc::new(node))]).await.unwrap();
}

fn session(name: &str) -> NewSession {
    let config = json!({
        "working_dir": "/", "loopback_enabled": true, "channel": "control", "env": {}, "hub_tools": false,
    });
    NewSession {
        id: SessionId::random(),
        name: name.to_owned().try_into().unwrap(),
        answers_to: AskedOf::Operator,
        config: serde_json::from_value(config).unwrap(),
        tree: TreeId::random(),
        head: NodeId::random(),
        start: crate::ConversationStart::NewTree,
        host: None,
    }
}
