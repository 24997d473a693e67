//! Budgets: grants from the budget above, held calls, and notifications.

use std::collections::HashMap;
use std::sync::Arc;

use plexus_protocol::budget::BudgetLimit::{self, Children, CostUsd, ToolCalls, Turns, WallSecs};
use plexus_protocol::{ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decision, Event, SessionId};
use plexus_store::{
    BudgetRow, CallRow, Change, Committed, FeedEntry, FeedKind, Refusal, RunKey, SessionWithState, Store,
    StoreError, TurnStatus, Verdict,
};
use serde_json::json;

use crate::common::{NOW, allowed, commit, create, new_session, object, refused, said, start_turn};

/// Creates a session below another.
async fn below(store: &dyn Store, parent: SessionId, name: &str) -> SessionId {
    let mut new = new_session(name);
    new.answers_to = AskedOf::Session { id: parent };
    let id = new.id;
    commit(store, Change::CreateSession(Box::new(new))).await;
    id
}

fn call(session: SessionId, tool_use_id: &str, answer: &str) -> Box<CallRow> {
    Box::new(CallRow {
        key: RunKey { session, run: 1 },
        turn: 1,
        tool_use_id: tool_use_id.to_owned(),
        tool_name: "Bash".to_owned(),
        digest: "digest".to_owned(),
        request_id: format!("request of {tool_use_id}"),
        summary: String::new(),
        verdict: Verdict::from_stored(json!({"answer": answer, "reason": "a rule"})),
    })
}

async fn calls(store: &dyn Store, session: SessionId, tool_use_id: &str) -> Committed {
    commit(store, Change::Call(call(session, tool_use_id, "own_course"), object(json!({"a": 1})).into()))
        .await
}

async fn budget(store: &dyn Store, session: SessionId, limit: BudgetLimit) -> BudgetRow {
    let rows = store.budget(session).await.unwrap();
    rows.into_iter().find(|row| row.limit == limit).expect("a limit")
}

fn grants(approval: ApprovalId, more: u64) -> Change {
    let decision = Decision { updated_input: Some(object(json!({"more": more}))), ..allowed() };
    Change::Resolve { approval, status: ApprovalStatus::Allowed, decision: Box::new(decision) }
}

pub async fn a_grant_is_taken_from_the_budget_above(store: Arc<dyn Store>) {
    let parent = create(&*store, "parent").await;
    commit(&*store, Change::SetBudget(parent, vec![(ToolCalls, 10)])).await;
    let child = below(&*store, parent, "child").await;
    calls(&*store, child, "drawn on the parent").await;
    assert_eq!(budget(&*store, child, ToolCalls).await.session, parent);
    commit(&*store, Change::SetBudget(child, vec![(ToolCalls, 6)])).await;
    let of_parent = budget(&*store, parent, ToolCalls).await;
    assert_eq!((of_parent.own, of_parent.below, of_parent.left(), of_parent.used), (1, 6, 3, 1));
    let other = below(&*store, parent, "other").await;
    match refused(&*store, Change::SetBudget(other, vec![(ToolCalls, 4)])).await {
        Refusal::BudgetExceeded(row) => assert_eq!((row.session, row.left()), (parent, 3)),
        other => panic!("{other:?}"),
    }
    // A limit without a budget above can be granted freely.
    commit(&*store, Change::SetBudget(other, vec![(ToolCalls, 3), (CostUsd, 5)])).await;
    assert!(calls(&*store, parent, "none left for itself").await.held.len() == 1);
    match refused(&*store, Change::SetBudget(parent, vec![(ToolCalls, 9)])).await {
        Refusal::BudgetInUse(row) => assert_eq!(row.own + row.below, 10),
        other => panic!("{other:?}"),
    }
    let sessions_with_state = store.sessions_with_state().await.unwrap();
    let shown =
        sessions_with_state.iter().find(|sessions_with_state| sessions_with_state.row.id == parent).unwrap();
    assert_eq!(shown.budget, [budget(&*store, parent, ToolCalls).await]);
}

