//! Sample data for the tests.
#![allow(dead_code, clippy::allow_attributes, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use plexus_protocol::claudecode::{Channel, McpServer, PermissionMode, PolicyName};
use plexus_protocol::worktree::Worktree;
use plexus_protocol::{
    Approval, ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decider, Decision, EscalationReason,
    EscalationStep, Event, HostName, NodeId, Object, Right, RiskKind, RiskMark, SessionId, SessionName,
    TreeId, UnixSeconds,
};
use plexus_store::{
    Capacity, Change, Committed, ConversationStart, Durability, Host, NewApproval, NewSession,
    PostgresAddress, Refusal, RunKey, RunState, SessionConfig, SessionRow, SqlStore, Store, StoreError,
    TurnStatus,
};
use serde_json::json;

/// The time of all changes, unless it matters.
pub const NOW: UnixSeconds = 1_800_000_000;

/// A name.
pub fn name(text: &str) -> SessionName {
    SessionName::try_from(text.to_owned()).unwrap()
}

/// An object.
pub fn object(value: serde_json::Value) -> Object {
    value.as_object().unwrap().clone()
}

/// The configuration of a session.
pub fn config() -> SessionConfig {
    SessionConfig {
        working_dir: "/work/here".to_owned(),
        repository: None,
        worktree: Some(Worktree {
            path: "/worktrees/app/a-1".to_owned(),
            branch: "plexus/a-1".to_owned(),
            base: "0".repeat(40),
            repo: "/work/app/.git".to_owned(),
            base_branch: Some("main".to_owned()),
            checkout: Some("/work/app".to_owned()),
        }),
        model: Some("a-model".to_owned()),
        system_prompt: None,
        append_system_prompt: None,
        loopback_enabled: true,
        channel: Channel::Mcp,
        permission_mode: PermissionMode::AcceptEdits,
        policy: PolicyName::AskAll,
        deltas: true,
        env: BTreeMap::from([("KEY".to_owned(), "value".to_owned())]),
        mcp_servers: BTreeMap::from([("db".to_owned(), server())]),
        project: None,
        imported: None,
        hub_tools: false,
        approve_scope: Vec::new(),
        approval_timeout_secs: Some(60),
        escalate_after_secs: None,
        wake: false,
        metadata: Some(object(json!({"z": 1, "a": [2.5, null]}))),
        forked: None,
        resumed_from: None,
        hooks: None,
    }
}

/// An MCP server with a secret.
fn server() -> McpServer {
    let env = BTreeMap::from([("KEY".to_owned(), "A-SECRET".to_owned())]);
    McpServer::Stdio { command: "db".to_owned(), args: vec!["-v".to_owned()], env, timeout: None }
}

/// A session to be created, which answers to the operator.
pub fn new_session(text: &str) -> NewSession {
    NewSession {
        id: SessionId::random(),
        name: name(text),
        answers_to: AskedOf::Operator,
        config: config(),
        tree: TreeId::random(),
        head: NodeId::random(),
        start: ConversationStart::NewTree,
        host: None,
    }
}

/// Creates a session and returns its id.
pub async fn create(store: &dyn Store, text: &str) -> SessionId {
    let new = NewSession { host: store.host().cloned(), ..new_session(text) };
    let id = new.id;
    commit(store, Change::CreateSession(Box::new(new))).await;
    id
}

/// The session of this name; there must not be several.
pub async fn session_named(store: &dyn Store, name: &str) -> Option<SessionRow> {
    let mut named = store.sessions_named(name).await.unwrap();
    assert!(named.len() < 2, "{named:?}");
    named.pop()
}

/// Starts run 1 of a session.
pub async fn start_run(store: &dyn Store, session: SessionId) -> RunKey {
    let key = RunKey { session, run: 1 };
    commit(store, Change::StartRun { key, state: RunState::Starting, token_hash: None }).await;
    key
}

/// Starts a turn.
pub async fn start_turn(store: &dyn Store, session: SessionId, turn: u64) {
    commit(store, Change::StartTurn { session, turn, prompt: format!("prompt {turn}"), woken_to: None })
        .await;
}

/// One change that has to succeed.
pub async fn commit(store: &dyn Store, change: Change) -> Committed {
    store.commit(NOW, vec![change]).await.unwrap()
}

