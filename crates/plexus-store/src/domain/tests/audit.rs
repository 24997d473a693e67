//! The audit entry of each act, and the chain of hashes.

use plexus_protocol::TokenName;
use plexus_protocol::audit::{AuditEntry, AuditHead, AuditKind};
use plexus_protocol::token::TokenRight;

use super::super::audit_chain::{Columns, StoredEntry, next, verify};
use super::*;
use crate::{NewRule, RuleAuthority, TokenRow};

/// The entries that a change appends: kind, status and who did it.
fn appended(store: &MemoryStore, change: Change) -> Vec<(AuditKind, String, Decider)> {
    let before = store.tables().audit.len();
    apply(store, change);
    let tables = store.tables();
    let entries = tables.audit.values().skip(before).map(|stored| &stored.entry);
    entries.map(|AuditEntry { kind, status, by, .. }| (*kind, status.clone(), by.clone())).collect()
}

#[test]
fn each_act_of_authority_has_one_entry() {
    use AuditKind::{Decision, Gate, Policy, Session, Token};
    let store = MemoryStore::default();
    let [top] = chain(&store);
    let by_top = Decider::Session { id: top };
    let name: TokenName = "phone".to_owned().try_into().unwrap();
    let token = TokenRow { name: name.clone(), right: TokenRight::Decide, created_at: NOW, expires_at: None };
    let rule = NewRule {
        session: None,
        entry: json!({}),
        expires_at: None,
        authority: RuleAuthority::Root,
        created_by: Decider::Operator,
    };
    let asked = approval(top, AskedOf::Operator);
    let id = asked.approval.id;
    let child = new_session("child", AskedOf::Session { id: top });
    let of_hub = AuditEntry::new(NOW, Session, "stopped", Decider::Hub);
    let by_operator = |kind, status| Some((kind, status, Decider::Operator));
    let table = [
        (Change::CreateSession(Box::new(child)), Some((Session, "made", by_top))),
        (at_gate(top, "a", "allow"), Some((Gate, "allow", Decider::Hub))),
        (at_gate(top, "d", "deny"), Some((Gate, "deny", Decider::Hub))),
        (at_gate(top, "t", "ask"), None),
        (at_gate(top, "o", "own_course"), None),
        (Change::Ask(Box::new(asked)), None),
        (allows(id, None), by_operator(Decision, "allowed")),
        (Change::Delivered(id), None),
        (Change::CreateRule(Box::new(rule)), by_operator(Policy, "made")),
        (Change::RevokeRule { number: 1, by: Decider::Operator }, by_operator(Policy, "revoked")),
        (
            Change::CreateToken { token, hash: "hash".to_owned(), by: Decider::Operator },
            by_operator(Token, "made"),
        ),
        (Change::RevokeToken { name, by: Decider::Operator }, by_operator(Token, "revoked")),
        (Change::Audit(Box::new(of_hub)), Some((Session, "stopped", Decider::Hub))),
    ];
    for (change, expected) in table {
        let shown = format!("{change:?}");
        let expected: Vec<_> =
            expected.into_iter().map(|(kind, status, by)| (kind, status.to_owned(), by)).collect();
        assert_eq!(appended(&store, change), expected, "{shown}");
    }
}

#[test]
fn a_decision_is_logged_with_the_call_and_the_answer_of_the_gate() {
    let store = MemoryStore::default();
    let [session] = chain(&store);
    apply(&store, at_gate(session, "t", "ask"));
    let asked = approval(session, AskedOf::Operator);
    let (id, input) = (asked.approval.id, asked.approval.input.clone());
    apply(&store, Change::Ask(Box::new(asked)));
    apply(&store, allows(id, Some(json!({"command": "pwd"}))));
    let tables = store.tables();
    let entry = tables.audit.values().next_back().unwrap().entry.clone();
    let expected = AuditEntry {
        right: Some(Right::Operator),
        session_id: Some(session),
        session_name: Some("level-0".to_owned().try_into().unwrap()),
        session_path: Some("level-0".to_owned()),
        approval_id: Some(id),
        tool_use_id: Some("t".to_owned()),
        tool_name: Some("Bash".to_owned()),
        digest: Some("digest".to_owned()),
        cwd: Some("/work".to_owned()),
        input: Some(input),
        updated_input: Some(object(json!({"command": "pwd"}))),
        gate: Some(object(json!({"answer": "ask", "reason": "a rule"}))),
        asked_of: Some(AskedOf::Operator),
        asked_at: Some(NOW - 5),
        ..AuditEntry::new(NOW, AuditKind::Decision, "allowed", Decider::Operator)
    };
    assert_eq!(entry, expected);
}

#[test]
fn an_entry_keeps_the_path_that_its_session_had() {
    let store = MemoryStore::default();
    let [top, lead, worker] = chain(&store);
    let latest = |store: &MemoryStore| {
        store.tables().audit.values().next_back().and_then(|entry| entry.entry.session_path.clone())
    };
    assert_eq!(latest(&store).as_deref(), Some("level-0/level-1/level-2"));
    let acts_on = |session| {
        let act = AuditEntry::new(NOW, AuditKind::Session, "stopped", Decider::Operator);
        Change::Audit(Box::new(AuditEntry { session_id: Some(session), ..act }))
    };
    apply(&store, Change::RenameSession(lead, "lead".to_owned().try_into().unwrap()));
    for (session, path) in [(worker, "level-0/lead/level-2"), (lead, "level-0/lead"), (top, "level-0")] {
        apply(&store, acts_on(session));
        assert_eq!(latest(&store).as_deref(), Some(path));
    }
    let first = store.tables().audit.values().nth(2).and_then(|entry| entry.entry.session_path.clone());
    assert_eq!(first.as_deref(), Some("level-0/level-1/level-2"), "a rename changes no entry");
}

#[test]
fn an_entry_is_verified_against_its_predecessor_its_hash_and_its_columns() {
    let entry = AuditEntry::new(7, AuditKind::Token, "made", Decider::Operator);
    let text = serde_json::to_string(&entry).unwrap();
    let before = AuditHead::start();
    let head = next(&before, &text);
    let stored = |number, hash: &str, text: &str, at| StoredEntry {
        number,
        hash: hash.to_owned(),
        text: text.to_owned(),
        columns: Columns {
            at,
            kind: AuditKind::Token,
            who: "operator".to_owned(),
            session: None,
            tool_name: None,
        },
    };
    assert_eq!(verify(&before, &stored(1, &head.hash, &text, 7)), Ok(head.clone()));
    let edited = text.replace("made", "revoked");
    for (stored, why) in [
        (stored(2, &head.hash, &text, 7), "is missing"),
        (stored(0, &head.hash, &text, 7), "is not the first: the log also has an entry 0"),
        (stored(-1, &head.hash, &text, 7), "is not the first: the log also has an entry -1"),
        (stored(1, &before.hash, &text, 7), "does not match its hash and the entry before it"),
        (stored(1, &head.hash, &edited, 7), "does not match its hash and the entry before it"),
        (stored(1, &head.hash, &text, 8), "has a column that differs from its entry"),
    ] {
        assert_eq!(verify(&before, &stored), Err(why.to_owned()));
    }
    let moved = AuditHead { hash: head.hash.clone(), ..before };
    assert!(verify(&moved, &stored(1, &head.hash, &text, 7)).is_err(), "another predecessor");
}
