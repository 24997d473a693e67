//! Budget arithmetic: grants, uses, amounts reserved for descendants, and the amount that a deleted session
//! returns.

use plexus_protocol::SessionId;
use plexus_protocol::budget::BudgetLimit::{self, Children, CostUsd, ToolCalls, Turns};

use super::super::budgets::Carried;
use super::*;
use crate::BudgetRow;
use crate::rows::{BudgetRows, Share};

fn share(granted: u64, own: u64, below: u64) -> Share {
    let row = BudgetRow { session: SessionId::random(), limit: ToolCalls, granted, own, below, used: own };
    Share { row, notified: false, deleted: false }
}

fn deleted(granted: u64, own: u64, below: u64) -> Share {
    Share { deleted: true, ..share(granted, own, below) }
}

const fn own(own: i64) -> Carried {
    Carried { own, below: 0 }
}

const fn below(below: i64) -> Carried {
    Carried { own: 0, below }
}

#[test]
fn a_claim_is_the_larger_of_grant_and_use_and_after_deletion_the_use() {
    let table = [
        (share(10, 0, 0), 10),
        (share(10, 3, 4), 10),
        (share(10, 8, 4), 12),
        (share(u64::MAX, 0, 0), i64::MAX),
        (deleted(10, 3, 4), 7),
        (deleted(10, 0, 0), 0),
    ];
    for (share, claim) in table {
        assert_eq!(share.claim(), claim, "{share:?}");
    }
}

#[test]
fn a_change_is_propagated_upwards_only_if_it_changes_the_claim() {
    // grant before, change from below, own and below afterwards, change for the next grant above
    let table = [
        (share(10, 0, 0), own(3), (3, 0), below(0)),
        (share(10, 0, 0), below(6), (0, 6), below(0)),
        (share(10, 9, 0), own(3), (12, 0), below(2)),
        (share(10, 12, 0), own(1), (13, 0), below(1)),
        (share(10, 0, 6), Carried { own: 2, below: -6 }, (2, 0), below(0)),
        (share(10, 12, 0), own(-20), (0, 0), below(-2)),
        (deleted(10, 3, 0), own(2), (5, 0), own(2)),
        (deleted(10, 0, 6), Carried { own: 2, below: -6 }, (2, 0), own(-4)),
    ];
    for (mut share, change, (own, below), above) in table {
        let before = share.clone();
        assert_eq!(share.add(change, 0), above, "{before:?} {change:?}");
        assert_eq!((share.row.own, share.row.below), (own, below), "{before:?} {change:?}");
    }
}

