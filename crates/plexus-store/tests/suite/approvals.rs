//! Approvals are created once, resolved once, and found by their addressees.

use std::sync::Arc;

use plexus_protocol::claudecode::Channel;
use plexus_protocol::{ApprovalId, ApprovalStatus, AskedOf, Decider, Decision, SessionId};
use plexus_store::{
    CallIds, CallInput, CallRow, Change, FeedEntry, NewRule, OpenFilter, PermitStream, Refusal, Resolution,
    RuleAuthority, RunKey, Store, StoreError, Tally, Verdict,
};
use serde_json::json;

use crate::common::*;

async fn open_ids(store: &dyn Store, which: OpenFilter) -> Vec<ApprovalId> {
    store.open_approvals(which).await.unwrap().into_iter().map(|row| row.approval.id).collect()
}

pub async fn a_new_approval_is_reported_in_its_turn_and_to_its_addressee(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    start_turn(&*store, session, 1).await;
    let new = question(session, 1, "t");
    let made = commit(&*store, Change::Ask(Box::new(new.clone()))).await;

    let id = new.approval.id;
    assert_eq!(
        made.events[0].event.value(),
        json!({"type": "approval_requested", "approval_id": id, "tool_use_id": "t"})
    );
    assert_eq!((made.events[0].turn, made.events[0].seq), (1, 0));
    let [feed] = &made.feed[..] else { panic!("{made:?}") };
    assert_eq!((feed.to.as_str(), feed.session), ("operator", session));
    assert_eq!(feed.entry, FeedEntry::Asked { approval: id, turn: 1 });

    let mut shown = new.approval.clone();
    shown.session_name = name("a");
    shown.host = store.host().cloned();
    let read = store.approval(id).await.unwrap().unwrap();
    for row in [&made.approvals[0], &read] {
        assert_eq!(row.approval, shown);
        assert_eq!((row.run, row.turn, row.number), (1, 1, feed.number));
        assert_eq!((row.channel, row.request_id.as_deref()), (Channel::Control, Some("request")));
    }
    // The order of an input's fields is kept.
    assert_eq!(json!(read.approval.input).to_string(), json!(new.approval.input).to_string());
}

pub async fn the_event_of_an_edited_call_contains_the_input_that_ran(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    for (tool_use_id, edited) in [("t1", true), ("t2", false)] {
        let new = question(session, 1, tool_use_id);
        let requested = new.approval.input.clone();
        let id = ask(&*store, new).await;
        let updated = if edited { json!({"command": "ls"}).as_object().unwrap().clone() } else { requested };
        let decision = Box::new(Decision { updated_input: Some(updated.clone()), ..allowed() });
        let resolve = Change::Resolve { approval: id, status: ApprovalStatus::Allowed, decision };
        let made = store.commit(NOW + 3, vec![resolve]).await.unwrap();
        let event = made.events[0].event.value();
        assert_eq!(
            event.get("updated_input"),
            edited.then_some(&json!(updated)),
            "an unchanged input is not an edit"
        );
    }
}

pub async fn a_resolved_approval_is_reported_in_its_turn_and_to_its_addressee(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let mut new = question(session, 1, "t");
    let boss = AskedOf::Session { id: SessionId::random() };
    new.approval.asked_of = boss.clone();
    let id = ask(&*store, new).await;
    let made = store.commit(NOW + 3, vec![denies(id)]).await.unwrap();
    assert_eq!(
        made.events[0].event.value(),
        json!({
            "type": "approval_resolved", "approval_id": id, "tool_use_id": "t", "status": "denied",
            "by": {"kind": "operator"}, "message": "as I said",
        })
    );
    let [feed] = &made.feed[..] else { panic!("{made:?}") };
    let resolution = Some(Resolution { status: ApprovalStatus::Denied, by: Decider::Operator });
    assert_eq!(feed.to, boss.key());
    assert_eq!(feed.entry, FeedEntry::Resolved { approval: id, turn: 1, resolution });
    let read = store.approval(id).await.unwrap().unwrap();
    for row in [&made.approvals[0], &read] {
        assert_eq!((row.approval.status, row.approval.resolved_at), (ApprovalStatus::Denied, Some(NOW + 3)));
        assert_eq!(row.approval.decision, Some(denied()));
    }
    assert!(open_ids(&*store, OpenFilter::All).await.is_empty());
}