pub async fn a_deleted_session_returns_its_unused_budget(store: Arc<dyn Store>) {
    let parent = create(&*store, "parent").await;
    commit(&*store, Change::SetBudget(parent, vec![(ToolCalls, 10)])).await;
    let child = below(&*store, parent, "child").await;
    commit(&*store, Change::SetBudget(child, vec![(ToolCalls, 9)])).await;
    let grandchild = below(&*store, child, "grandchild").await;
    commit(&*store, Change::SetBudget(grandchild, vec![(ToolCalls, 5)])).await;
    calls(&*store, child, "1").await;
    calls(&*store, grandchild, "2").await;
    calls(&*store, grandchild, "3").await;
    // A tree is deleted from the top, so the parent is deleted first.
    store.commit(NOW, vec![Change::DeleteSession(child), Change::DeleteSession(grandchild)]).await.unwrap();
    let row = budget(&*store, parent, ToolCalls).await;
    assert_eq!((row.own, row.below, row.used, row.left()), (3, 0, 3, 7));
}

pub async fn a_call_is_held_until_its_exhausted_budget_is_raised(store: Arc<dyn Store>) {
    let parent = create(&*store, "parent").await;
    start_turn(&*store, parent, 1).await;
    let child = below(&*store, parent, "child").await;
    commit(&*store, Change::SetBudget(parent, vec![(ToolCalls, 1)])).await;
    assert!(calls(&*store, parent, "first").await.held.is_empty());
    let held = calls(&*store, parent, "second").await;
    let approval = held.approvals[0].approval.clone();
    assert_eq!((approval.kind, approval.session_id), (ApprovalKind::Budget, parent));
    assert_eq!(approval.asked_of, AskedOf::Operator);
    assert_eq!((approval.expires_at, approval.passes_on_at), (None, None), "the hub sets the deadlines");
    assert_eq!(approval.input["limit"], "tool_calls");
    assert_eq!((&approval.input["granted"], &approval.input["used"]), (&json!(1), &json!(1)));
    assert_eq!((&held.held[0].tool_use_id, held.held[0].approval), (&Some("second".to_owned()), approval.id));
    // All waiting calls share one approval. A denied call does not wait.
    let of_child = calls(&*store, child, "third").await;
    assert_eq!((of_child.held[0].approval, of_child.approvals.len()), (approval.id, 0));
    let denied = Change::Call(call(child, "fourth", "deny"), object(json!({})).into());
    assert!(commit(&*store, denied).await.held.is_empty());
    let kept = store.calls_without_result(RunKey { session: parent, run: 1 }).await.unwrap();
    let Verdict::Held { approval: waits_for, input, .. } = &kept[1].verdict else { panic!("{kept:?}") };
    assert_eq!((waits_for, input), (&approval.id, &object(json!({"a": 1}))));

    commit(&*store, grants(approval.id, 1)).await;
    assert_eq!(budget(&*store, child, ToolCalls).await.granted, 2);
    let again = grants(approval.id, 1);
    assert!(matches!(refused(&*store, again).await, Refusal::AlreadyResolved(_)), "it is raised once");
    let release = |session, id: &str| Change::Release(call(session, id, "allow"), object(json!({})).into());
    assert!(commit(&*store, release(parent, "second")).await.held.is_empty());
    let kept = store.calls_without_result(RunKey { session: parent, run: 1 }).await.unwrap();
    assert_eq!(kept[1].verdict, Verdict::Allow { reason: "a rule".to_owned() });
    // One more was granted and two waited: the other one waits for another approval.
    let held = commit(&*store, release(child, "third")).await.held;
    assert_ne!(held[0].approval, approval.id);
    commit(&*store, Change::SetBudget(parent, vec![(ToolCalls, 3)])).await;
    let ended = store.approval(held[0].approval).await.unwrap().unwrap().approval;
    assert_eq!(ended.status, ApprovalStatus::Withdrawn, "more was granted, so no answer is needed");
}