#[test]
fn a_grant_never_falls_below_its_use_and_reserves() {
    for (granted, change) in [(7, Some(below(-3))), (10, Some(below(0))), (15, Some(below(5))), (6, None)] {
        let mut share = share(10, 3, 4);
        match (share.regrant(granted), change) {
            (Ok(got), Some(expected)) => assert_eq!((got, share.row.granted), (expected, granted)),
            (Err(Refusal::BudgetInUse(row)), None) => assert_eq!(row.granted, 10),
            (got, expected) => panic!("{granted}: {got:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn a_new_grant_can_cause_another_low_budget_notice() {
    let mut share = share(10, 8, 0);
    share.notified = true;
    share.regrant(10).unwrap();
    assert!(share.notified, "the same grant");
    share.regrant(20).unwrap();
    assert!(!share.notified);
}

#[test]
fn a_deleted_session_returns_the_unused_part() {
    for (mut share, change) in [
        (share(10, 3, 0), Carried { own: 3, below: -10 }),
        (share(10, 3, 4), Carried { own: 7, below: -10 }),
        (share(10, 12, 0), Carried { own: 12, below: -12 }),
    ] {
        assert_eq!(share.release(), change);
        assert!(share.deleted);
    }
}

#[test]
fn most_of_a_grant_is_used_from_80_percent_on() {
    for (granted, used, is_mostly_used) in [
        (10, 7, false),
        (10, 8, true),
        (10, 11, true),
        (1, 0, false),
        (1, 1, true),
        (u64::MAX, u64::MAX, true),
    ] {
        let mut share = share(granted, 0, 0);
        share.row.used = used;
        assert_eq!(share.is_mostly_used(), is_mostly_used, "{used} of {granted}");
    }
}

/// Granted, own, below and used of one session.
fn figures(store: &MemoryStore, session: SessionId, limit: BudgetLimit) -> [u64; 4] {
    let row = store.tables().share(session, limit).unwrap().unwrap().row;
    [row.granted, row.own, row.below, row.used]
}

#[test]
fn a_use_is_charged_to_the_nearest_grant_and_added_to_every_grant_above() {
    let store = MemoryStore::default();
    let [top, middle, bottom] = chain(&store);
    apply(&store, Change::SetBudget(top, vec![(ToolCalls, 10)]));
    apply(&store, Change::Spend(bottom, ToolCalls, 1));
    assert_eq!(figures(&store, top, ToolCalls), [10, 1, 0, 1], "without a grant of its own");
    apply(&store, Change::SetBudget(bottom, vec![(ToolCalls, 4)]));
    assert_eq!(figures(&store, top, ToolCalls), [10, 1, 4, 1], "a grant is set aside above");
    apply(&store, Change::Spend(bottom, ToolCalls, 3));
    assert_eq!(figures(&store, bottom, ToolCalls), [4, 3, 0, 3]);
    assert_eq!(figures(&store, top, ToolCalls), [10, 1, 4, 4]);
    apply(&store, Change::Spend(bottom, ToolCalls, 3));
    assert_eq!(figures(&store, top, ToolCalls), [10, 1, 6, 7], "an overdraft is taken from above");
    apply(&store, Change::SetBudget(middle, vec![(ToolCalls, 7)]));
    assert_eq!(
        figures(&store, middle, ToolCalls),
        [7, 0, 6, 0],
        "a grant in between takes over the claims below"
    );
    assert_eq!(figures(&store, top, ToolCalls), [10, 1, 7, 7]);
    apply(&store, Change::DeleteSession(bottom));
    assert_eq!(figures(&store, middle, ToolCalls), [7, 6, 0, 0], "the used part becomes its own");
    apply(&store, Change::DeleteSession(middle));
    assert_eq!(figures(&store, top, ToolCalls), [10, 7, 0, 7]);
}

#[test]
fn each_limit_counts_its_own_unit() {
    let store = MemoryStore::default();
    let [top] = chain(&store);
    apply(
        &store,
        Change::SetBudget(top, vec![(Children, 2), (Turns, 2), (CostUsd, 1_000_000), (ToolCalls, 9)]),
    );
    create(&store, "child", AskedOf::Session { id: top });
    start_turn(&store, top);
    for answer in ["allow", "ask", "own_course", "deny"] {
        apply(&store, at_gate(top, answer, answer));
    }
    apply(&store, end_turn(top, 0.25));
    let used = |limit| figures(&store, top, limit)[3];
    assert_eq!((used(Children), used(Turns), used(CostUsd)), (1, 1, 250_000));
    assert_eq!(used(ToolCalls), 3, "a denied call is not counted");
}

#[test]
fn a_refused_grant_changes_nothing() {
    let store = MemoryStore::default();
    let [top, bottom] = chain(&store);
    apply(&store, Change::SetBudget(top, vec![(ToolCalls, 5)]));
    let two = Change::SetBudget(bottom, vec![(Turns, 1), (ToolCalls, 6)]);
    assert!(matches!(refused(&store, two), Refusal::BudgetExceeded(row) if row.session == top));
    assert!(store.tables().share(bottom, Turns).unwrap().is_none(), "the first limit is rolled back with it");
    assert_eq!(figures(&store, top, ToolCalls), [5, 0, 0, 0]);
}
