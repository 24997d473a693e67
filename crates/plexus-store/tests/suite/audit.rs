//! The audit log: every decision and act of authority has an entry, which is stored with it and never changed.

use std::sync::Arc;

use plexus_protocol::audit::{AuditEntry, AuditHead, AuditKind, AuditRow};
use plexus_protocol::token::TokenRight;
use plexus_protocol::{ApprovalStatus, AskedOf, Decider, Right, SessionId, TokenName};
use plexus_store::{
    AuditCheck, AuditFilter, AuditFrom, CallRow, Change, NewRule, Removable, RuleAuthority, RunKey, Store,
    StoreError, TokenRow, Verdict,
};
use serde_json::{Value, json};

use crate::common::*;

async fn entries(store: &dyn Store, filter: AuditFilter) -> Vec<AuditRow> {
    store.audit(filter, AuditFrom::After(0), 1000).await.unwrap()
}

async fn of_kind(store: &dyn Store, kind: AuditKind) -> Vec<AuditEntry> {
    let filter = AuditFilter { kind: Some(kind), ..AuditFilter::default() };
    entries(store, filter).await.into_iter().map(|row| row.entry).collect()
}

fn call(session: SessionId, tool_use_id: &str, verdict: Value) -> Change {
    let call = CallRow {
        key: RunKey { session, run: 1 },
        turn: 1,
        tool_use_id: tool_use_id.to_owned(),
        tool_name: "Bash".to_owned(),
        digest: "digest".to_owned(),
        request_id: "request".to_owned(),
        summary: String::new(),
        verdict: Verdict::from_stored(verdict),
    };
    Change::Call(Box::new(call), object(json!({"command": "make"})).into())
}

pub async fn a_decision_is_logged_with_the_call_and_its_history(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    commit(&*store, call(session, "t", json!({"answer": "ask", "reason": "rule 7"}))).await;
    let new = question(session, 1, "t");
    let asked = new.approval.clone();
    let id = ask(&*store, new).await;
    let committed = store.commit(NOW + 9, vec![allows(id)]).await.unwrap();
    let decided = of_kind(&*store, AuditKind::Decision).await;
    let expected = AuditEntry {
        right: Some(Right::Operator),
        session_id: Some(session),
        session_name: Some(name("a")),
        session_path: Some("a".to_owned()),
        approval_id: Some(id),
        tool_use_id: Some("t".to_owned()),
        tool_name: Some("Bash".to_owned()),
        digest: Some("digest".to_owned()),
        cwd: Some("/work/here".to_owned()),
        input: Some(asked.input),
        updated_input: allowed().updated_input,
        message: Some("as I said".to_owned()),
        gate: Some(object(json!({"answer": "ask", "reason": "rule 7"}))),
        asked_of: Some(AskedOf::Operator),
        asked_at: Some(NOW),
        ..AuditEntry::new(NOW + 9, AuditKind::Decision, "allowed", Decider::Operator)
    };
    assert_eq!(decided, [expected]);
    let head = store.audit_head().await.unwrap();
    assert_eq!(committed.audit.as_ref(), Some(&head), "a commit returns the head of the log");

    let expired = ask(&*store, question(session, 1, "u")).await;
    let by_hub = plexus_protocol::Decision { by: Decider::Hub, right: Right::Expiry, ..denied() };
    let status = ApprovalStatus::Expired;
    let expires = Change::ResolveIfPending { approval: expired, status, decision: Box::new(by_hub) };
    store.commit(NOW + 60, vec![expires]).await.unwrap();
    let last = of_kind(&*store, AuditKind::Decision).await.pop().unwrap();
    assert_eq!((last.status.as_str(), last.by, last.right), ("expired", Decider::Hub, Some(Right::Expiry)));
    assert_eq!(last.gate, None, "the gate did not see it");

    let passed = ask(&*store, question(session, 1, "v")).await;
    let (to, by) = (AskedOf::Parent { id: "p".to_owned() }, Decider::Operator);
    commit(&*store, passes_on(passed, &[AskedOf::Operator], to.clone(), by.clone())).await;
    commit(&*store, denies(passed)).await;
    let last = of_kind(&*store, AuditKind::Decision).await.pop().unwrap();
    assert_eq!((last.asked_of, last.passed.len(), &last.passed[0].by), (Some(to), 1, &by));
}

