//! Reads of the past.

use std::sync::Arc;

use plexus_protocol::{ApprovalStatus, AskedOf, Decider, Right, SessionId};
use plexus_store::{
    AuditBound, AuditFact, CallInput, CallRow, Change, NewSession, Period, RunKey, SessionParent, SpanEnd,
    Store, TurnStatus, Verdict,
};

use crate::common::*;

const ALL: AuditBound = AuditBound { entries: 1000, bytes: 1 << 20 };

fn period(from: u64, to: u64) -> Period {
    Period { from: NOW + from, to: NOW + to }
}

async fn commit_at(store: &dyn Store, at: u64, change: Change) {
    store.commit(NOW + at, vec![change]).await.unwrap();
}

pub async fn ended_turns_are_found_by_time_with_their_cost(store: Arc<dyn Store>) {
    let id = create(&*store, "a").await;
    for (turn, start, end) in [(1, 10, 20), (2, 30, 40), (3, 50, 90)] {
        let prompt = "p".repeat(10_000);
        commit_at(&*store, start, Change::StartTurn { session: id, turn, prompt, woken_to: None }).await;
        let last = Box::new(said("the last"));
        let status = if turn == 2 { TurnStatus::Interrupted } else { TurnStatus::Complete };
        let cost_usd = turn as f64 / 4.0;
        let end_turn = Change::EndTurn { session: id, turn, status, last, summary: None, cost_usd };
        commit_at(&*store, end, end_turn).await;
    }
    commit_at(&*store, 95, Change::StartTurn { session: id, turn: 4, prompt: String::new(), woken_to: None })
        .await;
    let found = async |from, to, limit| -> Vec<u64> {
        store.ended_turns(period(from, to), limit).await.unwrap().into_iter().map(|turn| turn.turn).collect()
    };
    assert_eq!(found(0, 100, 10).await, [3, 2, 1], "a running turn has not ended");
    assert_eq!(found(0, 100, 2).await, [3, 2]);
    assert_eq!(found(20, 51, 10).await, [3, 2, 1], "turns that overlap the period");
    assert_eq!(found(21, 50, 10).await, [2]);
    let turns = store.ended_turns(period(35, 45), 10).await.unwrap();
    let [turn] = &turns[..] else { panic!("{turns:?}") };
    assert_eq!((turn.session, turn.status), (id, TurnStatus::Interrupted));
    assert_eq!((turn.started_at, turn.ended_at, turn.cost_usd), (NOW + 30, NOW + 40, 0.5));
}

pub async fn approvals_are_found_by_the_time_of_their_end_with_their_addressees(store: Arc<dyn Store>) {
    let id = create(&*store, "a").await;
    start_run(&*store, id).await;
    start_turn(&*store, id, 1).await;
    let agent = AskedOf::Parent { id: "agent".to_owned() };
    let mut early = question(id, 1, "early");
    early.approval.asked_of = agent.clone();
    let early_id = early.approval.id;
    commit_at(&*store, 0, Change::Ask(Box::new(early))).await;
    let escalates = passes_on(early_id, std::slice::from_ref(&agent), AskedOf::Operator, Decider::Hub);
    commit_at(&*store, 5, escalates).await;
    let late_id = ask(&*store, question(id, 1, "late")).await;
    commit_at(&*store, 10, allows(early_id)).await;
    commit_at(&*store, 20, denies(late_id)).await;
    ask(&*store, question(id, 1, "open")).await;

    let found = store.resolved_approvals(period(0, 100), 10).await.unwrap();
    let [late, early] = &found[..] else { panic!("{found:?}") };
    assert_eq!((late.approval, early.approval), (late_id, early_id), "the latest first");
    assert_eq!((early.session, early.tool_name.as_str(), early.asked_at), (id, "Bash", NOW));
    assert_eq!(early.passed, [(agent, NOW + 5)]);
    assert_eq!(early.asked_of, AskedOf::Operator);
    let end = |at, status| Some(SpanEnd { at, status, by: Decider::Operator, right: Right::Operator });
    assert_eq!(early.resolved, end(NOW + 10, ApprovalStatus::Allowed));
    assert_eq!(late.resolved, end(NOW + 20, ApprovalStatus::Denied));
    let count =
        async |from, to, limit| store.resolved_approvals(period(from, to), limit).await.unwrap().len();
    assert_eq!((count(10, 20, 10).await, count(10, 21, 10).await, count(0, 100, 1).await), (1, 2, 1));

    let facts = store.audit_facts(period(0, 100), ALL).await.unwrap();
    assert_eq!(facts.complete_from, None);
    let decisions: Vec<_> = facts
        .facts
        .into_iter()
        .filter_map(|fact| match fact {
            AuditFact::Decision(span) => Some(span),
            AuditFact::Gate { .. } => None,
        })
        .collect();
    assert_eq!(decisions, found, "the audit log has the same facts");
}

