//! `host.remove`: removes a host without sessions.

use std::sync::Arc;

use plexus_protocol::host::{HostParams, HostResult};
use plexus_protocol::{Decider, Error, HostName};
use plexus_store::{Admission, Change, HostState, Refusal, StoreError};

use super::logged;
use super::lose::check_is_other;
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "host.remove",
        "Removes a host that has no sessions, and its role. Another machine may use its name.",
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
    match hub.commit(vec![change]).await {
        // A host that was added and has never joined has only a role.
        Err(StoreError::Refused(Refusal::NoSuchHost(_))) if has_role(&hub, &host).await => {
            hub.commit(vec![logged(&host, "removed", &caller)]).await.map_err(store_error)?;
        }
        removed => drop(removed.map_err(store_error)?),
    }
    if let Some(fleet) = hub.store().fleet() {
        fleet.roles().remove(&host).await.map_err(store_error)?;
    }
    Ok(HostResult::Ok { host })
}

async fn has_role(hub: &Hub, host: &HostName) -> bool {
    match hub.store().fleet() {
        Some(fleet) => fleet.roles().check(host, Admission::Renewed).await.is_ok(),
        None => false,
    }
}