pub async fn a_refused_commit_has_no_audit_entry(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let id = ask(&*store, question(session, 1, "t")).await;
    let before = store.audit_head().await.unwrap();
    let doomed = vec![allows(id), Change::DeleteSession(SessionId::random())];
    assert!(matches!(store.commit(NOW, doomed).await, Err(StoreError::Refused(_))));
    assert_eq!(store.audit_head().await.unwrap(), before);

    commit(&*store, denies(id)).await;
    let decided = store.audit_head().await.unwrap();
    refused(&*store, allows(id)).await;
    let late = Change::ResolveIfPending {
        approval: id,
        status: ApprovalStatus::Expired,
        decision: Box::new(denied()),
    };
    let committed = store.commit(NOW + 60, vec![late]).await.unwrap();
    assert_eq!((store.audit_head().await.unwrap(), committed.audit), (decided, None));
    assert_eq!(of_kind(&*store, AuditKind::Decision).await.len(), 1);
}

pub async fn calls_answered_by_rule_have_audit_entries(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    for (id, answer) in [("a", "allow"), ("b", "ask"), ("c", "own_course"), ("d", "deny")] {
        commit(&*store, call(session, id, json!({"answer": answer, "reason": "rule 7"}))).await;
    }
    let seen = of_kind(&*store, AuditKind::Gate).await;
    let said: Vec<_> =
        seen.iter().map(|entry| (entry.status.as_str(), entry.tool_use_id.as_deref())).collect();
    assert_eq!(said, [("allow", Some("a")), ("deny", Some("d"))]);
    assert_eq!(seen[0].input, Some(object(json!({"command": "make"}))));
    assert_eq!(seen[0].gate, Some(object(json!({"answer": "allow", "reason": "rule 7"}))));
    assert_eq!((&seen[0].by, seen[0].right), (&Decider::Hub, Some(Right::Rule)));
    assert_eq!(seen[0].session_id, Some(session));
    assert_eq!(seen[0].session_name.as_ref().map(ToString::to_string).as_deref(), Some("a"));
}

