//! The fan-out of the feed: who gets `Asked`, `Resolved`, `Finished` and `Notice` entries.

use plexus_protocol::budget::BudgetLimit::ToolCalls;
use plexus_protocol::{EscalationReason, EscalationStep};

use super::*;
use crate::FeedKind::{self, Asked, Finished, Notice, Resolved};
use crate::{FeedEntry, Resolution};

fn entries(committed: &Committed) -> Vec<(FeedKind, String)> {
    committed.feed.iter().map(|entry| (entry.kind(), entry.to.clone())).collect()
}

fn session_key(id: SessionId) -> String {
    AskedOf::Session { id }.key()
}

fn operator() -> String {
    AskedOf::Operator.key()
}

fn passed(from: &AskedOf, why: EscalationReason, by: Decider) -> EscalationStep {
    EscalationStep { from: Some(from.clone()), why, by, opinion: None, at: 0 }
}

#[test]
fn the_end_of_a_turn_is_reported_to_every_agent_above_and_to_the_operator_of_a_root() {
    let store = MemoryStore::default();
    let [top, middle, bottom] = chain(&store);
    let parent = AskedOf::Parent { id: "claude".to_owned() };
    let of_parent = create(&store, "of-parent", parent.clone());
    let below_parent = create(&store, "below-parent", AskedOf::Session { id: of_parent });
    for (session, expected) in [
        (top, vec![operator()]),
        (middle, vec![session_key(top)]),
        (bottom, vec![session_key(middle), session_key(top)]),
        (of_parent, vec![parent.key()]),
        (below_parent, vec![session_key(of_parent), parent.key()]),
    ] {
        start_turn(&store, session);
        let committed = apply(&store, end_turn(session, 0.0));
        let expected: Vec<_> = expected.into_iter().map(|to| (Finished, to)).collect();
        assert_eq!(entries(&committed), expected);
        let (status, summary) = (TurnStatus::Complete, Some("done".to_owned()));
        assert_eq!(committed.feed[0].entry, FeedEntry::Finished { turn: 1, status, summary });
        assert!(entries(&apply(&store, end_turn(session, 0.0))).is_empty(), "a turn ends once");
    }
}

#[test]
fn every_addressee_is_notified_when_an_approval_is_resolved() {
    let store = MemoryStore::default();
    let [top, middle, bottom] = chain(&store);
    let [top, middle] = [top, middle].map(|id| AskedOf::Session { id });
    let mut new = approval(bottom, top.clone());
    new.approval.passed = vec![passed(&middle, EscalationReason::Absent, Decider::Hub)];
    let id = new.approval.id;
    let committed = apply(&store, Change::Ask(Box::new(new)));
    assert_eq!(entries(&committed), [(Asked, middle.key()), (Asked, top.key())]);
    let escalate = Change::Escalate {
        approval: id,
        passed_over: vec![passed(&top, EscalationReason::Escalated, Decider::from(&top))],
        to: AskedOf::Operator,
        escalates_at: None,
    };
    assert_eq!(entries(&apply(&store, escalate)), [(Asked, operator())]);
    let committed = apply(&store, allows(id, None));
    assert_eq!(
        entries(&committed),
        [(Resolved, middle.key()), (Resolved, top.key()), (Resolved, operator())]
    );
    for entry in &committed.feed {
        let resolution = Some(Resolution { status: ApprovalStatus::Allowed, by: Decider::Operator });
        let expected = FeedEntry::Resolved { approval: id, turn: 1, resolution };
        assert_eq!((entry.session, &entry.entry), (bottom, &expected));
    }
}

#[test]
fn every_ancestor_of_a_grant_is_notified_once_when_most_of_it_is_used() {
    let store = MemoryStore::default();
    let [top, middle, bottom] = chain(&store);
    apply(&store, Change::SetBudget(middle, vec![(ToolCalls, 10)]));
    let spend = |amount| apply(&store, Change::Spend(bottom, ToolCalls, amount));
    assert!(entries(&spend(7)).is_empty());
    let committed = spend(1);
    assert_eq!(entries(&committed), [(Notice, session_key(top))]);
    assert_eq!(committed.feed[0].session, middle);
    assert_eq!(committed.events[0].session, bottom, "the event is in the turn that used it");
    assert!(entries(&spend(1)).is_empty());
}

#[test]
fn only_the_addressee_receives_a_notice() {
    let store = MemoryStore::default();
    let [session] = chain(&store);
    let notice = |session| Change::Notice { to: "x".to_owned(), session, data: json!({"a": 1}) };
    let committed = apply(&store, notice(session));
    assert_eq!(entries(&committed), [(Notice, "x".to_owned())]);
    let nobody = SessionId::random();
    assert!(matches!(refused(&store, notice(nobody)), Refusal::NoSuchSession(id) if id == nobody));
}
