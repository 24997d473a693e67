//! Tables of the domain rules, over rows in memory.

mod audit;
mod budgets;
mod feed;
mod held_calls;

use std::collections::BTreeMap;

use plexus_protocol::claudecode::{Channel, PermissionMode, PolicyName};
use plexus_protocol::{
    Approval, ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decider, Decision, Event, NodeId, Object,
    Right, SessionId, TreeId, UnixSeconds,
};
use serde_json::{Value, json};

use crate::{
    CallRow, Change, Committed, ConversationStart, MemoryStore, NewApproval, NewSession, Refusal, RunKey,
    SessionConfig, StoreError, TurnStatus, Verdict,
};

const NOW: UnixSeconds = 1_800_000_000;

fn object(value: Value) -> Object {
    value.as_object().unwrap().clone()
}

fn apply(store: &MemoryStore, change: Change) -> Committed {
    store.apply(NOW, &[change]).unwrap()
}

fn refused(store: &MemoryStore, change: Change) -> Refusal {
    match store.apply(NOW, &[change]) {
        Err(StoreError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn new_session(name: &str, answers_to: AskedOf) -> NewSession {
    let config = SessionConfig {
        working_dir: "/work".to_owned(),
        repository: None,
        worktree: None,
        model: None,
        system_prompt: None,
        append_system_prompt: None,
        loopback_enabled: true,
        channel: Channel::Control,
        permission_mode: PermissionMode::Default,
        policy: PolicyName::AskAll,
        deltas: false,
        env: BTreeMap::new(),
        mcp_servers: BTreeMap::new(),
        project: None,
        imported: None,
        hub_tools: true,
        approve_scope: Vec::new(),
        approval_timeout_secs: None,
        escalate_after_secs: None,
        wake: false,
        metadata: None,
        forked: None,
        resumed_from: None,
        hooks: None,
    };
    NewSession {
        id: SessionId::random(),
        name: name.to_owned().try_into().unwrap(),
        answers_to,
        config,
        tree: TreeId::random(),
        head: NodeId::random(),
        start: ConversationStart::NewTree,
    }
}

fn create(store: &MemoryStore, name: &str, answers_to: AskedOf) -> SessionId {
    let new = new_session(name, answers_to);
    let id = new.id;
    apply(store, Change::CreateSession(Box::new(new)));
    id
}

/// A chain of sessions, each below the one before; the first answers to the operator.
fn chain<const N: usize>(store: &MemoryStore) -> [SessionId; N] {
    let mut answers_to = AskedOf::Operator;
    std::array::from_fn(|level| {
        let id = create(store, &format!("level-{level}"), answers_to.clone());
        answers_to = AskedOf::Session { id };
        id
    })
}

fn start_turn(store: &MemoryStore, session: SessionId) {
    apply(store, Change::StartTurn { session, turn: 1, prompt: String::new(), woken_to: None });
}

fn end_turn(session: SessionId, cost_usd: f64) -> Change {
    let last =
        Box::new(Event::Content { text: "last".to_owned(), parent_tool_use_id: None, truncated: None });
    let (status, summary) = (TurnStatus::Complete, Some("done".to_owned()));
    Change::EndTurn { session, turn: 1, status, last, summary, cost_usd }
}

fn call(session: SessionId, tool_use_id: &str, answer: &str) -> CallRow {
    CallRow {
        key: RunKey { session, run: 1 },
        turn: 1,
        tool_use_id: tool_use_id.to_owned(),
        tool_name: "Bash".to_owned(),
        digest: "digest".to_owned(),
        request_id: "request".to_owned(),
        summary: String::new(),
        verdict: Verdict::from_stored(json!({"answer": answer, "reason": "a rule"})),
    }
}

fn at_gate(session: SessionId, tool_use_id: &str, answer: &str) -> Change {
    let input = object(json!({"command": "ls"}));
    Change::Call(Box::new(call(session, tool_use_id, answer)), input.into())
}

fn approval(session: SessionId, asked_of: AskedOf) -> NewApproval {
    NewApproval {
        approval: Approval {
            id: ApprovalId::random(),
            session_id: session,
            session_name: "old-name".to_owned().try_into().unwrap(),
            session_path: None,
            kind: ApprovalKind::Tool,
            tool_name: "Bash".to_owned(),
            tool_use_id: "t".to_owned(),
            input: object(json!({"command": "ls"})),
            status: ApprovalStatus::Pending,
            created_at: NOW - 5,
            expires_at: None,
            asked_of,
            passed: Vec::new(),
            passes_on_at: None,
            reason: None,
            said: None,
            risks: None,
            suggestions: None,
            agent_id: None,
            blocked_path: None,
            requires_user_interaction: None,
            beyond_rules: false,
            cwd: "/work".to_owned(),
            digest: Some("digest".to_owned()),
            truncated: false,
            delivered_at: None,
            resolved_at: None,
            decision: None,
        },
        run: 1,
        turn: 1,
        channel: Channel::Control,
        request_id: None,
    }
}

fn decision(updated_input: Option<Value>) -> Decision {
    Decision {
        approve: true,
        message: None,
        updated_input: updated_input.map(object),
        mode: None,
        interrupt: false,
        rule: None,
        by: Decider::Operator,
        right: Right::Operator,
    }
}

fn allows(approval: ApprovalId, updated_input: Option<Value>) -> Change {
    let decision = Box::new(decision(updated_input));
    Change::Resolve { approval, status: ApprovalStatus::Allowed, decision }
}
