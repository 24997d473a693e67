//! Changes to the audit log in the database file, bypassing the hub: each is found, and the entry is named.
#![cfg(test)]

mod common;

use std::path::{Path, PathBuf};

use plexus_protocol::audit::{AuditHead, VerifyResult};
use plexus_protocol::{Decider, TokenName};
use plexus_store::{AuditFile, CallRow, Change, Ledger as _, RunKey, Store as _, Verdict};
use rusqlite::Connection;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use common::*;

const ROWS: u64 = 6;

/// A log with entries of every kind, written by two hubs one after the other, and the head of each.
async fn written() -> (TempDir, PathBuf, Vec<AuditHead>) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("plexus.db");
    let mut heads = Vec::new();
    let store = open(&path);
    let session = create(&store, "a").await;
    let id = ask(&store, question(session, 1, "t")).await;
    commit(&store, allows(id)).await;
    let call = CallRow {
        key: RunKey { session, run: 1 },
        turn: 1,
        tool_use_id: "u".to_owned(),
        tool_name: "Read".to_owned(),
        digest: "digest".to_owned(),
        request_id: "request".to_owned(),
        summary: String::new(),
        verdict: Verdict::Allow { reason: "rule 7".to_owned() },
    };
    commit(&store, Change::Call(Box::new(call), object(json!({"file_path": "ü\n"})).into())).await;
    heads.push(store.audit_head().await.unwrap());
    drop(store);

    let store = open(&path);
    let name = TokenName::try_from("phone".to_owned()).unwrap();
    let right = plexus_protocol::token::TokenRight::Read;
    let token = plexus_store::TokenRow { name: name.clone(), right, created_at: NOW, expires_at: None };
    let made = Change::CreateToken { token, hash: "hash".to_owned(), by: Decider::Operator };
    store.commit(NOW + 1, vec![made]).await.unwrap();
    commit(&store, Change::RevokeToken { name, by: Decider::Operator }).await;
    let id = ask(&store, question(session, 1, "v")).await;
    commit(&store, denies(id)).await;
    heads.push(store.audit_head().await.unwrap());
    assert_eq!(heads[1].number, ROWS);
    drop(store);
    (dir, path, heads)
}

/// The result of `verify` for a copy of the file with this change.
fn after(path: &Path, heads: &[AuditHead], change: impl FnOnce(&Connection)) -> VerifyResult {
    let copy = path.with_extension("copy");
    std::fs::copy(path, &copy).unwrap();
    #[expect(clippy::disallowed_methods, reason = "it plays someone else")]
    let theirs = Connection::open(&copy).unwrap();
    theirs.execute_batch("DROP TRIGGER audit_unchanged; DROP TRIGGER audit_kept").unwrap();
    change(&theirs);
    theirs.close().unwrap();
    AuditFile::open(&copy).unwrap().verify(heads.iter().cloned()).unwrap()
}

#[track_caller]
fn found(said: &VerifyResult, row: u64, what: &str) {
    assert!(
        matches!(said, VerifyResult::Broken { number, .. } if *number == row),
        "{what}, row {row}: {said:?}"
    );
}

fn execute(file: &Connection, sql: &str) {
    assert!(file.execute(sql, []).unwrap() > 0, "{sql} changed nothing");
}

#[tokio::test]
async fn an_unchanged_log_is_valid_with_its_heads() {
    let (_dir, path, heads) = written().await;
    let whole = VerifyResult::Ok { rows: ROWS, head: heads[1].clone() };
    assert_eq!(AuditFile::open(&path).unwrap().verify(heads).unwrap(), whole);
    let store = open(&path);
    assert_eq!(AuditFile::open(&path).unwrap().verify([]).unwrap(), whole, "while a hub has the file open");
    drop(store);
    assert_eq!(after(&path, &[], |_| {}), whole);
}

#[tokio::test]
async fn a_change_to_any_column_of_any_entry_is_found() {
    let (_dir, path, _) = written().await;
    for row in 1..=ROWS {
        for (column, value) in [
            ("number", "number + 100"),
            ("number", "-number"),
            ("hash", "replace(hash, substr(hash, 1, 1), 'x')"),
            ("hash", "upper(hash) || ''"),
            ("at", "at + 1"),
            ("kind", "'session' || ''"),
            ("kind", "'nothing'"),
            ("who", "'token:someone'"),
            ("session", "'00000000-0000-4000-8000-000000000000'"),
            ("tool_name", "'Write'"),
            ("entry", "replace(entry, '\"at\":1', '\"at\":2')"),
            ("entry", "entry || ' '"),
            ("entry", "'not JSON'"),
            ("entry", "json_insert(entry, '$.more', 1)"),
        ] {
            let sql = format!("UPDATE audit SET {column} = {value} WHERE number = {row}");
            let same = format!("SELECT {column} IS {value} FROM audit WHERE number = {row}");
            let mut changed = true;
            let said = after(&path, &[], |file| {
                changed = !file.query_row(&same, [], |row| row.get::<_, bool>(0)).unwrap();
                execute(file, &sql);
            });
            // An entry that is moved before the first one is the first invalid entry.
            let expected = if value == "-number" { 1 } else { row };
            if changed {
                found(&said, expected, &sql);
            }
        }
    }
}

