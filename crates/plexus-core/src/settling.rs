//! What rules settle: the open approvals that they bring to their end when they are made, and those that one would bring
//! to their end if it were. One function says so for both; making rules is for `rules`.

use plexus_protocol::policy::{AnswerEffect, Remember};
use plexus_protocol::{
    ApprovalId, ApprovalKind, ApprovalStatus, Decider, Decision, Error, ErrorKind, Right, SessionId,
};
use plexus_store::{ApprovalRow, Open, RuleRow};

use crate::Hub;
use crate::access::Admitted;
use crate::book::Resolved;
use crate::clock::now;
use crate::gate::Say;
use crate::hub::store_error;
use crate::policies::{self, Policies};

/// What a rule would do if it were made with an answer.
pub(crate) struct Preview {
    /// As it would be kept.
    pub(crate) rule: String,
    /// Whether it means the call that is asked about.
    pub(crate) covers: bool,
    /// Which other open approvals it would bring to their end.
    pub(crate) settles: Vec<ApprovalId>,
}

impl Hub {
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
            if let Some((status, decision)) = self.settles(&row, self.policies()).await
                && let Ok(Resolved::Now(_)) =
                    self.book().resolve(row.approval.id, status, decision, Vec::new()).await
            {
                settled.push(row.approval.id);
            }
        }
        settled
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
        let view = policies::view(&supposed)
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the rule cannot be read again"))?;
        let policies = self.policies().supposing(supposed);
        let wanted = match effect {
            AnswerEffect::Allow => ApprovalStatus::Allowed,
            AnswerEffect::Deny => ApprovalStatus::Denied,
        };
        let covers = self.settles(row, &policies).await.is_some_and(|(status, _)| status == wanted);
        let mut settles = Vec::new();
        for other in self.open_below(session).await? {
            if other.approval.id != row.approval.id && self.settles(&other, &policies).await.is_some() {
                settles.push(other.approval.id);
            }
        }
        Ok(Preview { rule: view.rule, covers, settles })
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

    /// How these rules bring an open approval to its end, if they do.
    async fn settles(&self, row: &ApprovalRow, policies: &Policies) -> Option<(ApprovalStatus, Decision)> {
        let approval = &row.approval;
        // Rules are about calls; what may be used is given by someone who has it.
        if approval.kind == ApprovalKind::Budget {
            return None;
        }
        let session = self.store().session(approval.session_id).await.ok().flatten()?;
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