pub async fn acts_on_tokens_sessions_and_rules_have_audit_entries(store: Arc<dyn Store>) {
    let parent = create(&*store, "a").await;
    let mut child = new_session("b");
    child.answers_to = AskedOf::Session { id: parent };
    commit(&*store, Change::CreateSession(Box::new(child))).await;
    let name = TokenName::try_from("phone".to_owned()).unwrap();
    let token = TokenRow {
        name: name.clone(),
        right: TokenRight::Decide,
        created_at: NOW,
        expires_at: Some(NOW + 60),
    };
    commit(&*store, Change::CreateToken { token, hash: "hash".to_owned(), by: Decider::Operator }).await;
    commit(&*store, Change::RevokeToken { name: name.clone(), by: Decider::Operator }).await;
    refused(&*store, Change::RevokeToken { name: name.clone(), by: Decider::Operator }).await;
    let act = AuditEntry::new(NOW, AuditKind::Session, "stopped", Decider::Parent { id: "p".to_owned() });
    commit(&*store, Change::Audit(Box::new(act.clone()))).await;

    let sessions = of_kind(&*store, AuditKind::Session).await;
    let who: Vec<_> = sessions.iter().map(|entry| (entry.status.as_str(), entry.by.key())).collect();
    let expected = [("made", "operator".to_owned()), ("made", format!("session:{parent}"))];
    assert_eq!(who[..2], expected);
    assert_eq!(sessions[1].right, Some(Right::Ancestor));
    assert_eq!(sessions[2], act);
    let tokens = of_kind(&*store, AuditKind::Token).await;
    assert_eq!(tokens.iter().map(|entry| entry.status.as_str()).collect::<Vec<_>>(), ["made", "revoked"]);
    assert!(tokens.iter().all(|entry| entry.token.as_ref() == Some(&name)));
    assert_eq!(tokens[0].detail, Some(object(json!({"right": "decide", "expires_at": NOW + 60}))));

    let by = Decider::Session { id: parent };
    let rule = NewRule {
        session: Some(parent),
        entry: json!({"rule": "Bash(make)"}),
        expires_at: None,
        authority: RuleAuthority::Narrows,
        created_by: by.clone(),
    };
    commit(&*store, Change::CreateRule(Box::new(rule))).await;
    commit(&*store, Change::RevokeRule { number: 1, by: Decider::Operator }).await;
    refused(&*store, Change::RevokeRule { number: 1, by: Decider::Operator }).await;
    let rules = of_kind(&*store, AuditKind::Policy).await;
    let who: Vec<_> = rules.iter().map(|entry| (entry.status.as_str(), &entry.by)).collect();
    assert_eq!(who, [("made", &by), ("revoked", &Decider::Operator)]);
    let made = rules[0].detail.as_ref().unwrap();
    assert_eq!((&made["number"], &made["rule"]["rule"]), (&json!(1), &json!("Bash(make)")));
}

