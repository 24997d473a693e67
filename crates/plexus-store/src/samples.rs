//! Plain values for tests and benchmarks: a session, an approval, an answer. Callers change the fields that matter to them.

use std::collections::BTreeMap;

use plexus_protocol::claudecode::{Channel, PermissionMode, PolicyName};
use plexus_protocol::{
    Approval, ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decider, Decision, NodeId, Object, Right,
    SessionId, SessionName, TreeId, UnixSeconds,
};
use serde_json::Value;

use crate::{ConversationStart, NewApproval, NewSession, RunKey, SessionConfig};

/// The configuration of a session without special settings.
pub fn config(working_dir: &str) -> SessionConfig {
    SessionConfig {
        working_dir: working_dir.to_owned(),
        repository: None,
        worktree: None,
        model: None,
        system_prompt: None,
        append_system_prompt: None,
        loopback_enabled: true,
        channel: Channel::Control,
        permission_mode: PermissionMode::Default,
        policy: PolicyName::OwnCourse,
        deltas: false,
        env: BTreeMap::new(),
        mcp_servers: BTreeMap::new(),
        project: None,
        imported: None,
        hub_tools: false,
        approve_scope: Vec::new(),
        approval_timeout_secs: None,
        escalate_after_secs: None,
        wake: false,
        metadata: None,
        forked: None,
        resumed_from: None,
        hooks: None,
    }
}

/// A session that answers to the operator and works in `/work`.
pub fn session(name: SessionName) -> NewSession {
    NewSession {
        id: SessionId::random(),
        name,
        answers_to: AskedOf::Operator,
        config: config("/work"),
        tree: TreeId::random(),
        head: NodeId::random(),
        start: ConversationStart::NewTree,
        host: None,
    }
}

/// An approval of the operator for a call of Bash.
pub fn approval(
    key: RunKey,
    session_name: SessionName,
    tool_use_id: &str,
    created_at: UnixSeconds,
) -> NewApproval {
    let approval = Approval {
        id: ApprovalId::random(),
        session_id: key.session,
        session_name,
        session_path: None,
        host: None,
        kind: ApprovalKind::Tool,
        tool_name: "Bash".to_owned(),
        tool_use_id: tool_use_id.to_owned(),
        input: Object::from_iter([("command".to_owned(), Value::from("ls"))]),
        status: ApprovalStatus::Pending,
        created_at,
        expires_at: None,
        asked_of: AskedOf::Operator,
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
    };
    NewApproval { approval, run: key.run, turn: 1, channel: Channel::Control, request_id: None }
}

/// The operator allows a call as it is.
pub fn allow() -> Decision {
    Decision {
        approve: true,
        message: None,
        updated_input: None,
        mode: None,
        interrupt: false,
        rule: None,
        by: Decider::Operator,
        right: Right::Operator,
    }
}
