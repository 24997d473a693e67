//! Approvals are escalated from one addressee to the next.

use std::sync::Arc;

use plexus_protocol::{ApprovalId, AskedOf, Decider, EscalationReason, EscalationStep, SessionId};
use plexus_store::{Change, FeedKind, OpenFilter, Refusal, Store};

use crate::common::*;

fn somebody() -> AskedOf {
    AskedOf::Session { id: SessionId::random() }
}

async fn open_to(store: &dyn Store, asked: &AskedOf) -> Vec<(ApprovalId, u64)> {
    let open = store.open_approvals(OpenFilter::AskedOf(asked.key())).await.unwrap();
    open.into_iter().map(|row| (row.approval.id, row.number)).collect()
}

pub async fn an_addressee_that_is_passed_over_can_still_decide(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let (absent, asked) = (somebody(), somebody());
    let mut new = question(session, 1, "t");
    new.approval.asked_of = asked.clone();
    let went_on = |from: &AskedOf| EscalationStep {
        from: Some(from.clone()),
        why: EscalationReason::Absent,
        by: Decider::Hub,
        opinion: None,
        at: NOW,
    };
    new.approval.passed = vec![went_on(&absent)];
    let id = new.approval.id;
    let made = commit(&*store, Change::Ask(Box::new(new))).await;
    let notified: Vec<(String, FeedKind)> =
        made.feed.iter().map(|row| (row.to.clone(), row.kind())).collect();
    assert_eq!(notified, [(absent.key(), FeedKind::Asked), (asked.key(), FeedKind::Asked)]);
    assert_eq!(open_to(&*store, &absent).await, [(id, made.feed[0].number)]);
    assert_eq!(open_to(&*store, &asked).await, [(id, made.feed[1].number)]);

    let made = commit(&*store, denies(id)).await;
    let notified: Vec<(String, FeedKind)> =
        made.feed.iter().map(|row| (row.to.clone(), row.kind())).collect();
    assert_eq!(notified, [(absent.key(), FeedKind::Resolved), (asked.key(), FeedKind::Resolved)]);
    assert!(open_to(&*store, &absent).await.is_empty());
}

pub async fn an_approval_is_escalated_once_from_each_addressee(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let [first, second, third] = [(); 3].map(|()| somebody());
    let mut new = question(session, 1, "t");
    new.approval.asked_of = first.clone();
    let id = ask(&*store, new).await;
    let before = open_to(&*store, &first).await;
    let by_itself = Decider::from(&first);

    let on = passes_on(id, &[first.clone(), second.clone()], third.clone(), by_itself.clone());
    let made = commit(&*store, on.clone()).await;
    let row = &made.approvals[0];
    assert_eq!((&row.approval.asked_of, row.approval.passes_on_at), (&third, Some(NOW + 5)));
    let at: Vec<u64> = row.approval.passed.iter().map(|passed| passed.at).collect();
    assert_eq!(at, [NOW, NOW], "the store sets the time");
    assert!(open_to(&*store, &first).await.is_empty(), "it gave up the approval");
    assert_eq!(open_to(&*store, &second).await, [(id, made.feed[0].number)], "it was passed over");
    assert_eq!(open_to(&*store, &third).await, [(id, made.feed[1].number)]);
    // A second escalation from the same addressee.
    match refused(&*store, on).await {
        Refusal::AskedOfAnother(row) => assert_eq!(row.approval.asked_of, third),
        other => panic!("{other:?}"),
    }
    // The hub escalates it from the third addressee, which keeps its number.
    let on = passes_on(id, std::slice::from_ref(&third), AskedOf::Operator, Decider::Hub);
    let number = open_to(&*store, &third).await[0].1;
    commit(&*store, on.clone()).await;
    assert_eq!(open_to(&*store, &third).await, [(id, number)]);
    assert!(number > before[0].1);

    let made = commit(&*store, allows(id)).await;
    let notified: Vec<String> = made.feed.iter().map(|row| row.to.clone()).collect();
    assert_eq!(notified, [first.key(), second.key(), third.key(), "operator".to_owned()]);
    assert!(matches!(refused(&*store, on).await, Refusal::AlreadyResolved(_)));
}

pub async fn deadlines_are_set_for_the_current_addressee(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let asked_of = somebody();
    let mut new = question(session, 1, "t");
    new.approval.asked_of = asked_of.clone();
    let id = ask(&*store, new).await;
    let set = |asked_of: &AskedOf| Change::SetDeadlines {
        approval: id,
        asked_of: asked_of.clone(),
        expires_at: NOW + 300,
        escalates_at: Some(NOW + 120),
    };
    let made = commit(&*store, set(&asked_of)).await;
    let read = store.approval(id).await.unwrap().unwrap();
    for row in [&made.approvals[0], &read] {
        assert_eq!((row.approval.expires_at, row.approval.passes_on_at), (Some(NOW + 300), Some(NOW + 120)));
    }
    assert!(made.feed.is_empty() && made.events.is_empty(), "it has no other addressee");
    assert!(matches!(refused(&*store, set(&AskedOf::Operator)).await, Refusal::AskedOfAnother(_)));
    commit(&*store, denies(id)).await;
    assert!(matches!(refused(&*store, set(&asked_of)).await, Refusal::AlreadyResolved(_)));
}

pub async fn the_feed_number_up_to_which_a_session_was_woken_only_grows(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let woken = async |turn: u64, woken_to: Option<u64>| {
        commit(&*store, Change::StartTurn { session, turn, prompt: String::new(), woken_to }).await;
        commit(&*store, ends(session, turn)).await;
        store.session(session).await.unwrap().unwrap().woken_to
    };
    assert_eq!(woken(1, None).await, 0);
    assert_eq!(woken(2, Some(7)).await, 7);
    assert_eq!(woken(3, None).await, 7);
    assert_eq!(woken(4, Some(3)).await, 7);
}
