//! Making rules: reading what was given, who may make them, and what they settle at once.

use std::path::{Path, PathBuf};

use plexus_policy::{RuleEffect, RuleEntry, Scope};
use plexus_protocol::policy::{Effect, Remember, RuleGiven};
use plexus_protocol::{
    ApprovalId, ApprovalKind, ApprovalStatus, Decider, Decision, Error, ErrorKind, Object, Principal, Right,
    SessionId,
};
use plexus_store::{ApprovalRow, Change, NewRule, Open, RuleAuthority, SessionRow};
use serde_json::Value;

use crate::Hub;
use crate::access::{Admitted, session_not_found};
use crate::book::Resolved;
use crate::clock::now;
use crate::gate::Say;
use crate::hub::store_error;
use crate::lineage::scope_of;
use crate::policies::Ruling;

/// How many rules may be given at once, and how long one may be: a policy is looked at for each call.
const MOST_AT_ONCE: usize = 1_000;
const LONGEST: usize = 10_000;

/// What a rule is made with, besides its text.
pub(crate) struct Giver<'a> {
    /// Who makes it.
    pub(crate) principal: &'a Principal,
    /// The session it is for, and all below it.
    pub(crate) session: Option<SessionId>,
    /// What its relative paths are relative to.
    pub(crate) base: &'a str,
}

impl Giver<'_> {
    /// How far the rules of this caller count: a session's can only narrow.
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
        if given.rule.len() > LONGEST {
            return Err(Error::invalid(field, format!("is longer than {LONGEST} bytes")));
        }
        if given.expires_at.is_some_and(|at| at <= now()) {
            return Err(Error::invalid(field, "has ended already: `expires_at` is in the past"));
        }
        let entry = given.rule.parse().and_then(|rule| RuleEntry::new(rule, effect, given.expires_at));
        let entry = entry.map_err(|error| {
            let message = format!("at byte {}: expected {}", error.at, error.expected);
            Error::invalid(field, message).with("rule", given.rule.clone()).with("at", error.at)
        })?;
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let entry = entry.anchored(Path::new(self.base), home.as_deref());
        let entry = serde_json::to_value(&entry)
            .map_err(|error| Error::new(ErrorKind::Internal, format!("a rule cannot be kept: {error}")))?;
        Ok(NewRule {
            session: self.session,
            entry,
            expires_at: given.expires_at,
            authority: self.authority(),
            made_by: Decider::from(self.principal),
        })
    }

    /// The rules that were given in `field`; one that cannot be read is refused with its place.
    pub(crate) fn rules(&self, given: &[RuleGiven], field: &str) -> Result<Vec<Change>, Error> {
        if given.len() > MOST_AT_ONCE {
            return Err(Error::invalid(field, format!("are more than {MOST_AT_ONCE}")));
        }
        let entries = given.iter().enumerate().map(|(i, given)| self.entry(given, &format!("{field}[{i}]")));
        entries.map(|rule| Ok(Change::MakeRule(Box::new(rule?)))).collect()
    }
}

impl Hub {
    /// What the rules in force say to a call of a session.
    pub(crate) async fn ruling(
        &self,
        session: SessionRow,
        tool_name: &str,
        input: &Object,
        cwd: &str,
    ) -> Result<Ruling, Error> {
        let mode = session.config.permission_mode;
        let lineage = self.known_lineage(session).await.map_err(store_error)?;
        let input = Value::Object(input.clone());
        Ok(self.judge_of(&lineage).judge(tool_name, &input, Path::new(cwd), Some(mode.as_str())))
    }

    /// Nobody can allow what a rule denies, not by another input either.
    pub(crate) async fn check_not_denied(
        &self,
        row: &ApprovalRow,
        updated: Option<&Object>,
    ) -> Result<(), Error> {
        let approval = &row.approval;
        let session = self.store().session(approval.session_id).await.map_err(store_error)?;
        let session = session.ok_or_else(|| session_not_found(approval.session_id))?;
        let input = updated.unwrap_or(&approval.input);
        let ruling = self.ruling(session, &approval.tool_name, input, &approval.cwd).await?;
        if ruling.say == Say::Deny {
            let message = format!("a rule denies this, so it cannot be allowed: {}", ruling.why);
            return Err(Error::new(ErrorKind::DeniedByRule, message).with("rules", ruling.rules));
        }
        Ok(())
    }

    /// A session allows no more than it was given to allow.
    pub(crate) async fn check_in_scope(
        &self,
        caller: &Admitted,
        row: &ApprovalRow,
        updated: Option<&Object>,
    ) -> Result<(), Error> {
        let Principal::Session { id, .. } = caller.principal else { return Ok(()) };
        let (approval, store) = (&row.approval, self.store());
        let decider = store.session(id).await.map_err(store_error)?;
        let asking = store.session(approval.session_id).await.map_err(store_error)?;
        if let (Some(decider), Some(asking)) = (decider, asking)
            && let Some(scope) = scope_of(&decider)
        {
            let lineage = self.known_lineage(asking).await.map_err(store_error)?;
            let input = updated.unwrap_or(&approval.input);
            let call = self.call_of(&lineage, &approval.tool_name, input, &approval.cwd);
            if scope.may_allow(&call.as_call()) {
                return Ok(());
            }
        }
        let message =
            "allowing this is beyond your `approve_scope`: deny it, or pass it on with loopback.escalate";
        Err(Error::new(ErrorKind::BeyondScope, message))
    }