pub async fn the_audit_log_is_filtered_and_read_in_pages(store: Arc<dyn Store>) {
    let (first, second) = (create(&*store, "a").await, create(&*store, "b").await);
    for (n, session) in [first, second, first, second].into_iter().enumerate() {
        let id = ask(&*store, question(session, 1, &n.to_string())).await;
        store.commit(NOW + n as u64, vec![allows(id)]).await.unwrap();
    }
    let numbers = async |filter: AuditFilter| -> Vec<u64> {
        entries(&*store, filter).await.iter().map(|row| row.number).collect()
    };
    let any = AuditFilter::default;
    assert_eq!(numbers(any()).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(numbers(AuditFilter { session: Some(second), ..any() }).await, [2, 4, 6]);
    assert_eq!(numbers(AuditFilter { since: Some(NOW + 1), until: Some(NOW + 3), ..any() }).await, [4, 5]);
    assert_eq!(numbers(AuditFilter { kind: Some(AuditKind::Session), ..any() }).await, [1, 2]);
    assert_eq!(numbers(AuditFilter { by: Some("hub".to_owned()), ..any() }).await, [0_u64; 0]);
    let both = AuditFilter {
        session: Some(first),
        by: Some("operator".to_owned()),
        tool_name: Some("Bash".to_owned()),
        ..any()
    };
    assert_eq!(numbers(both).await, [3, 5]);
    let page = store.audit(any(), AuditFrom::After(2), 3).await.unwrap();
    assert_eq!(page.iter().map(|row| row.number).collect::<Vec<_>>(), [3, 4, 5]);

    let mut large = question(first, 1, "large");
    large.approval.input = object(json!({"content": "x".repeat(600 * 1024)}));
    let mut larger = large.clone();
    larger.approval.id = plexus_protocol::ApprovalId::random();
    larger.approval.tool_use_id = "larger".to_owned();
    for new in [large, larger] {
        let id = ask(&*store, new).await;
        commit(&*store, allows(id)).await;
    }
    assert_eq!(
        store.audit(any(), AuditFrom::After(6), 10).await.unwrap().len(),
        1,
        "a page of large entries ends early"
    );
    assert_eq!(store.audit(any(), AuditFrom::After(u64::MAX), u64::MAX).await.unwrap(), []);
}

pub async fn the_audit_log_is_read_backwards_with_the_same_filters(store: Arc<dyn Store>) {
    let (first, second) = (create(&*store, "a").await, create(&*store, "b").await);
    for (n, session) in [first, second, first, second].into_iter().enumerate() {
        let id = ask(&*store, question(session, 1, &n.to_string())).await;
        store.commit(NOW + n as u64, vec![allows(id)]).await.unwrap();
    }
    let numbers = async |filter: AuditFilter, before, limit| -> Vec<u64> {
        let rows = store.audit(filter, AuditFrom::Before(before), limit).await.unwrap();
        rows.iter().map(|row| row.number).collect()
    };
    let any = AuditFilter::default;
    assert_eq!(numbers(any(), u64::MAX, 100).await, [6, 5, 4, 3, 2, 1]);
    assert_eq!(numbers(any(), 5, 2).await, [4, 3]);
    assert_eq!(numbers(any(), 1, 100).await, [0_u64; 0]);
    assert_eq!(numbers(AuditFilter { session: Some(second), ..any() }, 6, 100).await, [4, 2]);
    let tool = || AuditFilter { tool_name: Some("Bash".to_owned()), ..any() };
    assert_eq!(numbers(tool(), 6, 100).await, [5, 4, 3]);
    assert_eq!(numbers(AuditFilter { session: Some(first), ..tool() }, u64::MAX, 100).await, [5, 3]);
    assert_eq!(numbers(AuditFilter { since: Some(NOW + 2), ..tool() }, u64::MAX, 100).await, [6, 5]);
    assert_eq!(entries(&*store, tool()).await.len(), 4, "forwards as well");
}

pub async fn audit_entries_outlive_the_rows_they_are_about(store: Arc<dyn Store>) {
    let session = create(&*store, "a").await;
    let key = start_run(&*store, session).await;
    commit(&*store, call(session, "t", json!({"answer": "allow", "reason": "rule 7"}))).await;
    let id = ask(&*store, question(session, 1, "u")).await;
    commit(&*store, allows(id)).await;
    let all = entries(&*store, AuditFilter::default()).await;
    commit(&*store, Change::EndRun(key, json!(null))).await;
    assert_eq!(commit(&*store, Change::Remove(Removable::Approval(id))).await.removed, 1);
    assert_eq!(commit(&*store, Change::Remove(Removable::Call(1))).await.removed, 1);
    assert_eq!(entries(&*store, AuditFilter::default()).await, all);
    assert_eq!(all.len(), 3);
}

pub async fn the_chain_stays_valid_when_commits_are_refused(store: Arc<dyn Store>) {
    assert_eq!(store.audit_head().await.unwrap(), AuditHead::start());
    let session = create(&*store, "a").await;
    let mut commits = tokio::task::JoinSet::new();
    for n in 0..60_u32 {
        let store = Arc::clone(&store);
        commits.spawn(async move {
            let id = ask(&*store, question(session, 1, &n.to_string())).await;
            let mut changes = vec![allows(id)];
            if n % 3 == 0 {
                changes.push(Change::DeleteSession(SessionId::random()));
            }
            store.commit(NOW, changes).await.is_ok()
        });
    }
    let done = commits.join_all().await.into_iter().filter(|done| *done).count() as u64;
    assert_eq!(done, 40);
    let head = store.audit_head().await.unwrap();
    assert_eq!(head.number, 1 + done);
    let checked = async |after: AuditHead, upto| store.check_audit(after, upto).await.unwrap();
    assert_eq!(checked(AuditHead::start(), 1000).await, AuditCheck::Fits(head.clone()));
    let AuditCheck::Fits(middle) = checked(AuditHead::start(), 20).await else { panic!("the first page") };
    assert_eq!(middle.number, 20);
    assert_eq!(checked(middle.clone(), 1000).await, AuditCheck::Fits(head));
    let other = AuditHead { hash: "f".repeat(64), ..middle };
    assert!(matches!(checked(other, 1000).await, AuditCheck::Broken { number: 21, .. }));
}