pub async fn an_approval_is_decided_once(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let id = ask(&*store, question(session, 1, "t")).await;
    commit(&*store, allows(id)).await;
    let events = store.event_count(session, 1).await.unwrap();
    let head = store.feed_head().await.unwrap();
    match refused(&*store, denies(id)).await {
        Refusal::AlreadyResolved(row) => {
            assert_eq!((row.approval.id, row.approval.status), (id, ApprovalStatus::Allowed));
            assert_eq!(row.approval.decision, Some(allowed()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(store.approval(id).await.unwrap().unwrap().approval.status, ApprovalStatus::Allowed);
    assert_eq!(store.event_count(session, 1).await.unwrap(), events);
    assert_eq!(store.feed_head().await.unwrap(), head);

    let nobody = ApprovalId::random();
    assert!(store.approval(nobody).await.unwrap().is_none());
    assert!(matches!(refused(&*store, allows(nobody)).await, Refusal::NoSuchApproval(id) if id == nobody));
    // A task that delivers an answer must not wait forever if the approval was removed meanwhile.
    commit(&*store, Change::Delivered(nobody)).await;
    assert!(store.approval(nobody).await.unwrap().is_none());
}

pub async fn exactly_one_of_two_concurrent_answers_is_accepted(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    for round in 0..20 {
        let id = ask(&*store, question(session, 1, &format!("t{round}"))).await;
        let [yes, no] = [allows(id), denies(id)].map(|answer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.commit(NOW, vec![answer]).await })
        });
        let (yes, no) = (yes.await.unwrap(), no.await.unwrap());
        let status = store.approval(id).await.unwrap().unwrap().approval.status;
        match (yes, no) {
            (Ok(_), Err(StoreError::Refused(Refusal::AlreadyResolved(row)))) => {
                assert_eq!((status, row.approval.status), (ApprovalStatus::Allowed, ApprovalStatus::Allowed));
            }
            (Err(StoreError::Refused(Refusal::AlreadyResolved(row))), Ok(_)) => {
                assert_eq!((status, row.approval.status), (ApprovalStatus::Denied, ApprovalStatus::Denied));
            }
            other => panic!("{other:?}"),
        }
    }
    // One event for the request and one for its end.
    assert_eq!(store.event_count(session, 1).await.unwrap(), 40);
}

pub async fn a_late_expiry_changes_nothing(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let [answered, open] =
        [ask(&*store, question(session, 1, "t1")).await, ask(&*store, question(session, 1, "t2")).await];
    commit(&*store, allows(answered)).await;
    let expires = |approval| Change::ResolveIfPending {
        approval,
        status: ApprovalStatus::Expired,
        decision: Box::new(denied()),
    };
    let late = store.commit(NOW + 60, vec![expires(answered)]).await.unwrap();
    assert!(late.events.is_empty() && late.feed.is_empty() && late.approvals.is_empty(), "{late:?}");
    assert_eq!(store.approval(answered).await.unwrap().unwrap().approval.status, ApprovalStatus::Allowed);
    assert!(commit(&*store, expires(open)).await.approvals.is_empty(), "its deadline has not passed");
    let due = store.commit(NOW + 60, vec![expires(open)]).await.unwrap();
    assert_eq!((due.events.len(), due.feed.len()), (1, 1));
    assert_eq!(due.approvals[0].approval.status, ApprovalStatus::Expired);
    let nobody = ApprovalId::random();
    assert!(matches!(refused(&*store, expires(nobody)).await, Refusal::NoSuchApproval(_)));
}

pub async fn an_approval_shows_the_current_session_name(store: Arc<dyn Store>) {
    let session = create(&*store, "old").await;
    let id = ask(&*store, question(session, 1, "t")).await;
    commit(&*store, Change::RenameSession(session, name("new"))).await;
    assert_eq!(store.approval(id).await.unwrap().unwrap().approval.session_name, name("new"));
    assert_eq!(store.open_approvals(OpenFilter::All).await.unwrap()[0].approval.session_name, name("new"));
    assert_eq!(commit(&*store, allows(id)).await.approvals[0].approval.session_name, name("new"));
}

pub async fn pending_approvals_are_found_by_session_and_by_addressee(store: Arc<dyn Store>) {
    let [a, b] = [create(&*store, "a").await, create(&*store, "b").await];
    let parent = AskedOf::Parent { id: "p".to_owned() };
    let mut of_b = question(b, 1, "t");
    of_b.approval.asked_of = parent.clone();
    let first = ask(&*store, question(a, 1, "t1")).await;
    let second = ask(&*store, of_b).await;
    let third = ask(&*store, question(a, 1, "t2")).await;
    let fourth = ask(&*store, question(a, 1, "t3")).await;
    commit(&*store, allows(third)).await;
    assert_eq!(open_ids(&*store, OpenFilter::All).await, [first, second, fourth]);
    assert_eq!(open_ids(&*store, OpenFilter::OfSession(a)).await, [first, fourth]);
    assert_eq!(open_ids(&*store, OpenFilter::OfSession(b)).await, [second]);
    assert_eq!(open_ids(&*store, OpenFilter::AskedOf("operator".to_owned())).await, [first, fourth]);
    assert_eq!(open_ids(&*store, OpenFilter::AskedOf(parent.key())).await, [second]);
    assert!(open_ids(&*store, OpenFilter::AskedOf("parent:q".to_owned())).await.is_empty());
}

pub async fn a_call_has_one_approval_until_its_tool_result_arrives(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let key = RunKey { session, run: 1 };
    let again = || Change::Ask(Box::new(question(session, 1, "t")));
    let first = ask(&*store, question(session, 1, "t")).await;
    assert!(matches!(refused(&*store, again()).await, Refusal::KeyTaken));
    // Another turn, run or call is another key.
    let second = ask(&*store, question(session, 2, "t")).await;
    let other = ask(&*store, question(session, 1, "u")).await;
    let mut next_run = question(session, 1, "t");
    next_run.run = 2;
    let next_run = ask(&*store, next_run).await;
    // An answer does not release it: the child may ask for the answer again.
    commit(&*store, allows(first)).await;
    assert!(matches!(refused(&*store, again()).await, Refusal::KeyTaken));

    let sessions_with_state = |key| {
        let store = Arc::clone(&store);
        async move {
            let rows = store.approvals_without_result(key).await.unwrap();
            rows.into_iter().map(|row| row.approval.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(sessions_with_state(key).await, [first, second, other]);
    commit(&*store, Change::ReleaseKeys(key, "t".to_owned())).await;
    assert_eq!(sessions_with_state(key).await, [other]);
    assert_eq!(sessions_with_state(RunKey { session, run: 2 }).await, [next_run]);
    let third = ask(&*store, question(session, 1, "t")).await;
    assert_eq!(sessions_with_state(key).await, [other, third]);
}

pub async fn calls_are_listed_until_their_tool_result_arrives(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let key = RunKey { session, run: 1 };
    let call = |run, tool_use_id: &str| CallRow {
        key: RunKey { session, run },
        turn: 3,
        tool_use_id: tool_use_id.to_owned(),
        tool_name: "Bash".to_owned(),
        digest: "digest".to_owned(),
        request_id: "request".to_owned(),
        summary: String::new(),
        verdict: Verdict::Ask { reason: "a rule".to_owned() },
    };
    for seen in [call(1, "t"), call(1, "u"), call(2, "t")] {
        commit(&*store, Change::Call(Box::new(seen), object(json!({})).into())).await;
    }
    let sessions_with_state = store.calls_without_result(key).await.unwrap();
    let ids: Vec<_> = sessions_with_state.iter().map(|call| call.tool_use_id.as_str()).collect();
    assert_eq!(ids, ["t", "u"]);
    let first = &sessions_with_state[0];
    assert_eq!((first.key, first.turn, first.tool_name.as_str()), (key, 3, "Bash"));
    assert_eq!((first.digest.as_str(), first.request_id.as_str()), ("digest", "request"));
    assert_eq!(first.verdict, Verdict::Ask { reason: "a rule".to_owned() });

    commit(&*store, Change::ReleaseKeys(key, "t".to_owned())).await;
    commit(&*store, Change::ReleaseKeys(key, "never seen".to_owned())).await;
    assert_eq!(store.calls_without_result(key).await.unwrap().len(), 1);
    assert_eq!(store.calls_without_result(RunKey { session, run: 2 }).await.unwrap().len(), 1);
}

pub async fn only_the_first_delivery_is_stored(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let id = ask(&*store, question(session, 1, "t")).await;
    commit(&*store, allows(id)).await;
    assert_eq!(store.approval(id).await.unwrap().unwrap().approval.delivered_at, None);
    for at in [NOW + 1, NOW + 2] {
        store.commit(at, vec![Change::Delivered(id)]).await.unwrap();
        assert_eq!(store.approval(id).await.unwrap().unwrap().approval.delivered_at, Some(NOW + 1));
    }
}

/// An approval that was published is used in place of the stored one.
async fn assert_published_as_stored(store: &dyn Store, changes: Vec<Change>, what: &str) {
    let made = store.commit(NOW + 1, changes).await.unwrap();
    assert!(!made.approvals.is_empty(), "{what}");
    for published in &made.approvals {
        let stored = store.approval(published.approval.id).await.unwrap().unwrap();
        assert_eq!(format!("{published:?}"), format!("{stored:?}"), "{what}");
    }
}

pub async fn approvals_are_published_as_they_are_stored(store: Arc<dyn Store>) {
    let parent = create(&*store, "parent").await;
    let mut below = new_session("a");
    (below.answers_to, below.host) = (AskedOf::Session { id: parent }, store.host().cloned());
    let session = below.id;
    commit(&*store, Change::CreateSession(Box::new(below))).await;
    let asks = |tool_use_id: &str| {
        let mut new = question(session, 1, tool_use_id);
        new.approval.asked_of = AskedOf::Session { id: parent };
        (new.approval.id, Change::Ask(Box::new(new)))
    };

    let (id, ask) = asks("t1");
    assert_published_as_stored(&*store, vec![ask], "asked").await;
    let extend = Change::Extend { approval: id, expires_at: NOW + 99 };
    assert_published_as_stored(&*store, vec![extend], "extended").await;
    let on = passes_on(id, &[AskedOf::Session { id: parent }], AskedOf::Operator, Decider::Hub);
    assert_published_as_stored(&*store, vec![on], "escalated").await;
    let renamed = Change::RenameSession(session, name("b"));
    assert_published_as_stored(&*store, vec![renamed, denies(id)], "resolved").await;

    let (id, ask) = asks("t2");
    assert_published_as_stored(&*store, vec![ask, allows(id), Change::Delivered(id)], "in one commit").await;
}

pub async fn the_approvals_of_a_part_of_the_feed_are_found(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let boss = AskedOf::Session { id: SessionId::random() };
    let mut ids = Vec::new();
    for (tool_use_id, asked_of) in [("t1", AskedOf::Operator), ("t2", boss.clone()), ("t3", boss.clone())] {
        let mut new = question(session, 1, tool_use_id);
        // Three of them are larger than a page.
        new.approval.input.insert("text".to_owned(), json!("x".repeat(600_000)));
        new.approval.asked_of = asked_of;
        ids.push(ask(&*store, new).await);
    }
    commit(&*store, allows(ids[1])).await;
    let feed = store.feed_of_all(0, 10).await.unwrap();
    let numbers: Vec<u64> = feed.iter().map(|entry| entry.number).collect();
    let boss = boss.key();
    for (to, after, upto, wanted) in [
        (None, 0, numbers[3], &[(0, 0), (1, 1), (2, 2), (3, 1)][..]),
        (None, numbers[0], numbers[2], &[(1, 1), (2, 2)]),
        (Some(boss.as_str()), 0, numbers[3], &[(1, 1), (2, 2), (3, 1)]),
        (Some("operator"), numbers[0], numbers[3], &[]),
    ] {
        let mut found = Vec::new();
        let mut reached = after;
        loop {
            let page = store.feed_approvals(to, reached, upto).await.unwrap();
            let Some(last) = page.last() else { break };
            reached = last.number;
            found.extend(page.iter().map(|row| (row.number, row.approval.id)));
        }
        let wanted: Vec<_> = wanted.iter().map(|(entry, id)| (numbers[*entry], ids[*id])).collect();
        assert_eq!(found, wanted, "{to:?} after {after} up to {upto}");
    }
}

pub async fn an_approval_outside_any_turn_is_stored(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let id = ask(&*store, question(session, 0, "t")).await;
    commit(&*store, allows(id)).await;
    let events = store.events(session, 0, 0, 10).await.unwrap();
    let types: Vec<_> = events.iter().map(|row| row.event.value()["type"].clone()).collect();
    assert_eq!(types, ["approval_requested", "approval_resolved"]);
}

pub async fn a_permit_stream_is_found_by_its_event_id(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let approval = ask(&*store, question(session, 1, "t")).await;
    let stream = |event_id: &str, approval, progress_token| {
        Change::Stream(Box::new(PermitStream {
            event_id: event_id.to_owned(),
            key: RunKey { session, run: 1 },
            approval,
            ids: CallIds { jsonrpc_id: json!(12), progress_token },
        }))
    };
    commit(&*store, stream("e1", approval, Some(json!("token")))).await;
    commit(&*store, stream("e2", approval, None)).await;
    let found = store.permit_stream("e1").await.unwrap().unwrap();
    assert_eq!((found.event_id.as_str(), found.key), ("e1", RunKey { session, run: 1 }));
    assert_eq!((found.approval, found.ids.jsonrpc_id), (approval, json!(12)));
    assert_eq!(found.ids.progress_token, Some(json!("token")));
    assert_eq!(store.permit_stream("e2").await.unwrap().unwrap().ids.progress_token, None);
    assert!(store.permit_stream("e3").await.unwrap().is_none());
    let unknown = stream("e4", ApprovalId::random(), None);
    assert!(matches!(refused(&*store, unknown).await, Refusal::NoSuchApproval(_)));
}

pub async fn sessions_and_pending_approvals_are_counted(store: Arc<dyn Store>) {
    assert_eq!(store.tally().await.unwrap(), Tally::default());
    let (first, second) = (create(&*store, "a").await, create(&*store, "b").await);
    let mut questions = Vec::new();
    for (session, asked_at) in [(first, 70), (first, 80), (second, 90)] {
        let mut new = question(session, 1, &asked_at.to_string());
        new.approval.created_at = asked_at;
        questions.push(ask(&*store, new).await);
    }
    let tally = store.tally().await.unwrap();
    assert_eq!(tally, Tally { sessions: 2, open_approvals: 3, oldest_open: Some(70) });
    commit(&*store, denies(questions[0])).await;
    commit(&*store, Change::DeleteSession(second)).await;
    let tally = store.tally().await.unwrap();
    assert_eq!(tally, Tally { sessions: 1, open_approvals: 2, oldest_open: Some(80) });
}

fn allow_rule() -> NewRule {
    NewRule {
        session: None,
        entry: json!({"rule": "Bash"}),
        expires_at: None,
        authority: RuleAuthority::Root,
        created_by: Decider::Operator,
    }
}

/// A call that the gate has judged by this version of the rules.
fn judged(session: SessionId, tool_use_id: &str, verdict: Verdict, rules_version: u64) -> Change {
    let row = CallRow {
        key: RunKey { session, run: 1 },
        turn: 1,
        tool_use_id: tool_use_id.to_owned(),
        tool_name: "Bash".to_owned(),
        digest: "digest".to_owned(),
        request_id: "request".to_owned(),
        summary: String::new(),
        verdict,
    };
    Change::Call(Box::new(row), CallInput { rules_version, ..CallInput::default() })
}

pub async fn a_call_is_not_allowed_by_rules_that_have_changed(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let created = commit(&*store, Change::CreateRule(Box::new(allow_rule()))).await;
    assert_eq!((created.rules_version, store.rules().await.unwrap().version), (Some(1), 1));
    let allow = || Verdict::Allow { reason: "rule 1".to_owned() };
    let current = commit(&*store, judged(session, "current", allow(), 1)).await;
    assert!(current.outdated_calls.is_empty());

    let revoked = commit(&*store, Change::RevokeRule { number: 1, by: Decider::Operator }).await;
    assert_eq!(revoked.rules_version, Some(2));
    for (id, verdict) in [("allowed", allow()), ("unmentioned", Verdict::NoOpinion)] {
        let outdated = commit(&*store, judged(session, id, verdict, 1)).await;
        assert!(outdated.is_outdated(id), "{id}");
    }
    let denied = Verdict::Deny { reason: "a rule".to_owned() };
    assert!(commit(&*store, judged(session, "denied", denied, 1)).await.outdated_calls.is_empty());
    let stored = store.calls_without_result(RunKey { session, run: 1 }).await.unwrap();
    let verdict = |id: &str| &stored.iter().find(|call| call.tool_use_id == id).unwrap().verdict;
    assert_eq!(*verdict("current"), allow());
    assert!(matches!(verdict("allowed"), Verdict::Ask { .. }));
    assert!(matches!(verdict("unmentioned"), Verdict::Ask { .. }));
    assert!(matches!(verdict("denied"), Verdict::Deny { .. }));
    // A refused commit changes no version.
    refused(&*store, Change::RevokeRule { number: 1, by: Decider::Operator }).await;
    assert!(commit(&*store, judged(session, "last", allow(), 2)).await.outdated_calls.is_empty());
}

pub async fn a_revoked_rule_allows_no_open_approval(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let id = ask(&*store, question(session, 1, "t")).await;
    commit(&*store, Change::CreateRule(Box::new(allow_rule()))).await;
    commit(&*store, Change::RevokeRule { number: 1, by: Decider::Operator }).await;
    let decision = Box::new(Decision { rule: Some(1), by: Decider::Hub, ..allowed() });
    let allow = Change::Resolve { approval: id, status: ApprovalStatus::Allowed, decision };
    assert!(matches!(refused(&*store, allow).await, Refusal::NoSuchRule(1)));
    assert_eq!(store.approval(id).await.unwrap().unwrap().approval.status, ApprovalStatus::Pending);
}
