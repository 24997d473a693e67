//! `loopback.escalate`: escalates an approval to the next ancestor that may decide it.

use std::sync::Arc;

use plexus_protocol::loopback::{EscalateParams, EscalateResult};
use plexus_protocol::{ApprovalStatus, AskedOf, Decider, Error, ErrorKind, EscalationReason, Principal};
use plexus_store::{ApprovalRow, Refusal, StoreError};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::escalation::deciders_above;
use crate::hub::Method;
use crate::lineage::{Lineage, lineage_of};
use crate::method::{Audience, IfUnreachable, Subject};
use plexus_book::now;

/// The maximum length of an opinion, in bytes.
const MAX_OPINION: usize = 8 * 1024;

pub(super) fn method() -> Method {
    Method::new(
        "loopback.escalate",
        "Escalates an approval to the next session above that may decide it, with your opinion.",
        Audience::Agents,
        Needs::Decide,
        escalate,
    )
    .on_host_of(Subject::Approval, IfUnreachable::Fail)
}

async fn escalate(hub: Arc<Hub>, caller: Admitted, params: EscalateParams) -> Result<EscalateResult, Error> {
    let (mut row, _) = access::find_approval(hub.store(), &caller, params.approval_id).await?;
    if params.opinion.as_ref().is_some_and(|opinion| opinion.len() > MAX_OPINION) {
        return Err(Error::invalid("opinion", format!("must be at most {MAX_OPINION} bytes long")));
    }
    let from = passed_on_from(&caller, &row)?;
    loop {
        let approval_id = row.approval.id;
        if row.approval.status != ApprovalStatus::Pending {
            return Ok(EscalateResult::AlreadyResolved { approval_id, status: row.approval.status });
        }
        let lineage = lineage_of(hub.store(), &row).await.map_err(store_error)?;
        if is_above(&lineage, &row.approval.asked_of, &from) {
            // An ancestor of `from` already has the approval: nothing to escalate.
            return Ok(EscalateResult::Ok { approval_id, asked_of: row.approval.asked_of });
        }
        let route = hub.parts().escalation.route(
            &lineage,
            deciders_above(hub.settings(), &lineage, &row, &from),
            now(),
        );
        let asked_of = route.asked_of.clone();
        let by = Decider::from(&caller.principal);
        match hub
            .commit(vec![route.from(&row, EscalationReason::Escalated, by, params.opinion.clone())])
            .await
        {
            Ok(_) => return Ok(EscalateResult::Ok { approval_id, asked_of }),
            Err(StoreError::Refused(Refusal::AlreadyResolved(now) | Refusal::AskedOfAnother(now))) => {
                row = *now
            }
            Err(error) => return Err(store_error(error)),
        }
    }
}

/// The point above which the approval escalates. An agent escalates from itself. The operator, or a token that acts for
/// the operator, escalates from the principal that currently has the approval.
fn passed_on_from(caller: &Admitted, row: &ApprovalRow) -> Result<AskedOf, Error> {
    match (&caller.principal, &row.approval.asked_of) {
        (Principal::Operator | Principal::Token { .. }, AskedOf::Operator)
            if row.approval.status == ApprovalStatus::Pending =>
        {
            let message = "the operator already has this approval, so it cannot escalate further: answer it";
            Err(Error::new(ErrorKind::Forbidden, message))
        }
        (Principal::Operator | Principal::Token { .. }, asked_of) => Ok(asked_of.clone()),
        (principal, _) => Ok(principal.asked_as()),
    }
}

/// Whether `asked_of` is an ancestor of `from` in this lineage.
fn is_above(lineage: &Lineage, asked_of: &AskedOf, from: &AskedOf) -> bool {
    let AskedOf::Session { id: asked } = asked_of else { return asked_of != from };
    let mut downwards = lineage.sessions().iter().map(|session| session.id);
    downwards.any(|id| id == *asked) && downwards.any(|id| *from == AskedOf::Session { id })
}
