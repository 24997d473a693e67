//! Old rows are removed in steps. Rows that are still needed are kept, even if their removal is requested.

use std::sync::Arc;

use plexus_protocol::SessionId;
use plexus_store::{
    CallIds, CallRow, Change, EventsOfTurn, FinishedRun, OldRecords, PermitStream, Removable, RunKey, Store,
    TurnStatus, Verdict,
};
use serde_json::json;

use crate::common::*;

const LATER: u64 = NOW + 1;

/// An ended turn, with an event for each of `said` and a last one.
async fn turn(store: &dyn Store, session: SessionId, turn: u64, said: &[&str]) {
    start_turn(store, session, turn).await;
    for text in said {
        commit(store, says(session, turn, text)).await;
    }
    commit(store, ends(session, turn)).await;
}

async fn old(store: &dyn Store, which: OldRecords) -> Vec<Removable> {
    store.old_records(which, LATER, 100).await.unwrap()
}

async fn remove(store: &dyn Store, what: Removable) -> usize {
    commit(store, Change::Remove(what)).await.removed
}

pub async fn events_of_an_old_turn_are_removed_in_small_steps(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    turn(&*store, session, 1, &["x"; 120]).await;
    turn(&*store, session, 2, &[]).await;
    let first = Removable::Events { session, turn: 1 };
    assert_eq!(store.old_records(OldRecords::Events, NOW, 100).await.unwrap(), [], "not old enough");
    assert_eq!(old(&*store, OldRecords::Events).await, [first]);

    let state = async || store.turn(session, 1).await.unwrap().unwrap().events;
    assert_eq!(state().await, EventsOfTurn::Kept);
    let step = remove(&*store, first).await;
    assert!((1..121).contains(&step), "{step} at once");
    assert_eq!(state().await, EventsOfTurn::Removing, "a part of the events is not shown");
    assert_eq!(old(&*store, OldRecords::Events).await, [first], "found again by the next step");
    while remove(&*store, first).await > 0 {}
    assert_eq!(state().await, EventsOfTurn::Removed);
    assert_eq!(store.events(session, 1, 0, 1000).await.unwrap(), []);
    assert_eq!(old(&*store, OldRecords::Events).await, []);
    let kept = store.turn(session, 1).await.unwrap().unwrap();
    assert_eq!((kept.prompt.as_str(), kept.status), ("prompt 1", TurnStatus::Complete), "the turn stays");
    assert_eq!(store.event_count(session, 2).await.unwrap(), 1);
}

pub async fn large_events_are_removed_one_at_a_time(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let large = "x".repeat(1_000_000);
    turn(&*store, session, 1, &[&large, &large]).await;
    turn(&*store, session, 2, &[]).await;
    let first = Removable::Events { session, turn: 1 };
    assert_eq!(remove(&*store, first).await, 1);
    assert_eq!(remove(&*store, first).await, 1);
}

pub async fn events_that_may_still_be_needed_are_kept(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let key = start_run(&*store, session).await;
    start_turn(&*store, session, 1).await;
    let asked = ask(&*store, question(session, 1, "t")).await;
    let [first, second] = [1, 2].map(|turn| Removable::Events { session, turn });
    assert_eq!(remove(&*store, first).await, 0, "in progress");
    commit(&*store, ends(session, 1)).await;
    assert_eq!(remove(&*store, first).await, 0, "the latest turn gets the events outside any turn");
    turn(&*store, session, 2, &[]).await;
    assert_eq!(remove(&*store, first).await, 0, "the end of its approval is appended to it");
    assert_eq!(old(&*store, OldRecords::Events).await, []);
    commit(&*store, denies(asked)).await;
    assert_eq!(old(&*store, OldRecords::Events).await, [first]);

    commit(&*store, Change::DeleteSession(session)).await;
    assert_eq!(remove(&*store, second).await, 0, "a process of the session runs");
    commit(&*store, Change::EndRun(key, json!(null))).await;
    assert_eq!(old(&*store, OldRecords::Events).await, [first, second]);
    assert!(remove(&*store, second).await > 0);
}