pub async fn pending_approvals_are_spans_without_an_end(store: Arc<dyn Store>) {
    let id = create(&*store, "a").await;
    start_run(&*store, id).await;
    start_turn(&*store, id, 1).await;
    let first = ask(&*store, question(id, 1, "first")).await;
    let answered = ask(&*store, question(id, 1, "answered")).await;
    let second = ask(&*store, question(id, 1, "second")).await;
    commit(&*store, allows(answered)).await;
    let open = store.open_approval_spans().await.unwrap();
    assert_eq!(open.iter().map(|span| span.approval).collect::<Vec<_>>(), [first, second]);
    assert!(open.iter().all(|span| span.resolved.is_none() && span.session == id && span.asked_at == NOW));
}

fn call(session: SessionId, tool_use_id: &str, verdict: Verdict) -> Change {
    let row = CallRow {
        key: RunKey { session, run: 1 },
        turn: 1,
        tool_use_id: tool_use_id.to_owned(),
        tool_name: "Read".to_owned(),
        digest: String::new(),
        request_id: String::new(),
        verdict,
        summary: String::new(),
    };
    Change::Call(Box::new(row), CallInput::default())
}

pub async fn audit_entries_of_a_period_are_read_newest_first_up_to_a_bound(store: Arc<dyn Store>) {
    let id = create(&*store, "a").await;
    start_run(&*store, id).await;
    start_turn(&*store, id, 1).await;
    let reason = || "rule".to_owned();
    for at in 0..200_u64 {
        let verdict = if at % 2 == 0 {
            Verdict::Allow { reason: reason() }
        } else {
            Verdict::Deny { reason: reason() }
        };
        // The clock was set back by a few seconds once.
        let at = if at == 120 { 115 } else { at };
        commit_at(&*store, at, call(id, &at.to_string(), verdict)).await;
    }
    let times = async |from, to, bound| -> Vec<u64> {
        let found = store.audit_facts(period(from, to), bound).await.unwrap();
        found
            .facts
            .iter()
            .map(|fact| match fact {
                AuditFact::Gate { at, session, status } => {
                    assert_eq!(*session, Some(id));
                    let even = (at - NOW).is_multiple_of(2) || at - NOW == 115;
                    let is_allowed = *status == ApprovalStatus::Allowed;
                    assert!(even || !is_allowed, "{fact:?}");
                    at - NOW
                }
                AuditFact::Decision(_) => panic!("{fact:?}"),
            })
            .collect()
    };
    assert_eq!(times(50, 54, ALL).await, [53, 52, 51, 50]);
    assert_eq!(times(114, 118, ALL).await, [115, 117, 116, 115, 114], "in the order of the log");
    assert_eq!(times(500, 600, ALL).await, [0_u64; 0]);
    let few = AuditBound { entries: 3, ..ALL };
    assert_eq!(times(0, 1000, few).await, [199, 198, 197]);
    let found = store.audit_facts(period(0, 1000), few).await.unwrap();
    assert_eq!(found.complete_from, Some(NOW + 197));
    let small = AuditBound { bytes: 10, ..ALL };
    let found = store.audit_facts(period(0, 1000), small).await.unwrap();
    assert!(found.facts.is_empty() && found.complete_from.is_some());
}

pub async fn calls_are_counted_by_session_and_part_of_a_period(store: Arc<dyn Store>) {
    let [a, b] = [create(&*store, "a").await, create(&*store, "b").await];
    for id in [a, b] {
        start_run(&*store, id).await;
        start_turn(&*store, id, 1).await;
    }
    for (n, (session, at)) in
        [(a, 5), (a, 10), (a, 19), (b, 19), (a, 20), (b, 29), (a, 30)].into_iter().enumerate()
    {
        commit_at(&*store, at, call(session, &n.to_string(), Verdict::NoOpinion)).await;
    }
    let counted = async |limit| -> Vec<(u64, SessionId, u64)> {
        let mut counts = store.call_counts(period(10, 30), 10, limit).await.unwrap();
        counts.sort_by_key(|count| (count.part, count.session != a));
        counts.into_iter().map(|count| (count.part, count.session, count.calls)).collect()
    };
    assert_eq!(counted(100).await, [(0, a, 2), (0, b, 1), (1, a, 1), (1, b, 1)]);
    assert_eq!(counted(2).await, [(1, a, 1), (1, b, 1)], "the latest");
}

pub async fn every_session_is_listed_with_its_creator(store: Arc<dyn Store>) {
    let top = create(&*store, "top").await;
    let below = NewSession { answers_to: AskedOf::Session { id: top }, ..new_session("below") };
    let id = below.id;
    commit(&*store, Change::CreateSession(Box::new(below))).await;
    commit(&*store, Change::DeleteSession(id)).await;
    let parents = store.session_parents().await.unwrap();
    let expected = [
        SessionParent { id: top, answers_to: AskedOf::Operator },
        SessionParent { id, answers_to: AskedOf::Session { id: top } },
    ];
    assert_eq!(parents, expected);
}
