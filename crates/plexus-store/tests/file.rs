//! The database file: what is durable, which files are refused, and that a refused file is not changed.
#![cfg(test)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use common::*;
use plexus_store::{Change, Durability, Ledger, OpenFilter, SqlStore, Store, StoreError};
use tempfile::TempDir;

/// A directory with a closed store that has some data.
async fn closed_store() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("plexus.db");
    let store = open(&path);
    let session = create(&store, "a").await;
    ask(&store, question(session, 1, "t")).await;
    (dir, path)
}

/// Writes a big-endian number into the documented header of SQLite.
fn patch(path: &Path, offset: usize, number: u32) {
    let mut bytes = fs::read(path).unwrap();
    bytes[offset..offset + 4].copy_from_slice(&number.to_be_bytes());
    fs::write(path, bytes).unwrap();
}

const PAGE: usize = 4096;
const USER_VERSION: usize = 60;
const APPLICATION_ID: usize = 68;

/// Opening has to fail with all of `words` in the message, and must not change any file.
fn refused(path: &Path, words: &[&str]) {
    let files = || {
        let entries = fs::read_dir(path.parent().unwrap()).unwrap();
        let mut files: Vec<_> = entries
            .map(|entry| entry.unwrap().path())
            // The shared-memory index is temporary: every reader recreates it.
            .filter(|path| !path.to_string_lossy().ends_with("-shm"))
            .map(|path| (fs::read(&path).unwrap(), path))
            .filter(|(bytes, path)| !(bytes.is_empty() && path.to_string_lossy().ends_with("-wal")))
            .collect();
        files.sort();
        files
    };
    let before = files();
    match SqlStore::sqlite(path, Durability::Full) {
        Err(StoreError::Unusable(message)) => {
            assert!(message.contains(&*path.to_string_lossy()), "{message}");
            for word in words {
                assert!(message.contains(word), "`{word}` is not in: {message}");
            }
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("opened"),
    }
    assert!(files() == before, "{} was changed", path.display());
}

#[tokio::test]
async fn commits_survive_closing_and_opening() {
    let (_dir, path) = closed_store().await;
    for durability in [Durability::Full, Durability::Normal] {
        let store = SqlStore::sqlite(&path, durability).unwrap();
        let session = session_named(&store, "a").await.unwrap();
        assert_eq!(store.open_approvals(OpenFilter::OfSession(session.id)).await.unwrap().len(), 1);
        let head = store.feed_head().await.unwrap();
        let notice = Change::Notice { to: "x".to_owned(), session: session.id, data: 1.into() };
        assert_eq!(commit(&store, notice).await.feed[0].number, head + 1);
    }
}

#[tokio::test]
async fn only_the_owner_can_access_the_file() {
    let (_dir, path) = closed_store().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let store = open(&path);
    create(&store, "b").await;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&path.with_extension("db-wal")), 0o600);
}

#[tokio::test]
async fn a_closed_store_is_one_file() {
    let (dir, _path) = closed_store().await;
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("plexus.db");
    fs::write(&path, "").unwrap();
    create(&open(&path), "a").await;
    assert!(session_named(&open(&path), "a").await.is_some());
}

#[tokio::test]
async fn a_newer_version_is_refused() {
    let (_dir, path) = closed_store().await;
    patch(&path, USER_VERSION, 77);
    refused(&path, &["newer version of plexus", "77", "another data directory"]);
}

#[tokio::test]
async fn the_database_of_another_program_is_refused() {
    let (_dir, path) = closed_store().await;
    for owner in [0, 0x1234_5678] {
        patch(&path, APPLICATION_ID, owner);
        refused(&path, &["another program"]);
    }
}

#[tokio::test]
async fn the_write_ahead_log_of_another_program_is_not_changed() {
    // A copy of an open database has a log beside it that SQLite would checkpoint.
    let (other, live) = closed_store().await;
    let store = open(&live);
    create(&store, "b").await;
    let copy = TempDir::new().unwrap();
    for name in ["plexus.db", "plexus.db-wal"] {
        fs::copy(other.path().join(name), copy.path().join(name)).unwrap();
    }
    let path = copy.path().join("plexus.db");
    patch(&path, APPLICATION_ID, 0x1234_5678);
    refused(&path, &["another program"]);
}

