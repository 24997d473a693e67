//! `loopback.escalate`: passes a question on to the next above that may decide it.

use std::sync::Arc;

use plexus_protocol::loopback::{EscalateParams, EscalateResult};
use plexus_protocol::{AskedOf, Decider, Error, ErrorKind, Principal};
use plexus_store::{Change, Refusal, StoreError};

use crate::Hub;
use crate::access::{Admitted, Needs};
use crate::hub::store_error;
use crate::method::{Audience, Method};

/// How long an opinion may be.
const MAX_OPINION: usize = 8 * 1024;

pub(super) fn method() -> Method {
    Method::new(
        "loopback.escalate",
        "Passes an approval on to the next above you that may decide it, with your opinion.",
        Audience::Agents,
        Needs::Decide,
        escalate,
    )
}

async fn escalate(hub: Arc<Hub>, caller: Admitted, params: EscalateParams) -> Result<EscalateResult, Error> {
    let (row, _) = hub.find_approval(&caller, params.approval_id).await?;
    if params.opinion.as_ref().is_some_and(|opinion| opinion.len() > MAX_OPINION) {
        return Err(Error::invalid("opinion", format!("is longer than {MAX_OPINION} bytes")));
    }
    let Principal::Session { id: me, .. } = caller.principal else {
        return Err(Error::new(ErrorKind::Forbidden, "there is nobody above you to pass it on to"));
    };
    let asking = hub.store().session(row.approval.session_id).await.map_err(store_error)?;
    let asking = asking.ok_or_else(|| Error::new(ErrorKind::SessionNotFound, "the session is not there"))?;
    let lineage = hub.known_lineage(asking).await.map_err(store_error)?;
    let approval = &row.approval;
    let call = hub.call_of(&lineage, &approval.tool_name, &approval.input, &approval.cwd);
    let to = lineage.asked_of(me, &call);
    let above_me = lineage.sessions().iter().take_while(|session| session.id != me);
    let already_above = match &row.approval.asked_of {
        AskedOf::Session { id } => above_me.into_iter().any(|session| session.id == *id),
        AskedOf::Operator | AskedOf::Parent { .. } => true,
    };
    if already_above {
        // Somebody further up is asked already; there is nothing to pass on.
        return Ok(EscalateResult::Ok { approval_id: row.approval.id, asked_of: row.approval.asked_of });
    }
    let change = Change::PassOn {
        approval: row.approval.id,
        to: to.clone(),
        by: Decider::from(&caller.principal),
        opinion: params.opinion,
    };
    match hub.commit(vec![change]).await {
        Ok(_) => Ok(EscalateResult::Ok { approval_id: row.approval.id, asked_of: to }),
        Err(StoreError::Refused(Refusal::AlreadyResolved(row))) => {
            Ok(EscalateResult::AlreadyResolved { approval_id: row.approval.id, status: row.approval.status })
        }
        Err(error) => Err(store_error(error)),
    }
}
