//! Finds the open approvals that rules resolve: those that match a new rule, and, for a preview, those that would
//! match. Both use the same function. The `create` module creates rules.

use plexus_protocol::policy::{AnswerEffect, Remember};
use plexus_protocol::{
    ApprovalId, ApprovalKind, ApprovalStatus, Decider, Decision, Error, ErrorKind, Right, SessionId,
};
use plexus_store::{ApprovalRow, OpenFilter, RuleRow};

use super::Policy;
use super::gate::GateDecision;
use super::in_force::{Policies, view};
use crate::callers::access::{self, Admitted};
use crate::errors::store_error;
use plexus_book::now;
use plexus_book::{Book, Resolved};

/// What a rule would do if it were created with an answer.
pub(crate) struct Preview {
    /// The rule as it would be stored.
    pub(crate) rule: String,
    /// Whether it matches the call of the approval that is being answered.
    pub(crate) covers: bool,
    /// The other open approvals that the rule would resolve.
    pub(crate) resolves: Vec<ApprovalId>,
}

impl Policy {
    /// Resolves the open approvals that the rules in force allow or deny. It runs after rules are created for `session`
    /// and its descendants, or for all sessions. It also runs when a hub starts, because the previous hub may have been
    /// killed in between.
    pub(crate) async fn resolve_matching(&self, book: &Book, session: Option<SessionId>) -> Vec<ApprovalId> {
        let open = match self.open_below(session).await {
            Ok(open) => open,
            Err(error) => {
                tracing::warn!(%error, "cannot read the approvals that a new rule matches; they stay open");
                return Vec::new();
            }
        };
        let mut resolved = Vec::new();
        // The hub of another host resolves its own: paths and links are those of that machine.
        for row in open.into_iter().filter(|row| self.is_own(row)) {
            if let Some((status, decision)) = self.outcome(&row, &self.in_force).await
                && let Ok(Resolved::Now(_)) =
                    book.resolve(row.approval.id, status, decision, Vec::new()).await
            {
                resolved.push(row.approval.id);
            }
        }
        resolved
    }

    /// Previews a rule as if it were created with the answer to `row`. It performs the same checks as an answer, and
    /// writes nothing.
    pub(crate) async fn preview(
        &self,
        caller: &Admitted,
        row: &ApprovalRow,
        effect: AnswerEffect,
        remember: Remember,
    ) -> Result<Preview, Error> {
        if effect == AnswerEffect::Allow {
            self.check_not_denied(row, None).await?;
            self.check_in_scope(caller, row, None).await?;
        }
        let rule = self.remembered(caller, row, effect, remember, "").await?;
        let session = rule.session;
        let proposed = RuleRow { number: u64::MAX, rule, created_at: now() };
        let view =
            view(&proposed).ok_or_else(|| Error::new(ErrorKind::Internal, "the new rule cannot be read"))?;
        let policies = self.in_force.with_rule(proposed);
        let wanted = match effect {
            AnswerEffect::Allow => ApprovalStatus::Allowed,
            AnswerEffect::Deny => ApprovalStatus::Denied,
        };
        let covers = self.outcome(row, &policies).await.is_some_and(|(status, _)| status == wanted);
        let mut resolves = Vec::new();
        for other in self.open_below(session).await?.into_iter().filter(|other| self.is_own(other)) {
            if other.approval.id != row.approval.id && self.outcome(&other, &policies).await.is_some() {
                resolves.push(other.approval.id);
            }
        }
        Ok(Preview { rule: view.rule, covers, resolves })
    }

    /// Whether the approval belongs to this host.
    fn is_own(&self, row: &ApprovalRow) -> bool {
        row.approval.host.as_ref() == self.store.host()
    }

    /// The open approvals of a session and its descendants; of all sessions for `None`.
    async fn open_below(&self, session: Option<SessionId>) -> Result<Vec<ApprovalRow>, Error> {
        let Some(session) = session else {
            return self.store.open_approvals(OpenFilter::All).await.map_err(store_error);
        };
        let below = access::descendants(&*self.store, session).await?;
        let mut open = Vec::new();
        for id in std::iter::once(session).chain(below.iter().map(|row| row.id)) {
            open.extend(self.store.open_approvals(OpenFilter::OfSession(id)).await.map_err(store_error)?);
        }
        Ok(open)
    }

    /// How these rules resolve an open approval; `None` if they do not.
    async fn outcome(&self, row: &ApprovalRow, policies: &Policies) -> Option<(ApprovalStatus, Decision)> {
        let approval = &row.approval;
        // Rules match tool calls. Only an approver who has a budget can grant some of it.
        if approval.kind == ApprovalKind::Budget {
            return None;
        }
        let session = self.store.session(approval.session_id).await.ok().flatten()?;
        let ruling = self
            .ruling_by(policies, session, &approval.tool_name, &approval.input, &approval.cwd)
            .await
            .ok()?;
        let status = match ruling.decision {
            GateDecision::Allow if !approval.beyond_rules => ApprovalStatus::Allowed,
            GateDecision::Deny => ApprovalStatus::Denied,
            GateDecision::Allow | GateDecision::Ask | GateDecision::NoOpinion => return None,
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
        // The named policies already applied at the gate, and the approval was created all the same. Only a numbered
        // rule can resolve it.
        decision.rule.is_some().then_some((status, decision))
    }
}