pub async fn approvals_and_calls_of_ended_runs_are_removed(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let key = start_run(&*store, session).await;
    start_turn(&*store, session, 1).await;
    let (open, decided) = (question(session, 1, "open"), question(session, 1, "decided"));
    let (open, decided) = (ask(&*store, open).await, ask(&*store, decided).await);
    commit(&*store, allows(decided)).await;
    let stream = PermitStream {
        event_id: "e".to_owned(),
        key,
        approval: decided,
        ids: CallIds { jsonrpc_id: json!(1), progress_token: None },
    };
    commit(&*store, Change::Stream(Box::new(stream))).await;
    let call = CallRow {
        key,
        turn: 1,
        tool_use_id: "decided".to_owned(),
        tool_name: "Bash".to_owned(),
        digest: "digest".to_owned(),
        request_id: "request".to_owned(),
        summary: String::new(),
        verdict: Verdict::NoOpinion,
    };
    commit(&*store, Change::Call(Box::new(call), object(json!({})).into())).await;
    assert_eq!(old(&*store, OldRecords::Approvals).await, [], "its run has not ended");
    assert_eq!(old(&*store, OldRecords::Calls).await, []);
    assert_eq!(remove(&*store, Removable::Approval(decided)).await, 0);
    assert_eq!(remove(&*store, Removable::Call(1)).await, 0);
    assert!(store.permit_stream("e").await.unwrap().is_some());

    commit(&*store, Change::EndRun(key, json!(null))).await;
    assert_eq!(store.old_records(OldRecords::Approvals, NOW, 9).await.unwrap(), [], "not old enough");
    assert_eq!(old(&*store, OldRecords::Approvals).await, [Removable::Approval(decided)]);
    assert_eq!(remove(&*store, Removable::Approval(open)).await, 0, "open");
    assert_eq!(remove(&*store, Removable::Approval(decided)).await, 1);
    assert!(store.approval(decided).await.unwrap().is_none());
    assert!(store.permit_stream("e").await.unwrap().is_none());
    assert!(store.approval(open).await.unwrap().is_some());
    let calls = old(&*store, OldRecords::Calls).await;
    assert_eq!(calls.len(), 1);
    assert_eq!(remove(&*store, calls[0]).await, 1);
    assert_eq!(old(&*store, OldRecords::Calls).await, []);
}

pub async fn ended_runs_are_listed_until_their_files_are_removed(store: Arc<dyn Store>) {
    let sessions = [create(&*store, "a").await, create(&*store, "b").await];
    let mut ended = Vec::new();
    for (session, at) in sessions.into_iter().zip([NOW + 20, NOW + 10]) {
        let key = start_run(&*store, session).await;
        assert_eq!(remove(&*store, Removable::RunFiles(key)).await, 0, "it has not ended");
        assert!(!store.finished_runs(None, 10).await.unwrap().iter().any(|run| run.key == key));
        store.commit(at, vec![Change::EndRun(key, json!(null))]).await.unwrap();
        ended.push(FinishedRun { key, ended_at: at, session_deleted_at: None });
    }
    commit(&*store, Change::DeleteSession(sessions[0])).await;
    ended[0].session_deleted_at = Some(NOW);
    ended.reverse();
    assert_eq!(store.finished_runs(None, 10).await.unwrap(), ended);
    assert_eq!(store.finished_runs(None, 1).await.unwrap(), ended[..1]);
    assert_eq!(store.finished_runs(Some(ended[0]), 10).await.unwrap(), ended[1..]);
    assert_eq!(remove(&*store, Removable::RunFiles(ended[0].key)).await, 1);
    assert_eq!(remove(&*store, Removable::RunFiles(ended[0].key)).await, 0);
    assert_eq!(store.finished_runs(None, 10).await.unwrap(), ended[1..]);
    let nobody = RunKey { session: SessionId::random(), run: 1 };
    assert_eq!(remove(&*store, Removable::RunFiles(nobody)).await, 0);
}