    /// The rule that is to be made with an answer.
    pub(crate) async fn remembered(
        &self,
        caller: &Admitted,
        row: &ApprovalRow,
        approve: bool,
        remember: Remember,
    ) -> Result<Change, Error> {
        let session = remember.session_id.unwrap_or(row.approval.session_id);
        let session = self.find_session(caller, Some(session), None).await?;
        if matches!(caller.principal, Principal::Token { .. }) {
            let message = "this token is good for answering what is asked, and not for making rules";
            return Err(Error::new(ErrorKind::Forbidden, message).with("field", "remember"));
        }
        if remember.expires_secs == Some(0) {
            return Err(Error::invalid("remember.expires_secs", "is at least 1; leave it out for no end"));
        }
        let base = session.config.working_dir.as_str();
        let giver = Giver { principal: &caller.principal, session: Some(session.id), base };
        let effect = if approve { Effect::Allow } else { Effect::Deny };
        let expires_at = remember.expires_secs.map(|secs| now().saturating_add(secs));
        let given = RuleGiven { rule: remember.rule, effect, expires_at };
        let mut rule = giver.entry(&given, "remember.rule")?;
        if let Principal::Session { id, .. } = caller.principal
            && approve
        {
            let decider = self.store().session(id).await.map_err(store_error)?;
            check_rule_in_scope(decider.as_ref().and_then(scope_of), &rule)?;
            rule.authority = RuleAuthority::Within;
        }
        Ok(Change::MakeRule(Box::new(rule)))
    }

    /// Brings those open approvals to their end that the rules in force allow or deny: when rules were made for `session`
    /// and all below it, or for all, and when a hub starts, as the last one may not have come to it.
    pub(crate) async fn settle(&self, session: Option<SessionId>) -> Vec<ApprovalId> {
        let open = match self.open_below(session).await {
            Ok(open) => open,
            Err(error) => {
                tracing::warn!(%error, "what a new rule settles could not be read; it stays open");
                return Vec::new();
            }
        };
        let mut settled = Vec::new();
        for row in open {
            if let Some((status, decision)) = self.settles(&row).await
                && let Ok(Resolved::Now(_)) =
                    self.book().resolve(row.approval.id, status, decision, Vec::new()).await
            {
                settled.push(row.approval.id);
            }
        }
        settled
    }

    /// The open approvals of a session and all below it; of all sessions for `None`.
    async fn open_below(&self, session: Option<SessionId>) -> Result<Vec<ApprovalRow>, Error> {
        let Some(session) = session else {
            return self.store().open_approvals(Open::All).await.map_err(store_error);
        };
        let below = self.descendants(session).await?;
        let mut open = Vec::new();
        for id in std::iter::once(session).chain(below.iter().map(|row| row.id)) {
            open.extend(self.store().open_approvals(Open::OfSession(id)).await.map_err(store_error)?);
        }
        Ok(open)
    }

    async fn settles(&self, row: &ApprovalRow) -> Option<(ApprovalStatus, Decision)> {
        let approval = &row.approval;
        // Rules are about calls; what may be used is given by someone who has it.
        if approval.kind == ApprovalKind::Budget {
            return None;
        }
        let session = self.store().session(approval.session_id).await.ok().flatten()?;
        let ruling = self.ruling(session, &approval.tool_name, &approval.input, &approval.cwd).await.ok()?;
        let status = match ruling.say {
            Say::Allow if !approval.beyond_rules => ApprovalStatus::Allowed,
            Say::Deny => ApprovalStatus::Denied,
            Say::Allow | Say::Ask | Say::Nothing => return None,
        };
        let approve = status == ApprovalStatus::Allowed;
        let decision = Decision {
            approve,
            message: (!approve).then_some(ruling.why),
            updated_input: None,
            mode: None,
            interrupt: false,
            rule: ruling.rules.first().copied(),
            by: Decider::Hub,
            right: Right::Rule,
        };
        // What a named policy says now it said at the gate as well, and the question was asked all the same.
        decision.rule.is_some().then_some((status, decision))
    }
}

/// A session allows nothing in advance that it could not allow when asked.
fn check_rule_in_scope(scope: Option<Scope>, rule: &NewRule) -> Result<(), Error> {
    let entry: Option<RuleEntry> = serde_json::from_value(rule.entry.clone()).ok();
    let given = entry.and_then(|entry| Scope::new(&[entry.rule().clone()]).ok());
    match (given, scope) {
        (Some(given), Some(scope)) if given.exceeds(&scope).is_none() => Ok(()),
        _ => {
            let message =
                "this rule allows more than your `approve_scope`: answer without `remember`, or name less";
            Err(Error::new(ErrorKind::BeyondScope, message).with("field", "remember.rule"))
        }
    }
}
