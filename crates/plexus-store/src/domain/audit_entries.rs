//! The contents of the audit entry of each act. `audit_chain` appends them to the log.

use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_protocol::{
    Approval, Decider, Decision, HostName, Object, Right, SessionName, TemplateName, TokenName, UnixSeconds,
};
use serde_json::{Value, json};

use crate::{CallRow, HostState, NewRule, NewSession, TemplateRow, TokenRow, Verdict};

/// An approval was resolved. `verdict` is the gate's answer to the call, if the gate saw it.
pub(crate) fn approval_resolved(
    at: UnixSeconds,
    approval: &Approval,
    decision: &Decision,
    verdict: Option<Verdict>,
) -> AuditEntry {
    let status = json!(approval.status).as_str().unwrap_or_default().to_owned();
    AuditEntry {
        right: Some(decision.right),
        session_id: Some(approval.session_id),
        session_name: Some(approval.session_name.clone()),
        approval_id: Some(approval.id),
        tool_use_id: Some(approval.tool_use_id.clone()),
        tool_name: Some(approval.tool_name.clone()),
        digest: approval.digest.clone(),
        cwd: Some(approval.cwd.clone()),
        input: Some(approval.input.clone()),
        updated_input: decision.updated_input.clone(),
        message: decision.message.clone(),
        gate: verdict.and_then(|verdict| object(json!(verdict))),
        asked_of: Some(approval.asked_of.clone()),
        passed: approval.passed.clone(),
        asked_at: Some(approval.created_at),
        detail: decision.mode.and_then(|mode| object(json!({"mode": mode}))),
        ..AuditEntry::new(at, AuditKind::Decision, status, decision.by.clone())
    }
}

/// The gate allowed or denied a call by rule. Other answers have no entry here: an approval has one when it is resolved.
pub(crate) fn gate_answered(
    at: UnixSeconds,
    call: &CallRow,
    session_name: Option<SessionName>,
    input: &Object,
) -> Option<AuditEntry> {
    let answer = match call.verdict {
        Verdict::Allow { .. } => "allow",
        Verdict::Deny { .. } => "deny",
        Verdict::NoOpinion | Verdict::Ask { .. } | Verdict::Held { .. } => return None,
    };
    Some(AuditEntry {
        right: Some(Right::Rule),
        session_id: Some(call.key.session),
        session_name,
        tool_use_id: Some(call.tool_use_id.clone()),
        tool_name: Some(call.tool_name.clone()),
        digest: Some(call.digest.clone()),
        input: Some(input.clone()),
        gate: object(json!(call.verdict)),
        ..AuditEntry::new(at, AuditKind::Gate, answer, Decider::Hub)
    })
}

/// A session was created by its parent.
pub(crate) fn session_created(at: UnixSeconds, new: &NewSession) -> AuditEntry {
    let by = Decider::from(&new.answers_to);
    let right = if by == Decider::Operator { Right::Operator } else { Right::Ancestor };
    let config = &new.config;
    AuditEntry {
        right: Some(right),
        session_id: Some(new.id),
        session_name: Some(new.name.clone()),
        cwd: Some(config.working_dir.clone()),
        detail: object(json!({
            "loopback_enabled": config.loopback_enabled,
            "permission_mode": config.permission_mode,
            "policy": config.policy,
            "hub_tools": config.hub_tools,
            "mcp_servers": config.mcp_servers.keys().collect::<Vec<_>>(),
            "project": config.project.as_ref().map(|project| &project.files),
            "resumed_from": config.resumed_from,
            "hooks": config.hooks,
        })),
        ..AuditEntry::new(at, AuditKind::Session, "made", by)
    }
}

/// A permission rule was created.
pub(crate) fn rule_created(at: UnixSeconds, number: u64, rule: &NewRule) -> AuditEntry {
    let NewRule { session, entry, expires_at, authority, created_by } = rule;
    let detail = json!({"number": number, "rule": entry, "expires_at": expires_at, "authority": authority});
    AuditEntry {
        session_id: *session,
        detail: object(detail),
        ..AuditEntry::new(at, AuditKind::Policy, "made", created_by.clone())
    }
}

/// A permission rule was revoked.
pub(crate) fn rule_revoked(at: UnixSeconds, number: u64, by: &Decider) -> AuditEntry {
    let entry = AuditEntry::new(at, AuditKind::Policy, "revoked", by.clone());
    AuditEntry { detail: object(json!({"number": number})), ..entry }
}

/// A token was created.
pub(crate) fn token_created(at: UnixSeconds, token: &TokenRow, by: &Decider) -> AuditEntry {
    let detail = object(json!({"right": token.right, "expires_at": token.expires_at}));
    let entry = AuditEntry::new(at, AuditKind::Token, "made", by.clone());
    AuditEntry { token: Some(token.name.clone()), detail, ..entry }
}

/// A token was revoked.
pub(crate) fn token_revoked(at: UnixSeconds, name: &TokenName, by: &Decider) -> AuditEntry {
    let entry = AuditEntry::new(at, AuditKind::Token, "revoked", by.clone());
    AuditEntry { token: Some(name.clone()), ..entry }
}

/// A template was saved.
pub(crate) fn template_saved(at: UnixSeconds, row: &TemplateRow, by: &Decider) -> AuditEntry {
    let template = &row.template;
    let detail = json!({
        "name": row.name,
        "working_dir": template.working_dir,
        "permission_mode": template.permission_mode,
        "policy": template.policy,
        "mcp_servers": template.mcp_servers.keys().collect::<Vec<_>>(),
    });
    AuditEntry { detail: object(detail), ..AuditEntry::new(at, AuditKind::Template, "saved", by.clone()) }
}

/// A template was deleted.
pub(crate) fn template_deleted(at: UnixSeconds, name: &TemplateName, by: &Decider) -> AuditEntry {
    let entry = AuditEntry::new(at, AuditKind::Template, "deleted", by.clone());
    AuditEntry { detail: object(json!({"name": name})), ..entry }
}

/// A host was declared lost, drained, removed, or gets new sessions again.
pub(crate) fn host_changed(
    at: UnixSeconds,
    host: &HostName,
    before: HostState,
    state: HostState,
    by: &Decider,
) -> AuditEntry {
    let status = match (state, before) {
        (HostState::Active, HostState::RolledBack) | (HostState::RolledBack, _) => "rollback_accepted",
        (HostState::Active, HostState::Rejoined) | (HostState::Rejoined, _) => "rejoined",
        (HostState::Active, _) => "undrained",
        (HostState::Draining, _) => "drained",
        (HostState::Lost, _) => "lost",
        (HostState::Removed, _) => "removed",
    };
    let entry = AuditEntry::new(at, AuditKind::Host, status, by.clone());
    AuditEntry { detail: object(json!({"host": host})), ..entry }
}

fn object(value: Value) -> Option<Object> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}
