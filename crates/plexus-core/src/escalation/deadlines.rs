//! Approvals that escalate by themselves. One task sleeps until the next deadline. A deadline that passed while no hub ran
//! takes effect when the next one starts.

use std::convert::Infallible;

use plexus_protocol::{ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decider, EscalationReason};
use plexus_store::{ApprovalRow, Change, Refusal, Store, StoreError};

use super::Escalation;
use super::route::deciders_above;
use crate::Settings;
use crate::lineage::{Lineage, lineage_of};
use plexus_book::Commits;
use plexus_book::kill_point;
use plexus_book::now;

/// How long a budget approval waits for an answer, if its session has no `approval_timeout_secs`.
const BUDGET_TIMEOUT_SECS: u64 = 300;

/// After how long an approval is tried again that the store cannot read or change.
const POSTPONED_SECS: u64 = 60;

impl Escalation {
    /// How many seconds a decider has before an approval escalates: the setting of the nearest session that has one, else the hub's.
    pub(super) fn escalate_after(&self, lineage: &Lineage) -> u64 {
        let given = lineage.sessions().iter().rev().find_map(|session| session.config.escalate_after_secs);
        given.unwrap_or(self.escalate_after_secs)
    }

    /// Escalates approvals at their deadlines, for as long as it is polled.
    pub(crate) async fn run(&self, store: &dyn Store, commits: &Commits, settings: &Settings) -> Infallible {
        loop {
            let approval = self.deadlines.due().await;
            // A commit sets the next deadline. Without one the approval is resolved, or its deadline has changed.
            let next = commits.retry(|| async {
                match self.escalate(store, commits, settings, approval).await {
                    // One that cannot be read must not delay the others.
                    Err(StoreError::Unusable(why)) => {
                        tracing::error!(%approval, why, "an approval cannot be escalated; trying again later");
                        Ok(Some(now() + POSTPONED_SECS))
                    }
                    still => still.map(|still| still.and_then(|still| still.approval.passes_on_at)),
                }
            });
            self.deadlines.set(approval, next.await);
        }
    }

    /// Escalates an approval that was not answered in time; returns it if it is still open.
    async fn escalate(
        &self,
        store: &dyn Store,
        commits: &Commits,
        settings: &Settings,
        id: ApprovalId,
    ) -> Result<Option<ApprovalRow>, StoreError> {
        let Some(row) = open_approval(store, id).await? else { return Ok(None) };
        let lineage = lineage_of(store, &row).await?;
        let escalate = |why| {
            let deciders = deciders_above(settings, &lineage, &row, &row.approval.asked_of);
            self.route(&lineage, deciders, now()).from(&row, why, Decider::Hub, None)
        };
        let changes = if has_no_deadline(&row) {
            let mut changes = vec![self.first_deadlines(&lineage, &row)];
            let asked_of = &row.approval.asked_of;
            if *asked_of != AskedOf::Operator && !self.is_reachable(&lineage, asked_of) {
                changes.push(escalate(EscalationReason::Absent));
            }
            changes
        } else if row.approval.passes_on_at.is_some_and(|at| at <= now()) {
            vec![escalate(EscalationReason::Unanswered)]
        } else {
            return Ok(Some(row));
        };
        kill_point("escalation", "due");
        match commits.commit(changes).await {
            Ok(_) => kill_point("escalation", "committed"),
            Err(StoreError::Refused(Refusal::AlreadyResolved(_) | Refusal::AskedOfAnother(_))) => {}
            Err(error) => return Err(error),
        }
        open_approval(store, id).await
    }

    /// The deadlines of a budget approval. The operator is the last addressee: nothing is escalated from there.
    fn first_deadlines(&self, lineage: &Lineage, row: &ApprovalRow) -> Change {
        let approval = &row.approval;
        let owner = lineage.sessions().iter().find(|session| session.id == approval.session_id);
        let timeout = owner.and_then(|session| session.config.approval_timeout_secs);
        let escalates = approval.asked_of != AskedOf::Operator;
        Change::SetDeadlines {
            approval: approval.id,
            asked_of: approval.asked_of.clone(),
            expires_at: approval.created_at + timeout.unwrap_or(BUDGET_TIMEOUT_SECS),
            escalates_at: escalates.then(|| approval.created_at + self.escalate_after(lineage)),
        }
    }
}

async fn open_approval(store: &dyn Store, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError> {
    let row = store.approval(id).await?;
    Ok(row.filter(|row| row.approval.status == ApprovalStatus::Pending))
}

/// Whether the store created this budget approval and the hub has not routed it yet. The store sets no deadlines; the hub
/// gives every budget approval one.
pub(super) fn has_no_deadline(row: &ApprovalRow) -> bool {
    row.approval.kind == ApprovalKind::Budget && row.approval.expires_at.is_none()
}
