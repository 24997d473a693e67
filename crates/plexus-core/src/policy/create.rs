//! Creates rules: parses them and checks that the caller may create them. The `matching` module finds the open
//! approvals that a new rule resolves.

use std::path::Path;
use std::slice;

use plexus_policy::{RuleEffect, RuleEntry, ScopeChain};
use plexus_protocol::policy::{AnswerEffect, Effect, Remember, RuleGiven};
use plexus_protocol::{Decider, Error, ErrorKind, Object, Principal, SessionId};
use plexus_store::{ApprovalRow, Change, NewRule, RuleAuthority, SessionRow};
use serde_json::Value;

use super::Policy;
use super::gate::GateDecision;
use super::in_force::{Policies, Ruling};
use crate::callers::access::{self, Admitted};
use crate::errors::session_not_found;
use crate::errors::store_error;
use crate::lineage::{CheckedCall, Lineage, known_lineage};
use plexus_book::now;

/// The maximum number of rules in one request, and the maximum length of one rule in bytes. Every call is evaluated
/// against the rules, so both are bounded.
const MAX_RULES: usize = 1_000;
const MAX_RULE_BYTES: usize = 10_000;

/// The context in which a rule is created.
pub(crate) struct RuleContext<'a> {
    /// The caller that creates the rule.
    pub(crate) principal: &'a Principal,
    /// The session that the rule applies to, with its descendants; `None` for all sessions.
    pub(crate) session: Option<SessionId>,
    /// The base directory of relative paths in the rule.
    pub(crate) base: &'a str,
    /// The directory that `~` in the rule stands for.
    pub(crate) home: Option<&'a Path>,
}

impl RuleContext<'_> {
    /// The authority of this caller's rules. Rules of a session can only restrict.
    fn authority(&self) -> RuleAuthority {
        match self.principal {
            Principal::Session { .. } => RuleAuthority::Narrows,
            Principal::Operator | Principal::Token { .. } | Principal::Parent { .. } => RuleAuthority::Root,
        }
    }

    fn entry(&self, given: &RuleGiven, field: &str) -> Result<NewRule, Error> {
        let effect = match given.effect {
            Effect::Allow => RuleEffect::Allow,
            Effect::Deny => RuleEffect::Deny,
            Effect::Ask => RuleEffect::Ask,
        };
        if given.rule.len() > MAX_RULE_BYTES {
            return Err(Error::invalid(field, format!("must be at most {MAX_RULE_BYTES} bytes long")));
        }
        if given.expires_at.is_some_and(|at| at <= now()) {
            return Err(Error::invalid(field, "has already expired: `expires_at` is in the past"));
        }
        let entry = given.rule.parse().and_then(|rule| RuleEntry::new(rule, effect, given.expires_at));
        let entry = entry.map_err(|error| {
            let message = format!("at byte {}: expected {}", error.at, error.expected);
            Error::invalid(field, message).with("rule", given.rule.clone()).with("at", error.at)
        })?;
        let entry = entry.anchored(Path::new(self.base), self.home);
        let entry = serde_json::to_value(&entry)
            .map_err(|error| Error::new(ErrorKind::Internal, format!("cannot store the rule: {error}")))?;
        Ok(NewRule {
            session: self.session,
            entry,
            expires_at: given.expires_at,
            authority: self.authority(),
            created_by: Decider::from(self.principal),
        })
    }

    /// Parses the rules given in `field`. The error for an invalid rule names its position.
    pub(crate) fn rules(&self, given: &[RuleGiven], field: &str) -> Result<Vec<Change>, Error> {
        if given.len() > MAX_RULES {
            return Err(Error::invalid(field, format!("must have at most {MAX_RULES} rules")));
        }
        let entries = given.iter().enumerate().map(|(i, given)| self.entry(given, &format!("{field}[{i}]")));
        entries.map(|rule| Ok(Change::CreateRule(Box::new(rule?)))).collect()
    }
}

impl Policy {
    /// The ruling of the rules in force on a call of a session.
    pub(crate) async fn ruling(
        &self,
        session: SessionRow,
        tool_name: &str,
        input: &Object,
        cwd: &str,
    ) -> Result<Ruling, Error> {
        self.ruling_by(&self.in_force, session, tool_name, input, cwd).await
    }

    /// The ruling of `policies` on a call of a session.
    pub(crate) async fn ruling_by(
        &self,
        policies: &Policies,
        session: SessionRow,
        tool_name: &str,
        input: &Object,
        cwd: &str,
    ) -> Result<Ruling, Error> {
        let mode = session.config.permission_mode;
        let lineage = known_lineage(&*self.store, session).await.map_err(store_error)?;
        let input = Value::Object(input.clone());
        let judge = policies.judge(&lineage, || lineage.home(&self.settings));
        Ok(judge.judge(tool_name, &input, Path::new(cwd), Some(mode.as_str())))
    }

