//! `host.list`: the hosts, and whether their hubs are connected.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::NoParams;
use plexus_protocol::host::{HostState, HostView, ListResult};
use plexus_store::{HostRow, SessionWithState};

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "host.list",
        "Lists the hosts whose hubs share the store, and whether they are connected.",
        Audience::Programs,
        Needs::Rule,
        list,
    )
    .repeatable()
}

async fn list(hub: Arc<Hub>, _caller: Admitted, _params: NoParams) -> Result<ListResult, Error> {
    let Some(fleet) = hub.store().fleet() else { return Ok(ListResult::Ok { hosts: Vec::new() }) };
    let mut rows = fleet.hosts().await.map_err(store_error)?;
    rows.retain(|row| row.state != plexus_store::HostState::Removed);
    let sessions = hub.store().sessions_with_state().await.map_err(store_error)?;
    let mut hosts: Vec<HostView> = rows.into_iter().map(|row| view(row, fleet.host(), &sessions)).collect();
    if let Some(here) = hosts.iter_mut().find(|host| host.here) {
        here.lost_commits = fleet.has_lost_commits();
    }
    Ok(ListResult::Ok { hosts })
}

fn view(row: HostRow, own: &plexus_protocol::HostName, sessions: &[SessionWithState]) -> HostView {
    let sessions_of_host = sessions.iter().filter(|session| session.row.host.as_ref() == Some(&row.name));
    let (mut count, mut open, mut used) = (0, 0, 0);
    for session in sessions_of_host {
        count += 1;
        open += session.open.len() as u64;
        used += u64::from(session.takes_slot());
    }
    HostView {
        here: row.name == *own,
        state: match (row.state, row.silent_ms) {
            (state, _) if state.is_fenced() => HostState::Lost,
            (_, Some(_)) => HostState::Unreachable,
            (_, None) => HostState::Connected,
        },
        lost_commits: false,
        draining: row.state == plexus_store::HostState::Draining,
        silent_secs: row.silent_ms.map(|ms| ms / 1000),
        labels: row.capacity.labels.into_iter().collect(),
        slots: row.capacity.slots,
        used_slots: used,
        name: row.name,
        version: row.version,
        sessions: count,
        open_approvals: open,
    }
}
