//! `host.undrain`: a drained host gets new sessions again.

use std::sync::Arc;

use plexus_protocol::host::{HostParams, HostResult};
use plexus_protocol::{Decider, Error};
use plexus_store::{Change, HostState};

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new("host.undrain", "Gives a host new sessions again.", Audience::Programs, Needs::Rule, undrain)
        .repeatable()
}

async fn undrain(hub: Arc<Hub>, caller: Admitted, params: HostParams) -> Result<HostResult, Error> {
    let (host, by) = (params.host, Decider::from(&caller.principal));
    let change = Change::SetHostState { host: host.clone(), state: HostState::Active, by };
    hub.commit(vec![change]).await.map_err(store_error)?;
    Ok(HostResult::Ok { host })
}
