//! Questions that go on by themselves. One task sleeps until the next is due; what became due while the hub was away
//! goes on when it is back.

use std::convert::Infallible;

use plexus_protocol::{ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decider, WentOn};
use plexus_store::{ApprovalRow, Refusal, StoreError};

use crate::Hub;
use crate::clock::now;
use crate::kill_point::kill_point;
use crate::lineage::Lineage;

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
        let Some(mut row) = self.open_approval(id).await? else { return Ok(None) };
        let lineage = self.lineage_of(&row).await?;
        if is_new_budget(&row) && row.approval.passes_on_at.is_some() {
            // The store asks for more, and knows neither who is there nor how long they have.
            row.approval.passes_on_at = Some(row.approval.created_at + self.way_up().patience(&lineage));
        }
        let why = match row.approval.passes_on_at {
            Some(at) if at <= now() => WentOn::Unanswered,
            Some(_)
                if is_new_budget(&row) && !self.way_up().can_be_reached(&lineage, &row.approval.asked_of) =>
            {
                WentOn::Absent
            }
            _ => return Ok(Some(row)),
        };
        let deciders = self.deciders_above(&lineage, &row, &row.approval.asked_of);
        let change = self.way_up().route(&lineage, deciders, now()).from(&row, why, Decider::Hub, None);
        kill_point("way up", "due");
        match self.commit(vec![change]).await {
            Ok(_) => kill_point("way up", "gone on"),
            Err(StoreError::Refused(Refusal::AlreadyResolved(_) | Refusal::AskedOfAnother(_))) => {}
            Err(error) => return Err(error),
        }
        self.open_approval(id).await
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

/// Whether this asks for more, and nobody has looked yet whether the one who is asked is there.
pub(super) fn is_new_budget(row: &ApprovalRow) -> bool {
    row.approval.kind == ApprovalKind::Budget && row.approval.passed.is_empty()
}