#[test]
fn a_file_that_is_not_a_database_is_refused() {
    let dir = TempDir::new().unwrap();
    for (name, contents) in
        [("note", "remember the milk"), ("x", "x"), ("zeros", "\0\0\0\0"), ("long", &"y".repeat(9000))]
    {
        let path = dir.path().join(name);
        fs::write(&path, contents).unwrap();
        refused(&path, &["not a SQLite database"]);
    }
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let (_dir, path) = closed_store().await;
    let whole = fs::read(&path).unwrap();
    for kept in [PAGE, whole.len() / 2, whole.len() - PAGE] {
        fs::write(&path, &whole[..kept]).unwrap();
        refused(&path, &["damaged", "good copy"]);
    }
}

#[tokio::test]
async fn a_file_with_an_overwritten_page_is_refused() {
    let (_dir, path) = closed_store().await;
    let whole = fs::read(&path).unwrap();
    for page in 0..whole.len() / PAGE {
        let mut damaged = whole.clone();
        // The header of the first page names the owner; the rest of the page lists the tables.
        let from = if page == 0 { 100 } else { page * PAGE };
        damaged[from..(page + 1) * PAGE].fill(0xA5);
        fs::write(&path, damaged).unwrap();
        refused(&path, &["damaged", "good copy"]);
    }
}

#[tokio::test]
async fn damage_in_the_write_ahead_log_is_refused() {
    // A killed hub leaves an old file and a log with the recent changes.
    let (dir, path) = closed_store().await;
    let store = open(&path);
    create(&store, "b").await;
    let copy = TempDir::new().unwrap();
    for name in ["plexus.db", "plexus.db-wal"] {
        fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    let path = copy.path().join("plexus.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(2 * PAGE);
    fs::write(&path, bytes).unwrap();
    refused(&path, &["damaged", "good copy"]);
}

#[tokio::test]
async fn damage_found_later_is_reported_as_damage() {
    let (_dir, path) = closed_store().await;
    let store = open(&path);
    let mut bytes = fs::read(&path).unwrap();
    // Overwrite the page of the session while the store is open.
    let model = bytes.windows(7).position(|text| text == b"a-model").unwrap();
    let page = model / PAGE * PAGE;
    bytes[page..page + PAGE].fill(0xA5);
    fs::write(&path, bytes).unwrap();
    let name = path.display().to_string();
    let is_told = |message: &str| message.contains("damaged") && message.contains(&name);
    let read = store.sessions().await;
    assert!(matches!(&read, Err(StoreError::Unusable(message)) if is_told(message)), "{read:?}");
    let made = store.commit(NOW, vec![Change::CreateSession(Box::new(new_session("b")))]).await;
    assert!(matches!(&made, Err(StoreError::Unusable(message)) if is_told(message)), "{made:?}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it plays another program")]
fn an_interrupted_transaction_of_another_program_is_not_touched() {
    let (other, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let theirs = rusqlite::Connection::open(other.path().join("plexus.db")).unwrap();
    theirs
        .execute_batch(
            "PRAGMA journal_mode = DELETE; CREATE TABLE diary (day TEXT); INSERT INTO diary VALUES ('monday'); \
             PRAGMA cache_size = 1; BEGIN; UPDATE diary SET day = 'tuesday';",
        )
        .unwrap();
    // More than the cache holds, so that a part is in the file before the commit.
    for _ in 0..200 {
        theirs.execute("INSERT INTO diary VALUES (?1)", ["x".repeat(1000)]).unwrap();
    }
    for name in ["plexus.db", "plexus.db-journal"] {
        fs::copy(other.path().join(name), copy.path().join(name)).unwrap();
    }
    refused(&copy.path().join("plexus.db"), &["unfinished transaction of another program"]);
}

#[test]
fn a_path_that_cannot_be_a_file_is_refused() {
    let dir = TempDir::new().unwrap();
    for path in [dir.path().join("no/such/dir/db"), dir.path().to_owned()] {
        let opened = SqlStore::sqlite(&path, Durability::Full);
        assert!(
            matches!(opened.err(), Some(StoreError::Unusable(message)) if message.contains("cannot be opened"))
        );
    }
}