pub async fn a_budget_approval_that_nobody_waits_for_is_withdrawn(store: Arc<dyn Store>) {
    let parent = create(&*store, "parent").await;
    let child = below(&*store, parent, "child").await;
    commit(&*store, Change::SetBudget(parent, vec![(ToolCalls, 1)])).await;
    for session in [parent, child] {
        start_turn(&*store, session, 1).await;
    }
    calls(&*store, parent, "1").await;
    let approval = calls(&*store, parent, "2").await.held[0].approval;
    assert_eq!(calls(&*store, child, "3").await.held[0].approval, approval);
    for (session, status) in [(parent, ApprovalStatus::Pending), (child, ApprovalStatus::Withdrawn)] {
        let (last, summary) = (Box::new(said("over")), None);
        let status_of_turn = TurnStatus::Interrupted;
        commit(
            &*store,
            Change::EndTurn { session, turn: 1, status: status_of_turn, last, summary, cost_usd: 0.0 },
        )
        .await;
        let now = store.approval(approval).await.unwrap().unwrap().approval;
        assert_eq!(now.status, status, "it is withdrawn when no call waits");
    }
}

pub async fn an_approval_cannot_grant_more_than_the_budget_above_has_left(store: Arc<dyn Store>) {
    let parent = create(&*store, "parent").await;
    commit(&*store, Change::SetBudget(parent, vec![(ToolCalls, 3)])).await;
    let child = below(&*store, parent, "child").await;
    commit(&*store, Change::SetBudget(child, vec![(ToolCalls, 1)])).await;
    calls(&*store, child, "1").await;
    let approval = calls(&*store, child, "2").await.held[0].approval;
    match refused(&*store, grants(approval, 3)).await {
        Refusal::BudgetExceeded(row) => assert_eq!((row.session, row.left()), (parent, 2)),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.approval(approval).await.unwrap().unwrap().approval.status, ApprovalStatus::Pending);
    commit(&*store, grants(approval, 2)).await;
    assert_eq!(budget(&*store, parent, ToolCalls).await.left(), 0);
    // The returned budget ends the wait of the session above.
    let waiting = calls(&*store, parent, "3").await.held[0].approval;
    commit(&*store, Change::DeleteSession(child)).await;
    let ended = store.approval(waiting).await.unwrap().unwrap().approval;
    assert_eq!(ended.status, ApprovalStatus::Withdrawn);
}

pub async fn turns_and_children_are_refused_when_their_budget_is_exhausted(store: Arc<dyn Store>) {
    let parent = create(&*store, "parent").await;
    commit(&*store, Change::SetBudget(parent, vec![(Turns, 1), (Children, 1), (CostUsd, 500_000)])).await;
    let child = below(&*store, parent, "child").await;
    let mut new = new_session("one-too-many");
    new.answers_to = AskedOf::Session { id: child };
    match refused(&*store, Change::CreateSession(Box::new(new))).await {
        Refusal::BudgetExhausted(row) => assert_eq!((row.session, row.limit), (parent, Children)),
        other => panic!("{other:?}"),
    }
    commit(&*store, Change::CheckBudget(child)).await;
    start_turn(&*store, child, 1).await;
    match refused(&*store, Change::CheckBudget(parent)).await {
        Refusal::BudgetExhausted(row) => assert_eq!((row.limit, row.used), (Turns, 1)),
        other => panic!("{other:?}"),
    }
    let end = Change::EndTurn {
        session: child,
        turn: 1,
        status: TurnStatus::Complete,
        last: Box::new(said("done")),
        summary: None,
        cost_usd: 0.75,
    };
    commit(&*store, end).await;
    commit(&*store, Change::SetBudget(parent, vec![(Turns, 2)])).await;
    match refused(&*store, Change::CheckBudget(child)).await {
        Refusal::BudgetExhausted(row) => assert_eq!((row.limit, row.used), (CostUsd, 750_000)),
        other => panic!("{other:?}"),
    }
    let held = commit(&*store, Change::AskBudget(child)).await.held;
    assert_eq!((held[0].limit.limit, &held[0].tool_use_id), (CostUsd, &None));
    commit(&*store, Change::SetBudget(parent, vec![(CostUsd, 2_000_000)])).await;
    commit(&*store, Change::CheckBudget(child)).await;
    assert!(commit(&*store, Change::AskBudget(child)).await.held.is_empty());
}