#[tokio::test]
async fn removed_added_and_reordered_entries_are_found() {
    let (_dir, path, _) = written().await;
    for row in 1..=ROWS {
        let said =
            after(&path, &[], |file| execute(file, &format!("DELETE FROM audit WHERE number = {row}")));
        found(&said, row, "deleted");
        let said =
            after(&path, &[], |file| execute(file, &format!("DELETE FROM audit WHERE number >= {row}")));
        found(&said, row, "cut off");
    }
    for row in 1..ROWS {
        let next = row + 1;
        let said = after(&path, &[], |file| {
            execute(file, &format!("UPDATE audit SET number = 100 WHERE number = {row}"));
            execute(file, &format!("UPDATE audit SET number = {row} WHERE number = {next}"));
            execute(file, &format!("UPDATE audit SET number = {next} WHERE number = 100"));
        });
        found(&said, row, "swapped");
    }
    let copied = "INSERT INTO audit SELECT 7, hash, at, kind, who, session, tool_name, entry FROM audit WHERE number = 6";
    found(&after(&path, &[], |file| execute(file, copied)), 7, "added");
    let first = "INSERT INTO audit SELECT 0, hash, at, kind, who, session, tool_name, entry FROM audit WHERE number = 6";
    found(&after(&path, &[], |file| execute(file, first)), 1, "put before the first");
}

/// The chain as docs/audit.md defines it.
fn link(before: &str, number: u64, entry: &str) -> String {
    let digest = Sha256::digest(format!("{before}\n{number}\n{entry}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Computes all hashes again.
fn rechain(file: &Connection) {
    let mut before = AuditHead::start().hash;
    let count: u64 = file.query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).unwrap();
    for number in 1..=count {
        let entry: String =
            file.query_row("SELECT entry FROM audit WHERE number = ?1", [number], |row| row.get(0)).unwrap();
        before = link(&before, number, &entry);
        file.execute("UPDATE audit SET hash = ?1 WHERE number = ?2", (&before, number)).unwrap();
    }
}

#[tokio::test]
async fn a_log_rewritten_with_valid_hashes_is_found_by_its_kept_heads() {
    let (_dir, path, heads) = written().await;
    assert!(matches!(after(&path, &heads, rechain), VerifyResult::Ok { .. }), "the same log");
    let rewrite = |file: &Connection| {
        execute(
            file,
            "UPDATE audit SET entry = replace(entry, '\"allowed\"', '\"denied\"') WHERE number = 2",
        );
        rechain(file);
    };
    assert!(
        matches!(after(&path, &[], rewrite), VerifyResult::Ok { .. }),
        "the chain alone does not show it"
    );
    found(&after(&path, &heads, rewrite), heads[0].number, "rewritten");

    let cut = |file: &Connection| {
        execute(file, "DELETE FROM audit WHERE number > 4");
        execute(file, "UPDATE sqlite_sequence SET seq = 4 WHERE name = 'audit'");
    };
    assert!(matches!(after(&path, &[], cut), VerifyResult::Ok { rows: 4, .. }), "nor does the counter");
    found(&after(&path, &heads, cut), 5, "cut");

    let shrunk = [heads[1].clone(), heads[0].clone()];
    found(&after(&path, &shrunk, |_| {}), heads[0].number, "the head of a shorter log was kept later");
}

#[tokio::test]
async fn the_database_refuses_changes_to_the_log() {
    let (_dir, path, _) = written().await;
    #[expect(clippy::disallowed_methods, reason = "it plays someone else")]
    let theirs = Connection::open(&path).unwrap();
    for sql in ["UPDATE audit SET at = 0 WHERE number = 1", "DELETE FROM audit WHERE number = 6"] {
        let refused = theirs.execute(sql, []).unwrap_err().to_string();
        assert!(refused.contains("only ever added to"), "{refused}");
    }
}

#[tokio::test]
async fn a_hub_continues_its_own_chain_if_the_log_is_rewritten() {
    let (_dir, path, _) = written().await;
    let store = open(&path);
    let session = create(&store, "b").await;
    #[expect(clippy::disallowed_methods, reason = "it plays someone else")]
    let theirs = Connection::open(&path).unwrap();
    theirs.execute_batch("DROP TRIGGER audit_unchanged").unwrap();
    execute(&theirs, "UPDATE audit SET entry = replace(entry, '\"made\"', '\"left\"') WHERE number = 7");
    rechain(&theirs);
    let id = ask(&store, question(session, 1, "t")).await;
    commit(&store, allows(id)).await;
    drop(store);
    found(&AuditFile::open(&path).unwrap().verify([]).unwrap(), 8, "it was rewritten under a running hub");
}

#[tokio::test]
async fn an_export_contains_the_hashed_text_and_stops_at_an_invalid_entry() {
    let (_dir, path, heads) = written().await;
    let mut lines = Vec::new();
    let exported = AuditFile::open(&path).unwrap().export(|line| {
        lines.push(line);
        Ok(())
    });
    assert_eq!(exported.unwrap(), Ok(()));
    let mut before = AuditHead::start().hash;
    for (line, number) in lines.iter().zip(1..) {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let entry = line.split_once("\"entry\":").unwrap().1.strip_suffix('}').unwrap();
        before = link(&before, number, entry);
        assert_eq!((&row["number"], &row["hash"]), (&json!(number), &json!(before)));
    }
    assert_eq!((lines.len() as u64, before), (ROWS, heads[1].hash.clone()));

    let copy = path.with_extension("copy");
    after(&path, &[], |file| execute(file, "UPDATE audit SET entry = '1' WHERE number = 3"));
    let stopped = AuditFile::open(&copy).unwrap().export(|_| Ok(())).unwrap().unwrap_err();
    assert!(stopped.contains("entry 3"), "{stopped}");
}
