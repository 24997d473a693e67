//! `loopback.pending`: the open approvals that the caller may decide.

use std::sync::Arc;

use plexus_protocol::loopback::{PendingParams, PendingResult};
use plexus_protocol::{Error, MAX_TEXT_BYTES};
use plexus_store::OpenFilter;

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::callers::names::Paths;
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;
use crate::view;

pub(super) fn method() -> Method {
    Method::new(
        "loopback.pending",
        "Lists the open approvals that you may answer.",
        Audience::Agents,
        Needs::Watch,
        pending,
    )
    .repeatable()
}

async fn pending(hub: Arc<Hub>, caller: Admitted, params: PendingParams) -> Result<PendingResult, Error> {
    let which = if params.session_id.is_some() || params.name.is_some() {
        let session =
            access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
        OpenFilter::OfSession(session.id)
    } else {
        OpenFilter::All
    };
    let open = hub.store().open_approvals(which).await.map_err(store_error)?;
    let open = access::decidable(hub.store(), &caller, open).await?;
    let paths = Paths::of(hub.store(), &caller.principal);
    let approvals =
        view::approvals(open, paths, MAX_TEXT_BYTES, caller.reader()).await.map_err(store_error)?;
    Ok(PendingResult::Ok { approvals })
}