pub async fn every_ancestor_is_notified_once_at_80_percent(store: Arc<dyn Store>) {
    let parent = create(&*store, "parent").await;
    let child = below(&*store, parent, "child").await;
    start_turn(&*store, child, 1).await;
    commit(&*store, Change::SetBudget(child, vec![(WallSecs, 10_000)])).await;
    let notified = |made: &Committed| {
        let notices = made.feed.iter().filter(|row| row.kind() == FeedKind::Notice);
        (notices.map(|row| row.to.clone()).collect::<Vec<_>>(), made.events.len())
    };
    let spends = |amount| Change::Spend(child, WallSecs, amount);
    assert_eq!(notified(&commit(&*store, spends(7_999)).await), (vec![], 0));
    let made = commit(&*store, spends(1)).await;
    assert_eq!(notified(&made), (vec![format!("session:{parent}")], 1));
    let FeedEntry::BudgetLow(notice) = &made.feed[0].entry else { panic!("{made:?}") };
    assert_eq!((notice.session_id, notice.limit), (child, WallSecs));
    assert_eq!([&notice.granted, &notice.used, &notice.left], [&10.into(), &8.into(), &2.into()]);
    assert_eq!(made.events[0].event.value()["data"], json!(notice));
    assert_eq!((made.events[0].turn, &made.events[0].event.value()["subtype"]), (1, &json!("budget")));
    assert_eq!(notified(&commit(&*store, spends(1_000)).await), (vec![], 0));
    commit(&*store, Change::SetBudget(child, vec![(WallSecs, 20_000)])).await;
    assert_eq!(notified(&commit(&*store, spends(7_000)).await).1, 1, "a new grant is notified about again");
    let event: Event = serde_json::from_value(made.events[0].event.value()).unwrap();
    assert!(matches!(event, Event::System { .. }));
}

/// Random changes of a tree: sessions are created, use and grant budget, and are deleted. A step may be refused, but the figures stay correct.
pub async fn no_sequence_of_changes_breaks_the_budget_arithmetic(store: Arc<dyn Store>) {
    for seed in 0..10 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut tree = Tree { parents: HashMap::new(), ran: 0 };
        let root = create(&*store, &format!("root-{seed}")).await;
        tree.parents.insert(root, None);
        let given = chance.u64(1..40);
        commit(&*store, Change::SetBudget(root, vec![(ToolCalls, given), (WallSecs, 1)])).await;
        let (mut most, mut time) = (given, 0);
        for step in 0..60 {
            let sessions_with_state: Vec<SessionId> = tree.sessions_with_state(&*store).await;
            let one = sessions_with_state[chance.usize(..sessions_with_state.len())];
            match chance.u8(..10) {
                0..3 => {
                    let mut new = new_session(&format!("s-{seed}-{step}"));
                    new.answers_to = AskedOf::Session { id: one };
                    let id = new.id;
                    let mut changes = vec![Change::CreateSession(Box::new(new))];
                    let mut time_limited = None;
                    if chance.bool() {
                        changes.push(Change::SetBudget(id, vec![(ToolCalls, chance.u64(1..15))]));
                        time_limited = chance.bool().then_some(id);
                    }
                    if tolerated(store.commit(NOW, changes).await).is_some() {
                        tree.parents.insert(id, Some(one));
                        if let Some(id) = time_limited {
                            let more = budget(&*store, root, WallSecs).await.granted + 100;
                            commit(&*store, Change::SetBudget(root, vec![(WallSecs, more)])).await;
                            let set = Change::SetBudget(id, vec![(WallSecs, chance.u64(1..9))]);
                            tolerated(store.commit(NOW, vec![set]).await);
                        }
                    }
                }
                3..7 => {
                    let held = calls(&*store, one, &format!("t-{seed}-{step}")).await.held;
                    tree.ran += u64::from(held.is_empty());
                }
                7 => {
                    let amount = chance.u64(1..25);
                    let set = Change::SetBudget(one, vec![(ToolCalls, amount)]);
                    // Time can be overdrawn. The overdraft is taken from above.
                    let spent = chance.u64(1..9);
                    commit(&*store, Change::Spend(one, WallSecs, spent)).await;
                    time += spent;
                    if tolerated(store.commit(NOW, vec![set]).await).is_some() && one == root {
                        most = most.max(amount);
                    }
                }
                8 => {
                    let open = store.open_approvals(plexus_store::OpenFilter::OfSession(one)).await.unwrap();
                    if let Some(row) = open.first() {
                        let more = chance.u64(1..5);
                        let given = store.commit(NOW, vec![grants(row.approval.id, more)]).await;
                        if tolerated(given).is_some() && one == root {
                            most += more;
                        }
                    }
                }
                _ if one != root => {
                    let mut gone = tree.subtree(one, &sessions_with_state);
                    chance.shuffle(&mut gone);
                    store.commit(NOW, gone.into_iter().map(Change::DeleteSession).collect()).await.unwrap();
                }
                _ => {}
            }
            tree.check(&*store, seed, step).await;
        }
        assert_eq!(
            budget(&*store, root, WallSecs).await.used,
            time,
            "seed {seed}: every use counts at the top"
        );
        assert!(tree.ran <= most, "seed {seed}: {} ran, at most {most} were ever given", tree.ran);
    }
}

