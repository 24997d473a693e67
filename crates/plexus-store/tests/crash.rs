//! External faults: a process that is killed at any moment, and a full disk. Each test starts this test binary again as a child
//! that runs one of the functions at the end, so that the fault affects the child alone.
#![cfg(test)]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::*;
use plexus_protocol::SessionId;
use plexus_store::{Change, Durability, Ledger, SqlStore, Store, StoreError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tempfile::TempDir;

const WHERE: &str = "PLEXUS_STORE_TEST_CHILD";
const WRITERS: u64 = 4;

/// This test binary as a child that runs one function.
fn child(function: &str, path: &Path) -> Command {
    // An ignored signal stays ignored after exec. Otherwise a write beyond the limit would kill the child.
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", function, "--nocapture", "--test-threads=1"])
        .env_clear()
        .env("HOME", path.parent().unwrap())
        .env(WHERE, path)
        .stdin(Stdio::null());
    command
}

/// The path of the child's store; `None` if this is not a child.
fn in_child() -> Option<PathBuf> {
    std::env::var_os(WHERE).map(PathBuf::from)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_at_any_moment_loses_nothing_it_acknowledged() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("plexus.db");
    let mut acknowledged: BTreeMap<u64, u64> = BTreeMap::new();
    for round in 0..6_usize {
        let mut child =
            child("child_commits_until_it_is_killed", &path).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acks = 0;
        // The first round kills at the first output, later rounds after more and more work.
        while let Some(Ok(line)) = lines.next() {
            let Some((writer, count)) = line.strip_prefix("ack ").and_then(|ack| ack.split_once(' ')) else {
                continue;
            };
            acknowledged.insert(writer.parse().unwrap(), count.parse().unwrap());
            acks += 1;
            if acks == 1 + 37 * round {
                // Output from before its death is still read, up to the end.
                child.kill().unwrap();
            }
        }
        assert_eq!(child.wait().unwrap().signal(), Some(9), "ended by itself");
        assert!(acks > 37 * round, "round {round} had only {acks} acknowledgements");
        check_after_kill(&path, &acknowledged).await;
    }
}

/// Every acknowledged commit is stored, and every stored commit is complete.
async fn check_after_kill(path: &Path, acknowledged: &BTreeMap<u64, u64>) {
    let store = open(path);
    let session = session_named(&store, "a").await.unwrap().id;
    for (&turn, &count) in acknowledged {
        let mut events = Vec::new();
        loop {
            let page = store.events(session, turn, events.len() as u64, u64::MAX).await.unwrap();
            if page.is_empty() {
                break;
            }
            events.extend(page);
        }
        let notices = store.feed(&turn.to_string(), 0, u64::MAX).await.unwrap();
        assert!(notices.len() as u64 >= count, "{count} acknowledged, {} stored", notices.len());
        assert_eq!(events.len(), 2 * notices.len(), "half a commit");
        assert!(events.iter().zip(0..).all(|(event, seq)| event.seq == seq));
        assert_eq!(store.position("x", session, turn).await.unwrap(), notices.len() as u64);
    }
}

#[test]
fn a_full_disk_stores_nothing_partially_and_recovers() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("plexus.db");
    let output = child("child_runs_out_of_space", &path).output().unwrap();
    let shown =
        format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("had no space, then had some"), "{shown}");
}

// ---- The code of the child processes. In any other process these tests return at once.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_commits_until_it_is_killed() {
    let Some(path) = in_child() else { return };
    let store = Arc::new(SqlStore::sqlite(&path, Durability::Full).unwrap());
    let session = match session_named(&*store, "a").await {
        Some(session) => session.id,
        None => create(&*store, "a").await,
    };
    let tasks: Vec<_> = (1..=WRITERS)
        .map(|turn| tokio::spawn(commit_and_acknowledge(Arc::clone(&store), session, turn)))
        .collect();
    for task in tasks {
        eprintln!("could not go on: {}", task.await.unwrap());
    }
}

/// Commits until a commit fails.
async fn commit_and_acknowledge(store: Arc<SqlStore>, session: SessionId, turn: u64) -> StoreError {
    let mut count = store.position("x", session, turn).await.unwrap();
    loop {
        count += 1;
        let text = "x".repeat(100 * (count as usize % 100));
        let changes = vec![
            says(session, turn, &text),
            Change::Notice { to: turn.to_string(), session, data: json!(count) },
            says(session, turn, &text),
            Change::Position { reader: "x".to_owned(), session, turn, position: count },
        ];
        if let Err(error) = store.commit(NOW, changes).await {
            return error;
        }
        writeln!(std::io::stdout().lock(), "ack {turn} {count}").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_runs_out_of_space() {
    let Some(path) = in_child() else { return };
    let store = Arc::new(SqlStore::sqlite(&path, Durability::Full).unwrap());
    let session = create(&*store, "a").await;
    let log = std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
    let unlimited = getrlimit(Resource::Fsize);
    let says_much = |bytes: usize| vec![says(session, 1, "small"), says(session, 1, &"x".repeat(bytes))];
    let limit = |bytes| setrlimit(Resource::Fsize, Rlimit { current: bytes, ..unlimited });

    // A small write fails when the transaction is committed. One larger than the page cache fails earlier.
    for bytes in [200_000, 5_000_000] {
        let (events, head) = (store.event_count(session, 1).await.unwrap(), store.feed_head().await.unwrap());
        limit(Some(log + 64 * 1024)).unwrap();
        for _ in 0..2 {
            let tasks: Vec<_> = (0..4)
                .map(|_| {
                    let (store, changes) = (Arc::clone(&store), says_much(bytes));
                    tokio::spawn(async move { store.commit(NOW, changes).await })
                })
                .collect();
            for task in tasks {
                let full = task.await.unwrap();
                assert!(matches!(full, Err(StoreError::Unavailable(_))), "{full:?}");
            }
            assert_eq!(store.event_count(session, 1).await.unwrap(), events);
            assert_eq!(store.feed_head().await.unwrap(), head);
        }
        limit(unlimited.current).unwrap();
        store.commit(NOW, says_much(bytes)).await.unwrap();
        assert_eq!(store.event_count(session, 1).await.unwrap(), events + 2);
    }
    drop(store);
    assert_eq!(open(&path).event_count(session, 1).await.unwrap(), 4);
    println!("had no space, then had some");
}
