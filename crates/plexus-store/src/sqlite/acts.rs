//! What the record says of each sort of act that a change brings with it. Written here, where the change is done, so that
//! nobody can do the one without the other.

use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_protocol::{Decider, Decision, Object, Right, TokenName};
use rusqlite::OptionalExtension;
use serde_json::{Value, json};

use super::changes::Applying;
use super::columns::{Json, Text};
use super::sql;
use crate::{ApprovalRow, CallRow, NewRule, NewSession, StoreError, TokenRow};

impl Applying<'_> {
    /// An approval came to its end.
    pub(super) fn decided(&mut self, row: &ApprovalRow, decision: &Decision) -> Result<(), StoreError> {
        let approval = &row.approval;
        let Value::String(status) = json!(approval.status) else {
            return Err(StoreError::Unavailable("a status is not a word".to_owned()));
        };
        let gate = self.verdict(row)?;
        self.record(&AuditEntry {
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
            gate,
            asked_of: Some(approval.asked_of.clone()),
            passed: approval.passed.clone(),
            asked_at: Some(approval.created_at),
            detail: decision.mode.and_then(|mode| object(json!({"mode": mode}))),
            ..AuditEntry::new(self.at, AuditKind::Decision, status, decision.by.clone())
        })
    }

    /// What the gate had said to the call that is asked about, if it saw it.
    fn verdict(&self, row: &ApprovalRow) -> Result<Option<Object>, StoreError> {
        let key = (Text(row.approval.session_id), row.run, &row.approval.tool_use_id);
        let verdict: Option<Json<Value>> =
            self.connection.prepare_cached(sql::VERDICT)?.query_row(key, |row| row.get(0)).optional()?;
        Ok(verdict.and_then(|verdict| object(verdict.0)))
    }

    /// The gate saw a call. What it leaves to others is recorded when they decide it.
    pub(super) fn gate_answered(&mut self, call: &CallRow, input: &Object) -> Result<(), StoreError> {
        let Some(answer @ ("allow" | "deny")) = call.verdict["answer"].as_str() else { return Ok(()) };
        self.record(&AuditEntry {
            right: Some(Right::Rule),
            session_id: Some(call.key.session),
            tool_use_id: Some(call.tool_use_id.clone()),
            tool_name: Some(call.tool_name.clone()),
            digest: Some(call.digest.clone()),
            input: Some(input.clone()),
            gate: object(call.verdict.clone()),
            ..AuditEntry::new(self.at, AuditKind::Gate, answer, Decider::Hub)
        })
    }

    /// A session was made by whom it answers to.
    pub(super) fn made_session(&mut self, new: &NewSession) -> Result<(), StoreError> {
        let by = Decider::from(&new.answers_to);
        let right = if by == Decider::Operator { Right::Operator } else { Right::Ancestor };
        let config = &new.config;
        self.record(&AuditEntry {
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
            })),
            ..AuditEntry::new(self.at, AuditKind::Session, "made", by)
        })
    }

    /// A rule was made.
    pub(super) fn rule_made(&mut self, number: u64, rule: &NewRule) -> Result<(), StoreError> {
        let NewRule { session, entry, expires_at, authority, made_by } = rule;
        let detail =
            json!({"number": number, "rule": entry, "expires_at": expires_at, "authority": authority});
        let entry = AuditEntry::new(self.at, AuditKind::Policy, "made", made_by.clone());
        self.record(&AuditEntry { session_id: *session, detail: object(detail), ..entry })
    }

    /// A rule was taken back.
    pub(super) fn rule_revoked(&mut self, number: u64, by: &Decider) -> Result<(), StoreError> {
        let entry = AuditEntry::new(self.at, AuditKind::Policy, "revoked", by.clone());
        self.record(&AuditEntry { detail: object(json!({"number": number})), ..entry })
    }

    /// A token was handed out.
    pub(super) fn token_made(&mut self, token: &TokenRow, by: &Decider) -> Result<(), StoreError> {
        let detail = object(json!({"right": token.right, "expires_at": token.expires_at}));
        let entry = AuditEntry::new(self.at, AuditKind::Token, "made", by.clone());
        self.record(&AuditEntry { token: Some(token.name.clone()), detail, ..entry })
    }

    /// A token was taken back.
    pub(super) fn token_revoked(&mut self, name: &TokenName, by: &Decider) -> Result<(), StoreError> {
        let entry = AuditEntry::new(self.at, AuditKind::Token, "revoked", by.clone());
        self.record(&AuditEntry { token: Some(name.clone()), ..entry })
    }
}

fn object(value: Value) -> Option<Object> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}
