//! `loopback.extend`: extends or shortens the deadline of an approval.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::loopback::{ExtendParams, ExtendResult};
use plexus_store::{Change, Refusal, StoreError};
use serde_json::json;

use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use plexus_book::now;

pub(super) fn method() -> Method {
    Method::new(
        "loopback.extend",
        "Changes when an approval expires.",
        Audience::Programs,
        Needs::Decide,
        extend,
    )
    .on_host_of(Subject::Approval, IfUnreachable::Fail)
}

async fn extend(hub: Arc<Hub>, caller: Admitted, params: ExtendParams) -> Result<ExtendResult, Error> {
    if params.secs == 0 {
        return Err(Error::invalid("secs", "must be at least 1; to resolve the approval now, deny it"));
    }
    let (row, _) = access::find_approval(hub.store(), &caller, params.approval_id).await?;
    let (approval, expires_at) = (row.approval.id, now().saturating_add(params.secs));
    let asking = hub.store().session(row.approval.session_id).await.map_err(store_error)?;
    let detail = json!({"approval_id": approval, "expires_at": expires_at});
    let mut changes = vec![Change::Extend { approval, expires_at }];
    changes.extend(asking.map(|asking| session_audit::change(&caller, "extended", &asking, detail)));
    match hub.commit(changes).await {
        Ok(_) => Ok(ExtendResult::Ok { approval_id: approval, expires_at }),
        Err(StoreError::Refused(Refusal::AlreadyResolved(row))) => {
            Ok(ExtendResult::AlreadyResolved { approval_id: approval, status: row.approval.status })
        }
        Err(error) => Err(store_error(error)),
    }
}