fn tolerated(done: Result<Committed, StoreError>) -> Option<Committed> {
    match done {
        Ok(made) => Some(made),
        Err(StoreError::Refused(Refusal::BudgetExceeded(_) | Refusal::BudgetInUse(_))) => None,
        Err(other) => panic!("{other:?}"),
    }
}

struct Tree {
    parents: HashMap<SessionId, Option<SessionId>>,
    ran: u64,
}

impl Tree {
    async fn sessions_with_state(&self, store: &dyn Store) -> Vec<SessionId> {
        let sessions_with_state = store.sessions_with_state().await.unwrap();
        sessions_with_state
            .into_iter()
            .map(|it| it.row.id)
            .filter(|id| self.parents.contains_key(id))
            .collect()
    }

    fn subtree(&self, top: SessionId, sessions_with_state: &[SessionId]) -> Vec<SessionId> {
        let mut of_top = sessions_with_state.to_vec();
        of_top.retain(|id| std::iter::successors(Some(*id), |id| self.parents[id]).any(|id| id == top));
        of_top
    }

    /// The reserved amount is the sum of the claims below. For a limit that cannot be overdrawn, the used and reserved amounts
    /// never exceed the grant.
    async fn check(&self, store: &dyn Store, seed: u64, step: u32) {
        let sessions_with_state = store.sessions_with_state().await.unwrap();
        for limit in [ToolCalls, WallSecs] {
            let mine = sessions_with_state.iter().filter(|it| self.parents.contains_key(&it.row.id));
            let row = |it: &SessionWithState| it.budget.iter().find(|row| row.limit == limit).cloned();
            let limited: HashMap<SessionId, BudgetRow> =
                mine.filter_map(|it| Some((it.row.id, row(it)?))).collect();
            let mut aside: HashMap<SessionId, u64> = HashMap::new();
            for (id, row) in &limited {
                let mut above = std::iter::successors(self.parents[id], |id| self.parents[id]);
                if let Some(drawn_on) = above.find(|id| limited.contains_key(id)) {
                    *aside.entry(drawn_on).or_default() += row.granted.max(row.own + row.below);
                }
            }
            for (id, row) in &limited {
                let what = format!("seed {seed} step {step}: {row:?}");
                assert_eq!(row.below, aside.get(id).copied().unwrap_or(0), "{what}");
                if limit == ToolCalls {
                    assert!(row.own + row.below <= row.granted && row.used <= row.granted, "{what}");
                }
            }
        }
    }
}