/// One change that has to be refused.
pub async fn refused(store: &dyn Store, change: Change) -> Refusal {
    match store.commit(NOW, vec![change]).await {
        Err(StoreError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// An event with a text of the agent.
pub fn said(text: &str) -> Event {
    Event::Content { text: text.to_owned(), parent_tool_use_id: None, truncated: None }
}

/// Ends a turn with success.
pub fn ends(session: SessionId, turn: u64) -> Change {
    let last = Box::new(said("the last"));
    Change::EndTurn { session, turn, status: TurnStatus::Complete, last, summary: None, cost_usd: 0.0 }
}

/// Appends a text of the agent.
pub fn says(session: SessionId, turn: u64, text: &str) -> Change {
    Change::Event(session, turn, Arc::new(said(text)))
}

/// An approval of run 1, addressed to the operator.
pub fn question(session: SessionId, turn: u64, tool_use_id: &str) -> NewApproval {
    NewApproval {
        approval: Approval {
            id: ApprovalId::random(),
            session_id: session,
            session_name: name("as-it-was-when-asked"),
            session_path: None,
            host: None,
            kind: ApprovalKind::Tool,
            tool_name: "Bash".to_owned(),
            tool_use_id: tool_use_id.to_owned(),
            input: object(json!({"command": "ls", "timeout": 0.1, "a": {"z": 1, "b": 2}})),
            status: ApprovalStatus::Pending,
            created_at: NOW,
            expires_at: Some(NOW + 60),
            asked_of: AskedOf::Operator,
            passed: Vec::new(),
            passes_on_at: None,
            reason: Some("because".to_owned()),
            said: Some("I list the files.".to_owned()),
            risks: Some(vec![RiskMark::new(RiskKind::Network, "it connects")]),
            suggestions: Some(json!([{"type": "addRules"}])),
            agent_id: None,
            blocked_path: Some("/etc".to_owned()),
            requires_user_interaction: None,
            beyond_rules: false,
            cwd: "/work/here".to_owned(),
            digest: Some("digest".to_owned()),
            truncated: false,
            delivered_at: None,
            resolved_at: None,
            decision: None,
        },
        run: 1,
        turn,
        channel: Channel::Control,
        request_id: Some("request".to_owned()),
    }
}

/// Creates an approval and returns its id.
pub async fn ask(store: &dyn Store, new: NewApproval) -> ApprovalId {
    let id = new.approval.id;
    commit(store, Change::Ask(Box::new(new))).await;
    id
}

/// Escalates an approval from each of `from` in turn to `to`; `by` causes the first step.
pub fn passes_on(approval: ApprovalId, from: &[AskedOf], to: AskedOf, by: Decider) -> Change {
    let passed = from.iter().enumerate().map(|(i, from)| EscalationStep {
        from: Some(from.clone()),
        why: if i == 0 { EscalationReason::Escalated } else { EscalationReason::Absent },
        by: if i == 0 { by.clone() } else { Decider::Hub },
        opinion: None,
        at: 0,
    });
    Change::Escalate { approval, passed_over: passed.collect(), to, escalates_at: Some(NOW + 5) }
}

/// The decision of an operator who allows a call.
pub fn allowed() -> Decision {
    Decision {
        approve: true,
        message: Some("as I said".to_owned()),
        updated_input: Some(object(json!({"command": "ls -l"}))),
        mode: None,
        interrupt: false,
        rule: None,
        by: Decider::Operator,
        right: Right::Operator,
    }
}

/// The decision of an operator who denies a call.
pub fn denied() -> Decision {
    Decision { approve: false, ..allowed() }
}

/// The operator allows the call.
pub fn allows(approval: ApprovalId) -> Change {
    Change::Resolve { approval, status: ApprovalStatus::Allowed, decision: Box::new(allowed()) }
}

/// The operator denies the call.
pub fn denies(approval: ApprovalId) -> Change {
    Change::Resolve { approval, status: ApprovalStatus::Denied, decision: Box::new(denied()) }
}

/// A host with a machine of its own, which does not keep the number of its commits.
pub fn host(name: &str) -> Host {
    Host {
        name: HostName::try_from(name.to_owned()).unwrap(),
        machine: format!("machine-of-{name}"),
        commit_count: "/dev/null".into(),
        capacity: Capacity::default(),
    }
}

/// The store in a PostgreSQL database.
pub fn postgres(url: &str, host: &Host) -> Result<SqlStore, StoreError> {
    SqlStore::postgres(&PostgresAddress::parse(url).unwrap(), host)
}

/// A store in this file; the tests do not need disk syncs.
pub fn open(path: &Path) -> SqlStore {
    SqlStore::sqlite(path, Durability::Normal).unwrap()
}
