//! Questions that go on by themselves. One task sleeps until the next is due; what became due while the hub was away
//! goes on when it is back.

use std::convert::Infallible;

use plexus_protocol::{ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decider, WentOn};
use plexus_store::{ApprovalRow, Change, Refusal, StoreError};

use crate::Hub;
use crate::clock::now;
use crate::kill_point::kill_point;
use crate::lineage::Lineage;

/// How long a budget approval waits for an answer, if its session has no `approval_timeout_secs`.
const BUDGET_TIMEOUT_SECS: u64 = 300;

impl Hub {
    /// Passes questions on when their time has come, for as long as it is polled.
    pub(crate) async fn see_to_the_way_up(&self) -> Infallible {
        loop {
            let approval = self.way_up().going_on.due().await;
            // A commit sets its next time; where there was none, it has ended or its time is another one.
            if let Some(still) = self.book().held(|| self.go_on(approval)).await {
                self.way_up().going_on.set(approval, still.approval.passes_on_at);
            } else {
                self.way_up().going_on.set(approval, None);
            }
        }
    }

    /// Passes a question on that nobody answered in time; how it stands then, if it is open.
    async fn go_on(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError> {
        let Some(row) = self.open_approval(id).await? else { return Ok(None) };
        let lineage = self.lineage_of(&row).await?;
        let escalate = |why| {
            let deciders = self.deciders_above(&lineage, &row, &row.approval.asked_of);
            self.route(&lineage, deciders).from(&row, why, Decider::Hub, None)
        };
        let changes = if has_no_deadline(&row) {
            let mut changes = vec![self.first_deadlines(&lineage, &row)];
            let asked_of = &row.approval.asked_of;
            if *asked_of != AskedOf::Operator && !self.can_be_reached(&lineage, asked_of) {
                changes.push(escalate(WentOn::Absent));
            }
            changes
        } else if row.approval.passes_on_at.is_some_and(|at| at <= now()) {
            vec![escalate(WentOn::Unanswered)]
        } else {
            return Ok(Some(row));
        };
        kill_point("way up", "due");
        match self.commit(changes).await {
            Ok(_) => kill_point("way up", "gone on"),
            Err(StoreError::Refused(Refusal::AlreadyResolved(_) | Refusal::AskedOfAnother(_))) => {}
            Err(error) => return Err(error),
        }
        self.open_approval(id).await
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
            passes_on_at: escalates.then(|| approval.created_at + self.patience(lineage)),
        }
    }

    async fn open_approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError> {
        let row = self.store().approval(id).await?;
        Ok(row.filter(|row| row.approval.status == ApprovalStatus::Pending))
    }

    /// The lineage of the session that asks.
    pub(crate) async fn lineage_of(&self, row: &ApprovalRow) -> Result<Lineage, StoreError> {
        match self.store().session(row.approval.session_id).await? {
            Some(asking) => self.known_lineage(asking).await,
            None => Ok(Lineage::default()),
        }
    }

    /// Who may be asked after `asked_of`, the nearest to begin with.
    pub(crate) fn deciders_above(
        &self,
        lineage: &Lineage,
        row: &ApprovalRow,
        asked_of: &AskedOf,
    ) -> Vec<AskedOf> {
        let AskedOf::Session { id } = asked_of else { return vec![AskedOf::Operator] };
        let approval = &row.approval;
        if approval.kind == ApprovalKind::Budget {
            // What bounds whoever gives more is what it has left.
            return lineage.deciders(*id, |session| session.config.hub_tools);
        }
        let call = self.call_of(lineage, &approval.tool_name, &approval.input, &approval.cwd);
        lineage.deciders(*id, |session| lineage.may_allow(session.id, &call))
    }
}

/// Whether the store created this budget approval and the hub has not routed it yet. The store sets no deadlines; the hub
/// gives every budget approval one.
pub(super) fn has_no_deadline(row: &ApprovalRow) -> bool {
    row.approval.kind == ApprovalKind::Budget && row.approval.expires_at.is_none()
}
