//! `host.remove`: removes a host without sessions.

use std::sync::Arc;

use plexus_protocol::host::{HostParams, HostResult};
use plexus_protocol::{Decider, Error};
use plexus_store::{Change, HostState};

use super::lose::check_is_other;
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "host.remove",
        "Removes a host that has no sessions. Another machine may use its name.",
        Audience::Programs,
        Needs::Rule,
        remove,
    )
    .repeatable()
}

async fn remove(hub: Arc<Hub>, caller: Admitted, params: HostParams) -> Result<HostResult, Error> {
    check_is_other(&hub, &params.host)?;
    let (host, by) = (params.host, Decider::from(&caller.principal));
    let change = Change::SetHostState { host: host.clone(), state: HostState::Removed, by };
    hub.commit(vec![change]).await.map_err(store_error)?;
    Ok(HostResult::Ok { host })
}
