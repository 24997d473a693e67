//! Calls at the gate. A call whose budget is exhausted is *held*: it is stored with its input instead of
//! the gate's answer, in the same commit as the budget approval that it waits for.

use std::borrow::Cow;

use plexus_protocol::Event;
use plexus_protocol::budget::BudgetLimit;
use serde_json::json;

use super::{Commit, audit_entries, key};
use crate::rows::{CallKey, Stored};
use crate::{CallInput, CallRow, HeldForBudget, Verdict};

/// The limits that a call needs some of.
pub(super) const CALL_LIMITS: [BudgetLimit; 3] =
    [BudgetLimit::ToolCalls, BudgetLimit::CostUsd, BudgetLimit::WallSecs];

/// The reason of an answer whose rules are not in force any more.
pub const OUTDATED: &str = "the permission rules changed while this call was judged";

/// What became of a call at the gate.
enum Counted {
    /// The gate's answer stands.
    Answered,
    /// The call waits; this is stored in place of the gate's answer.
    Held(Verdict),
}

impl Commit<'_> {
    pub(super) fn call(&mut self, call: &CallRow, seen: &CallInput) -> Stored<()> {
        // Most calls have events in the same commit.
        self.next_event(key(call.key.session, call.turn))?;
        let call = &*self.by_current_rules(call, seen)?;
        match self.count_call(call, seen)? {
            Counted::Answered => {
                self.rows.insert_call(call, self.at)?;
                self.audit_answer(call, seen)
            }
            Counted::Held(verdict) => self.rows.insert_call(&CallRow { verdict, ..call.clone() }, self.at),
        }
    }

    /// A held call is at the gate again.
    pub(super) fn release(&mut self, call: &CallRow, seen: &CallInput) -> Stored<()> {
        let call = &*self.by_current_rules(call, seen)?;
        let key = CallKey { run: call.key, tool_use_id: &call.tool_use_id };
        match self.count_call(call, seen)? {
            Counted::Answered => {
                self.rows.set_verdict(&key, &call.verdict)?;
                self.audit_answer(call, seen)
            }
            Counted::Held(verdict) => self.rows.set_verdict(&key, &verdict),
        }
    }

    /// The call with the answer `Ask` in place of one that may let it run, if the rules have changed since the gate has judged it: a rule that
    /// allowed it may be revoked, and a new one may deny it.
    fn by_current_rules<'c>(&mut self, call: &'c CallRow, seen: &CallInput) -> Stored<Cow<'c, CallRow>> {
        let may_run = matches!(call.verdict, Verdict::Allow { .. } | Verdict::NoOpinion);
        if !may_run || self.rows.rules_version()? == seen.rules_version {
            return Ok(Cow::Borrowed(call));
        }
        self.published.outdated_calls.push(call.tool_use_id.clone());
        let verdict = Verdict::Ask { reason: OUTDATED.to_owned() };
        Ok(Cow::Owned(CallRow { verdict, ..call.clone() }))
    }

    /// Counts a call that the gate does not deny, or holds it.
    fn count_call(&mut self, call: &CallRow, seen: &CallInput) -> Stored<Counted> {
        if matches!(call.verdict, Verdict::Deny { .. }) || !self.rows.any_budget()? {
            return Ok(Counted::Answered);
        }
        let session = call.key.session;
        let Some(limit) = self.exhausted(session, &CALL_LIMITS)? else {
            self.spend(session, BudgetLimit::ToolCalls, 1)?;
            return Ok(Counted::Answered);
        };
        let approval = self.ask_for_more(&limit, session, Some(&call.tool_name))?;
        let data = json!({"tool_use_id": call.tool_use_id, "approval_id": approval, "limit": limit.limit});
        let data = data.as_object().cloned().unwrap_or_default();
        self.event(key(session, call.turn), &Event::System { subtype: "held".to_owned(), data })?;
        let tool_use_id = Some(call.tool_use_id.clone());
        self.published.held.push(HeldForBudget { session, tool_use_id, approval, limit });
        Ok(Counted::Held(Verdict::held(approval, seen)))
    }

    /// Only an answer of the gate itself has an audit entry here; an approval has its own when it is resolved.
    fn audit_answer(&mut self, call: &CallRow, seen: &CallInput) -> Stored<()> {
        let session_name = self.identity(call.key.session)?.map(|session| session.name);
        match audit_entries::gate_answered(self.at, call, session_name, &seen.input) {
            Some(entry) => self.audit(entry),
            None => Ok(()),
        }
    }
}