    /// Checks that no rule denies the call, with the edited input if one is given: nobody can allow what a rule denies.
    pub(crate) async fn check_not_denied(
        &self,
        row: &ApprovalRow,
        updated: Option<&Object>,
    ) -> Result<(), Error> {
        let approval = &row.approval;
        let session = self.store.session(approval.session_id).await.map_err(store_error)?;
        let session = session.ok_or_else(|| session_not_found(approval.session_id))?;
        let input = updated.unwrap_or(&approval.input);
        let ruling = self.ruling(session, &approval.tool_name, input, &approval.cwd).await?;
        if ruling.decision == GateDecision::Deny {
            let message = format!("a rule denies this call, so nobody can allow it: {}", ruling.why);
            return Err(Error::new(ErrorKind::DeniedByRule, message).with("rules", ruling.rules));
        }
        Ok(())
    }

    /// Checks that a calling session allows only what its scope covers.
    pub(crate) async fn check_in_scope(
        &self,
        caller: &Admitted,
        row: &ApprovalRow,
        updated: Option<&Object>,
    ) -> Result<(), Error> {
        let Principal::Session { id, .. } = caller.principal else { return Ok(()) };
        let approval = &row.approval;
        if let Some(asking) = self.store.session(approval.session_id).await.map_err(store_error)? {
            let lineage = known_lineage(&*self.store, asking).await.map_err(store_error)?;
            let input = updated.unwrap_or(&approval.input);
            let call = self.call_of(&lineage, &approval.tool_name, input, &approval.cwd);
            if lineage.may_allow(id, &call) {
                return Ok(());
            }
        }
        let message = "your `approve_scope`, or that of a session above you, does not cover this call: deny \
            it, or escalate it with loopback.escalate";
        Err(Error::new(ErrorKind::BeyondScope, message))
    }

    /// A call of the last session in this lineage.
    pub(crate) fn call_of(&self, of: &Lineage, tool_name: &str, input: &Object, cwd: &str) -> CheckedCall {
        CheckedCall::new(tool_name, Value::Object(input.clone()), cwd.into(), of.home(&self.settings))
    }

    /// The scopes that limit which calls a session may allow; `None` if it may allow nothing.
    pub(crate) async fn scopes_of(&self, session: SessionId) -> Result<Option<ScopeChain>, Error> {
        let Some(row) = self.store.session(session).await.map_err(store_error)? else { return Ok(None) };
        let lineage = known_lineage(&*self.store, row).await.map_err(store_error)?;
        Ok(lineage.scopes_of(session))
    }

    /// The rule to create with an answer. Error messages name its fields with the prefix `within`.
    pub(crate) async fn remembered(
        &self,
        caller: &Admitted,
        row: &ApprovalRow,
        effect: AnswerEffect,
        remember: Remember,
        within: &str,
    ) -> Result<NewRule, Error> {
        let session = remember.session_id.unwrap_or(row.approval.session_id);
        let session = access::find_session(&*self.store, caller, Some(session), None).await?;
        if matches!(caller.principal, Principal::Token { .. }) {
            let message = "this token has the right `decide`, which does not allow adding rules";
            return Err(Error::new(ErrorKind::Forbidden, message).with("field", "remember"));
        }
        if remember.expires_secs == Some(0) {
            let field = format!("{within}expires_secs");
            return Err(Error::invalid(
                &field,
                "must be at least 1; omit it for a rule that does not expire",
            ));
        }
        let base = session.config.working_dir.as_str();
        let home = self.settings.home.as_deref();
        let context = RuleContext { principal: &caller.principal, session: Some(session.id), base, home };
        let expires_at = remember.expires_secs.map(|secs| now().saturating_add(secs));
        let given = RuleGiven { rule: remember.rule, effect: effect.into(), expires_at };
        let field = format!("{within}rule");
        let mut rule = context.entry(&given, &field)?;
        if let Principal::Session { id, .. } = caller.principal
            && effect == AnswerEffect::Allow
        {
            check_rule_in_scope(self.scopes_of(id).await?, &rule, &field)?;
            rule.authority = RuleAuthority::Within;
        }
        Ok(rule)
    }
}

/// Rejects a rule of a session that names calls the session could not allow by an answer. The same scopes are checked
/// again whenever the rule allows a call.
fn check_rule_in_scope(scopes: Option<ScopeChain>, rule: &NewRule, field: &str) -> Result<(), Error> {
    let entry: Option<RuleEntry> = serde_json::from_value(rule.entry.clone()).ok();
    match (entry, scopes) {
        (Some(entry), Some(scopes)) if scopes.first_beyond(slice::from_ref(entry.rule())).is_none() => Ok(()),
        _ => {
            let message = "this rule allows more than your `approve_scope`, or that of a session above you: \
                answer without `remember`, or use a narrower rule";
            Err(Error::new(ErrorKind::BeyondScope, message).with("field", field))
        }
    }
}
