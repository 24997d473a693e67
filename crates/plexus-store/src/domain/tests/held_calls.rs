//! Held calls, and the budget approvals that they create.

use plexus_protocol::budget::BudgetLimit::{self, CostUsd, ToolCalls, WallSecs};

use super::*;
use crate::rows::{ApprovalRows, CallKey};

/// A session with nothing left of one limit.
fn exhausted(store: &MemoryStore, limit: BudgetLimit) -> SessionId {
    let [session] = chain(store);
    start_turn(store, session);
    apply(store, Change::SetBudget(session, vec![(limit, 1)]));
    apply(store, Change::Spend(session, limit, 1));
    session
}

fn status(store: &MemoryStore, id: ApprovalId) -> ApprovalStatus {
    store.tables().approval(id).unwrap().unwrap().approval.status
}

fn stored_answer(store: &MemoryStore, session: SessionId, tool_use_id: &str) -> Value {
    let run = RunKey { session, run: 1 };
    json!(store.tables().verdict(&CallKey { run, tool_use_id }).unwrap())["answer"].clone()
}

#[test]
fn a_call_is_held_if_and_only_if_a_limit_that_it_needs_is_exhausted() {
    use BudgetLimit::{Children, Turns};
    for (limit, answer, is_held) in [
        (ToolCalls, "allow", true),
        (ToolCalls, "ask", true),
        (ToolCalls, "own_course", true),
        (CostUsd, "allow", true),
        (WallSecs, "allow", true),
        (ToolCalls, "deny", false),
        (Turns, "allow", false),
        (Children, "allow", false),
    ] {
        let store = MemoryStore::default();
        let session = exhausted(&store, limit);
        let committed = apply(&store, at_gate(session, "t", answer));
        assert_eq!(committed.holds("t"), is_held, "{limit:?} {answer}");
        let stored = stored_answer(&store, session, "t");
        assert_eq!(stored, if is_held { "held" } else { answer }, "{limit:?} {answer}");
        let has_entry = matches!(answer, "allow" | "deny") && !is_held;
        assert_eq!(committed.audit.is_some(), has_entry, "a held call is not answered: {limit:?} {answer}");
    }
}

#[test]
fn a_released_call_is_counted_and_answered_or_held_again() {
    let store = MemoryStore::default();
    let session = exhausted(&store, ToolCalls);
    let approval = apply(&store, at_gate(session, "t", "allow")).held[0].approval;
    let release = || Change::Release(Box::new(call(session, "t", "allow")), Object::new().into());
    let again = apply(&store, release());
    assert_eq!(again.held[0].approval, approval, "nothing was granted: it waits for the same approval");
    apply(&store, allows(approval, Some(json!({"more": 1}))));
    assert!(apply(&store, release()).held.is_empty());
    assert_eq!(stored_answer(&store, session, "t"), "allow");
    assert!(apply(&store, at_gate(session, "u", "allow")).holds("u"), "the granted call is used");
}

#[test]
fn all_waiting_calls_share_one_budget_approval() {
    let store = MemoryStore::default();
    let [top, bottom] = chain(&store);
    apply(&store, Change::SetBudget(top, vec![(ToolCalls, 1)]));
    apply(&store, Change::Spend(top, ToolCalls, 1));
    for session in [top, bottom] {
        start_turn(&store, session);
    }
    let held = [top, bottom].map(|session| apply(&store, at_gate(session, "t", "allow")).held.remove(0));
    assert_eq!(held[0].approval, held[1].approval);
    apply(&store, end_turn(top, 0.0));
    assert_eq!(status(&store, held[0].approval), ApprovalStatus::Pending, "the other call waits");
    apply(&store, end_turn(bottom, 0.0));
    assert_eq!(status(&store, held[0].approval), ApprovalStatus::Withdrawn);
}

#[test]
fn a_budget_approval_is_resolved_when_its_grant_is_raised_or_deleted() {
    type End = fn(SessionId, ApprovalId) -> Change;
    let table: [(End, ApprovalStatus); 3] = [
        (|session, _| Change::SetBudget(session, vec![(ToolCalls, 5)]), ApprovalStatus::Withdrawn),
        (|session, _| Change::DeleteSession(session), ApprovalStatus::Withdrawn),
        (|_, approval| allows(approval, Some(json!({"more": 2}))), ApprovalStatus::Allowed),
    ];
    for (end, expected) in table {
        let store = MemoryStore::default();
        let session = exhausted(&store, ToolCalls);
        let approval = apply(&store, at_gate(session, "t", "allow")).held[0].approval;
        apply(&store, end(session, approval));
        assert_eq!(status(&store, approval), expected);
    }
}

#[test]
fn a_budget_approval_belongs_to_the_session_with_the_grant() {
    let store = MemoryStore::default();
    let [top, middle, bottom] = chain(&store);
    apply(&store, Change::SetBudget(middle, vec![(ToolCalls, 1)]));
    apply(&store, Change::Spend(bottom, ToolCalls, 1));
    start_turn(&store, bottom);
    let committed = apply(&store, at_gate(bottom, "t", "allow"));
    let row = &committed.approvals[0];
    assert_eq!((row.approval.session_id, row.turn), (middle, 0), "its own turn is over");
    assert_eq!(row.approval.asked_of, AskedOf::Session { id: top });
    assert_eq!(
        (&row.approval.input["wanted_by"], &row.approval.input["more"]),
        (&json!("level-2"), &json!(1))
    );
}

#[test]
fn a_running_turn_asks_for_cost_and_time_only() {
    for (limit, asks) in [(CostUsd, true), (WallSecs, true), (ToolCalls, false), (BudgetLimit::Turns, false)]
    {
        let store = MemoryStore::default();
        let session = exhausted(&store, limit);
        let held = apply(&store, Change::AskBudget(session)).held;
        assert_eq!(held.len(), usize::from(asks), "{limit:?}");
        assert!(held.iter().all(|held| held.tool_use_id.is_none()));
    }
}
