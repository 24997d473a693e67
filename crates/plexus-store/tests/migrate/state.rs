//! A state with rows in every table, and odd values in them.

use std::sync::Arc;

use plexus_protocol::arbor::Role;
use plexus_protocol::budget::BudgetLimit::ToolCalls;
use plexus_protocol::token::TokenRight;
use plexus_protocol::{AskedOf, Decider, NodeId, SessionId, TemplateName, TokenName};
use plexus_store::{
    CallIds, CallRow, Change, NewRule, NewSession, NodeRow, PermitStream, Removable, RuleAuthority, RunKey,
    RunState, SessionRow, Store, TokenRow, Verdict,
};
use serde_json::json;

use crate::common::*;

/// Characters with a meaning for one of the databases, or for COPY, and the escape of a lone surrogate.
pub const ODD: &str =
    "NUL \0 escape \u{1}0 \\N \\. tab\t line\n return\r quote ' \" \u{10FFFF} \\ud800 größe 文件";

/// Creates a session, with rows in every table.
pub async fn fill(store: &dyn Store, named: &str) -> SessionId {
    let session = create(store, named).await;
    let run = start_run(store, session).await;
    commit(store, Change::RunState(run, RunState::Starting)).await;
    let prompt = format!("{ODD} of {named}");
    commit(store, Change::StartTurn { session, turn: 1, prompt, woken_to: Some(3) }).await;
    commit(store, says(session, 1, ODD)).await;
    commit(store, Change::Progress(session, 1, json!({"odd": ODD, "cost": 0.1}))).await;
    nodes(store, session).await;

    for (tool_use_id, answer) in [("allowed", "allow"), (ODD, "own_course")] {
        let call = call(session, &format!("{tool_use_id} {named}"), answer);
        commit(store, Change::Call(Box::new(call), object(json!({"command": ODD})).into())).await;
    }
    let resolved = ask(store, question(session, 1, &format!("{ODD} {named}"))).await;
    commit(store, allows(resolved)).await;
    let mut open = question(session, 1, &format!("open {named}"));
    open.approval.asked_of = AskedOf::Session { id: SessionId::random() };
    let passed = open.approval.asked_of.clone();
    let open = ask(store, open).await;
    let on = [passed, AskedOf::Session { id: SessionId::random() }];
    commit(store, passes_on(open, &on, AskedOf::Operator, Decider::Hub)).await;
    let stream = PermitStream {
        event_id: format!("event of {named}"),
        key: run,
        approval: open,
        ids: CallIds { jsonrpc_id: json!(12), progress_token: Some(json!(ODD)) },
    };
    commit(store, Change::Stream(Box::new(stream))).await;
    commit(store, Change::Position { reader: ODD.to_owned(), session, turn: 1, position: 2 }).await;
    authority(store, session, named).await;
    exhausted_budget(store, named).await;
    deleted(store, named).await;
    session
}

fn call(session: SessionId, tool_use_id: &str, answer: &str) -> CallRow {
    CallRow {
        key: RunKey { session, run: 1 },
        turn: 1,
        tool_use_id: tool_use_id.to_owned(),
        tool_name: "Bash".to_owned(),
        digest: "digest".to_owned(),
        request_id: "request".to_owned(),
        summary: ODD.to_owned(),
        verdict: Verdict::from_stored(json!({"answer": answer, "reason": ODD})),
    }
}

/// Says something, and a long text.
async fn nodes(store: &dyn Store, session: SessionId) {
    let SessionRow { tree, head: parent, .. } = store.session(session).await.unwrap().unwrap();
    let long = "wörter ".repeat(2000);
    let texts =
        [json!([{"type": "text", "text": ODD}]), json!([{"type": "text", "text": long, "odd/key~": long}])];
    let mut head = parent;
    for content in texts {
        let (id, uuid) = (NodeId::random(), Some(ODD.to_owned()));
        let node = NodeRow { id, tree, parent: head, role: Role::Assistant, content, turn: 1, uuid };
        head = id;
        commit(store, Change::AddNode(session, Arc::new(node))).await;
    }
}

/// Rules, tokens and templates, of which the last ones are revoked or deleted.
async fn authority(store: &dyn Store, session: SessionId, named: &str) {
    for session in [Some(session), None] {
        let rule = NewRule {
            session,
            entry: json!({"rule": ODD}),
            expires_at: Some(NOW + 60),
            authority: RuleAuthority::Root,
            created_by: Decider::Operator,
        };
        let created = commit(store, Change::CreateRule(Box::new(rule))).await;
        assert!(!created.rules.is_empty());
    }
    for kept in ["kept", "revoked"] {
        let name = TokenName::try_from(format!("{kept}-{named}")).unwrap();
        let token =
            TokenRow { name: name.clone(), right: TokenRight::Read, created_at: NOW, expires_at: None };
        let hash = format!("hash of {kept} {named}");
        commit(store, Change::CreateToken { token, hash, by: Decider::Operator }).await;
        if kept == "revoked" {
            commit(store, Change::RevokeToken { name, by: Decider::Operator }).await;
        }
    }
    let template = serde_json::from_value(json!({"prompt": ODD, "budget": {"cost_usd": 0.1}})).unwrap();
    let name = TemplateName::try_from(named.to_owned()).unwrap();
    let template = Box::new(template);
    commit(store, Change::SaveTemplate { name, template, by: Decider::Operator }).await;
}

/// A session that waits for more budget.
async fn exhausted_budget(store: &dyn Store, named: &str) {
    let session = create(store, &format!("poor-{named}")).await;
    commit(store, Change::SetBudget(session, vec![(ToolCalls, 0)])).await;
    start_run(store, session).await;
    start_turn(store, session, 1).await;
    let held = call(session, "held", "own_course");
    let committed = commit(store, Change::Call(Box::new(held), object(json!({"a": 1})).into())).await;
    assert_eq!(committed.held.len(), 1);
}

/// A session that is deleted, and whose last approval, event and call are removed: their numbers must not be given again.
async fn deleted(store: &dyn Store, named: &str) {
    let new = NewSession { host: store.host().cloned(), ..new_session(&format!("old-{named}")) };
    let session = new.id;
    commit(store, Change::CreateSession(Box::new(new))).await;
    let run = start_run(store, session).await;
    start_turn(store, session, 1).await;
    commit(store, says(session, 1, "removed")).await;
    commit(store, ends(session, 1)).await;
    let approval = ask(store, question(session, 1, "removed")).await;
    commit(store, denies(approval)).await;
    commit(store, Change::EndRun(run, json!({"code": 0}))).await;
    commit(store, Change::DeleteSession(session)).await;
    let removed = [Removable::Events { session, turn: 1 }, Removable::Approval(approval)];
    for removable in removed {
        commit(store, Change::Remove(removable)).await;
    }
}
