//! Approvals that escalate by themselves. One task sleeps until the next deadline. A deadline that passed while no hub ran
//! takes effect when the next one starts.

use std::convert::Infallible;

use plexus_protocol::{ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decider, WentOn};
use plexus_store::{ApprovalRow, Refusal, Store, StoreError};
use serde_json::Value;

use super::Escalation;
use crate::Settings;
use crate::book::Book;
use crate::clock::now;
use crate::kill_point::kill_point;
use crate::lineage::{JudgedCall, Lineage, lineage_of};

impl Escalation {
    /// Escalates approvals at their deadlines, for as long as it is polled.
    pub(crate) async fn run(&self, store: &dyn Store, book: &Book, settings: &Settings) -> Infallible {
        loop {
            let approval = self.deadlines.due().await;
            // A commit sets the next deadline. Without one the approval is resolved, or its deadline has changed.
            if let Some(still) = book.held(|| self.escalate(store, book, settings, approval)).await {
                self.deadlines.set(approval, still.approval.passes_on_at);
            } else {
                self.deadlines.set(approval, None);
            }
        }
    }

    /// Escalates an approval that was not answered in time; returns it if it is still open.
    async fn escalate(
        &self,
        store: &dyn Store,
        book: &Book,
        settings: &Settings,
        id: ApprovalId,
    ) -> Result<Option<ApprovalRow>, StoreError> {
        let Some(mut row) = open_approval(store, id).await? else { return Ok(None) };
        let lineage = lineage_of(store, &row).await?;
        if is_new_budget(&row) && row.approval.passes_on_at.is_some() {
            // The store asks for more, and knows neither who is there nor how long they have.
            row.approval.passes_on_at = Some(row.approval.created_at + self.patience(&lineage));
        }
        let why = match row.approval.passes_on_at {
            Some(at) if at <= now() => WentOn::Unanswered,
            Some(_) if is_new_budget(&row) && !self.can_be_reached(&lineage, &row.approval.asked_of) => {
                WentOn::Absent
            }
            _ => return Ok(Some(row)),
        };
        let deciders = deciders_above(settings, &lineage, &row, &row.approval.asked_of);
        let change = self.route(&lineage, deciders, now()).from(&row, why, Decider::Hub, None);
        kill_point("way up", "due");
        match book.commit(vec![change]).await {
            Ok(_) => kill_point("way up", "gone on"),
            Err(StoreError::Refused(Refusal::AlreadyResolved(_) | Refusal::AskedOfAnother(_))) => {}
            Err(error) => return Err(error),
        }
        open_approval(store, id).await
    }
}

async fn open_approval(store: &dyn Store, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError> {
    let row = store.approval(id).await?;
    Ok(row.filter(|row| row.approval.status == ApprovalStatus::Pending))
}

/// The deciders above `asked_of`, nearest first.
pub(crate) fn deciders_above(
    settings: &Settings,
    lineage: &Lineage,
    row: &ApprovalRow,
    asked_of: &AskedOf,
) -> Vec<AskedOf> {
    let AskedOf::Session { id } = asked_of else { return vec![AskedOf::Operator] };
    let approval = &row.approval;
    if approval.kind == ApprovalKind::Budget {
        // A decider can grant what it has left, whatever its scope.
        return lineage.deciders(*id, |session| session.config.hub_tools);
    }
    let input = Value::Object(approval.input.clone());
    let home = lineage.home(settings);
    let call = JudgedCall::new(&approval.tool_name, input, (&approval.cwd).into(), home);
    lineage.deciders(*id, |session| lineage.may_allow(session.id, &call))
}

/// Whether this asks for more, and nobody has looked yet whether the one who is asked is there.
pub(super) fn is_new_budget(row: &ApprovalRow) -> bool {
    row.approval.kind == ApprovalKind::Budget && row.approval.passed.is_empty()
}
