//! The open approvals that rules resolve: those that match a new rule, and those that would match a rule if it were created.
//! One function decides both. Creating rules is in `create`.

use plexus_protocol::policy::{AnswerEffect, Remember};
use plexus_protocol::{
    ApprovalId, ApprovalKind, ApprovalStatus, Decider, Decision, Error, ErrorKind, Right, SessionId,
};
use plexus_store::{ApprovalRow, Open, RuleRow};

use super::Policy;
use super::gate::Say;
use super::in_force::{Policies, view};
use crate::access::{self, Admitted};
use crate::errors::store_error;
use plexus_book::now;
use plexus_book::{Book, Resolved};

/// What a rule would do if it were created with an answer.
pub(crate) struct Preview {
    /// The rule as it would be stored.
    pub(crate) rule: String,
    /// Whether it matches the call that is asked about.
    pub(crate) covers: bool,
    /// The other open approvals that it would resolve.
    pub(crate) settles: Vec<ApprovalId>,
}

impl Policy {
    /// Resolves the open approvals that the rules in force allow or deny: after rules were created for `session` and all
    /// its descendants, or for all sessions, and when a hub starts, because the last one may have been killed in between.
    pub(crate) async fn resolve_matching(&self, book: &Book, session: Option<SessionId>) -> Vec<ApprovalId> {
        let open = match self.open_below(session).await {
            Ok(open) => open,
            Err(error) => {
                tracing::warn!(%error, "the approvals that a new rule matches could not be read; they stay open");
                return Vec::new();
            }
        };
        let mut resolved = Vec::new();
        for row in open {
            if let Some((status, decision)) = self.outcome(&row, &self.in_force).await
                && let Ok(Resolved::Now(_)) =
                    book.resolve(row.approval.id, status, decision, Vec::new()).await
            {
                resolved.push(row.approval.id);
            }
        }
        resolved
    }

    /// What a rule would do to open approvals if it were made with the answer to `row`, and what it would be kept as.
    /// It goes the way that an answer goes, up to where something would be written.
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
        let supposed = RuleRow { number: u64::MAX, rule, created_at: now() };
        let view = view(&supposed)
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the rule cannot be read again"))?;
        let policies = self.in_force.supposing(supposed);
        let wanted = match effect {
            AnswerEffect::Allow => ApprovalStatus::Allowed,
            AnswerEffect::Deny => ApprovalStatus::Denied,
        };
        let covers = self.outcome(row, &policies).await.is_some_and(|(status, _)| status == wanted);
        let mut settles = Vec::new();
        for other in self.open_below(session).await? {
            if other.approval.id != row.approval.id && self.outcome(&other, &policies).await.is_some() {
                settles.push(other.approval.id);
            }
        }
        Ok(Preview { rule: view.rule, covers, settles })
    }

    /// The open approvals of a session and all below it; of all sessions for `None`.
    async fn open_below(&self, session: Option<SessionId>) -> Result<Vec<ApprovalRow>, Error> {
        let Some(session) = session else {
            return self.store.open_approvals(Open::All).await.map_err(store_error);
        };
        let below = access::descendants(&*self.store, session).await?;
        let mut open = Vec::new();
        for id in std::iter::once(session).chain(below.iter().map(|row| row.id)) {
            open.extend(self.store.open_approvals(Open::OfSession(id)).await.map_err(store_error)?);
        }
        Ok(open)
    }

    /// How these rules bring an open approval to its end, if they do.
    async fn outcome(&self, row: &ApprovalRow, policies: &Policies) -> Option<(ApprovalStatus, Decision)> {
        let approval = &row.approval;
        // Rules are about calls; what may be used is given by someone who has it.
        if approval.kind == ApprovalKind::Budget {
            return None;
        }
        let session = self.store.session(approval.session_id).await.ok().flatten()?;
        let ruling = self
            .ruling_by(policies, session, &approval.tool_name, &approval.input, &approval.cwd)
            .await
            .ok()?;
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
