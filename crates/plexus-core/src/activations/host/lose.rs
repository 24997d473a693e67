//! `host.lose`: declares a host lost, for a machine that does not come back. Its hub can no longer write, its approvals are withdrawn, and its turns
//! fail. If the machine does come back, its hub stops the agents that still run there.

use std::sync::Arc;

use plexus_protocol::host::{HostResult, LoseParams};
use plexus_protocol::{Decider, Error, HostName};
use plexus_store::{Change, HostState};

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "host.lose",
        "Declares a host lost: withdraws its approvals, fails its turns, and keeps its hub from writing.",
        Audience::Programs,
        Needs::Rule,
        lose,
    )
    .repeatable()
}

async fn lose(hub: Arc<Hub>, caller: Admitted, params: LoseParams) -> Result<HostResult, Error> {
    let LoseParams { host, force } = params;
    check_is_other(&hub, &host)?;
    if !force {
        check_is_silent(&hub, &host).await?;
    }
    if let Some(fleet) = hub.store().fleet() {
        // First: a transaction of its role may hold the lock that the commit needs.
        fleet.roles().stop(&host).await.map_err(store_error)?;
    }
    let by = Decider::from(&caller.principal);
    let change = Change::SetHostState { host: host.clone(), state: HostState::Lost, by };
    hub.commit(vec![change]).await.map_err(store_error)?;
    Ok(HostResult::Ok { host })
}

/// A hub cannot declare its own host lost.
pub(super) fn check_is_other(hub: &Hub, host: &HostName) -> Result<(), Error> {
    if hub.is_own(Some(host)) {
        let message = format!("`{host}` is the host of this hub; run the command on the hub of another host");
        return Err(Error::invalid("host", message));
    }
    Ok(())
}

/// A connected host may have agents at work, which would be stopped.
async fn check_is_silent(hub: &Hub, host: &HostName) -> Result<(), Error> {
    let Some(fleet) = hub.store().fleet() else { return Ok(()) };
    let hosts = fleet.hosts().await.map_err(store_error)?;
    match hosts.iter().find(|row| row.name == *host) {
        Some(row) if row.silent_ms.is_none() && row.state != HostState::Lost => Err(Error::invalid(
            "host",
            format!(
                "`{host}` is connected, and its agents would be stopped; to do that anyway, pass `force: true` (`plexus host lost --force`)"
            ),
        )),
        _ => Ok(()),
    }
}
