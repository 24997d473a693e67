//! Runs, their tokens and their journals.

use std::sync::Arc;

use plexus_protocol::SessionId;
use plexus_store::{Change, Refusal, RunKey, RunProcess, RunState, Store};
use serde_json::json;

use crate::common::*;

fn process() -> RunProcess {
    RunProcess { pid: 7, start_time: 8, boot_id: "boot".to_owned() }
}

fn begin(key: RunKey, token: Option<&str>) -> Change {
    Change::StartRun { key, state: RunState::Starting, token_hash: token.map(str::to_owned) }
}

pub async fn a_run_goes_from_starting_to_ended(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let key = RunKey { session, run: 1 };
    commit(&*store, begin(key, None)).await;
    let run = store.run(key).await.unwrap().unwrap();
    assert_eq!((run.key, run.state, run.process), (key, RunState::Starting, None));
    assert_eq!((run.journal_offset, run.created_at), (0, NOW));
    assert_eq!(store.session(session).await.unwrap().unwrap().latest_run, 1);

    commit(&*store, Change::RunProcess(key, Some(process()))).await;
    let run = store.run(key).await.unwrap().unwrap();
    assert_eq!((run.state, run.process), (RunState::Running, Some(process())));

    commit(&*store, Change::RunState(key, RunState::Ending)).await;
    assert_eq!(store.run(key).await.unwrap().unwrap().state, RunState::Ending);
    commit(&*store, begin(RunKey { session, run: 2 }, None)).await;
    assert_eq!(store.session(session).await.unwrap().unwrap().latest_run, 2);
    commit(&*store, Change::EndRun(key, json!({"code": 0}))).await;
    assert_eq!(store.run(key).await.unwrap().unwrap().state, RunState::Ended);

    let nobody = RunKey { session: SessionId::random(), run: 1 };
    assert!(store.run(nobody).await.unwrap().is_none());
    for change in [begin(nobody, None), Change::RunProcess(nobody, None), Change::JournalOffset(nobody, 1)] {
        assert!(matches!(refused(&*store, change).await, Refusal::NoSuchSession(_)));
    }
    commit(&*store, Change::DeleteSession(session)).await;
    let late = begin(RunKey { session, run: 3 }, None);
    assert!(matches!(refused(&*store, late).await, Refusal::NoSuchSession(id) if id == session));
}

pub async fn a_token_is_valid_until_its_run_ends(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let [first, second] = [1, 2].map(|run| RunKey { session, run });
    commit(&*store, begin(first, Some("hash-1"))).await;
    commit(&*store, begin(second, Some("hash-2"))).await;
    assert_eq!(store.run_of_token("hash-1").await.unwrap().unwrap().key, first);
    assert_eq!(store.run_of_token("hash-2").await.unwrap().unwrap().key, second);
    assert!(store.run_of_token("hash-3").await.unwrap().is_none());
    commit(&*store, Change::EndRun(first, json!(null))).await;
    assert!(store.run_of_token("hash-1").await.unwrap().is_none());
    commit(&*store, Change::RunState(second, RunState::Ended)).await;
    assert!(store.run_of_token("hash-2").await.unwrap().is_none());
}

pub async fn an_ended_run_stays_ended(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let key = start_run(&*store, session).await;
    commit(&*store, Change::EndRun(key, json!({"code": 1}))).await;
    for late in [
        Change::RunProcess(key, Some(process())),
        Change::RunState(key, RunState::Running),
        Change::EndRun(key, json!({"code": 2})),
    ] {
        commit(&*store, late).await;
        assert_eq!(store.run(key).await.unwrap().unwrap().state, RunState::Ended);
    }
}

pub async fn open_runs_are_those_that_have_not_ended(store: Arc<dyn Store>) {
    let mut expected = Vec::new();
    for (name, state) in [("a", RunState::Starting), ("b", RunState::External), ("c", RunState::Starting)] {
        let key = RunKey { session: create(&*store, name).await, run: 1 };
        commit(&*store, Change::StartRun { key, state, token_hash: None }).await;
        expected.push(key);
    }
    commit(&*store, Change::EndRun(expected.remove(2), json!(null))).await;
    commit(&*store, Change::DeleteSession(expected[0].session)).await;
    expected.sort();
    let mut open: Vec<_> = store.open_runs().await.unwrap().into_iter().map(|run| run.key).collect();
    open.sort();
    assert_eq!(open, expected);
}

pub async fn a_journal_offset_is_stored_with_its_events(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let key = start_run(&*store, session).await;
    start_turn(&*store, session, 1).await;
    store.commit(NOW, vec![says(session, 1, "x"), Change::JournalOffset(key, 120)]).await.unwrap();
    assert_eq!(store.run(key).await.unwrap().unwrap().journal_offset, 120);
    let nobody = RunKey { session, run: 9 };
    let lost = store.commit(NOW, vec![says(session, 1, "y"), Change::JournalOffset(nobody, 240)]).await;
    assert!(lost.is_err());
    assert_eq!(store.event_count(session, 1).await.unwrap(), 1);
}
