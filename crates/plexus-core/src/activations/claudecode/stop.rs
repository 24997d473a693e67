//! `claudecode.stop`: ends all processes of a session and its descendants. The next prompt resumes the session.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use plexus_protocol::claudecode::{DoneResult, SessionParams};
use plexus_protocol::{AskedOf, Error, ErrorKind, HostName, Principal, SessionId};
use plexus_store::SessionRow;
use serde_json::json;
use tokio::time::timeout;

use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::{Method, end_processes_of};
use crate::method::Audience;
use crate::session::{Known, SessionHandle};

const METHOD: &str = "claudecode.stop";
const WHY: &str = "the session was stopped";
/// How long the store may take to find a session. A stop does not wait longer for a database that does not answer.
const STORE_ANSWERS_WITHIN: Duration = Duration::from_secs(5);

pub(super) fn method() -> Method {
    Method::new(
        METHOD,
        "Stops the processes of a session and all below it; the next prompt resumes the session.",
        Audience::Agents,
        Needs::Act,
        stop,
    )
    .repeatable()
}

async fn stop(hub: Arc<Hub>, caller: Admitted, params: SessionParams) -> Result<DoneResult, Error> {
    let found = access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref());
    let session = match timeout(STORE_ANSWERS_WITHIN, found).await {
        Ok(Ok(session)) => session,
        Ok(Err(error)) if error.kind != ErrorKind::StoreUnavailable => return Err(error),
        Ok(Err(_)) | Err(_) => return stop_without_store(&hub, &caller, &params).await,
    };
    if let Some(host) = session.host.as_ref().filter(|host| !hub.is_own(Some(host))) {
        match hub.call_on(host, &caller, METHOD, json!({"session_id": session.id})).await {
            // The sessions below it may be on other hosts.
            Err(error) if error.kind == ErrorKind::HostUnreachable => {
                let lost = hub.lost_hosts().await?;
                stop_descendants(&hub, &caller, &session, &lost, WHY).await?;
                if !lost.contains(host) {
                    return Err(error);
                }
            }
            stopped => drop(stopped?),
        }
        return Ok(DoneResult::Ok { session_id: session.id });
    }
    // Stopping an agent must also work on a full disk, so a missing audit entry does not prevent it.
    if let Err(error) = session_audit::record(hub.commits(), &caller, "stopped", &session, json!({})).await {
        tracing::error!(session = %session.id, %error, "a session was stopped, but the audit log has no \
            entry for it");
    }
    stop_tree(&hub, &caller, &session, WHY).await?;
    Ok(DoneResult::Ok { session_id: session.id })
}

/// Ends the processes of a session and of those below it on this host, as far as the hub knows them without the store. Their owners store it when the
/// store is available again. Whether another caller may do this is unknown without the store.
async fn stop_without_store(
    hub: &Arc<Hub>,
    caller: &Admitted,
    params: &SessionParams,
) -> Result<DoneResult, Error> {
    if caller.principal != Principal::Operator {
        return Err(Error::new(
            ErrorKind::StoreUnavailable,
            "the store is unavailable, so only the operator can stop sessions; try again later",
        ));
    }
    let owners = hub.owners();
    let top = known_session(&owners, params)?;
    let mut stopping = vec![top];
    let mut next = 0;
    while let Some(parent) = stopping.get(next).copied() {
        let is_below = |known: Known| known.answers_to == AskedOf::Session { id: parent };
        let below = owners.iter().filter(|(_, owner)| owner.known().is_some_and(is_below)).map(|(id, _)| *id);
        stopping.extend(below.filter(|id| !stopping.contains(id)).collect::<Vec<_>>());
        next += 1;
    }
    tracing::warn!(session = %top, sessions = stopping.len(), "stopping sessions while the store is unavailable");
    stopping.iter().filter_map(|id| owners.get(id)).for_each(|owner| owner.stop_soon(WHY));
    join_all(stopping.iter().map(|id| end_processes_of(*id))).await;
    Ok(DoneResult::Ok { session_id: top })
}

/// The session that the parameters name, among those that have an owner in this hub. A name without a path is that of a session of the operator: one
/// below another session may have the same name.
fn known_session(
    owners: &HashMap<SessionId, SessionHandle>,
    params: &SessionParams,
) -> Result<SessionId, Error> {
    let is_named = |id: &SessionId, known: &Known| match (params.session_id, &params.name) {
        (Some(wanted), _) => *id == wanted,
        (None, Some(name)) => known.answers_to == AskedOf::Operator && known.name.as_str() == name,
        (None, None) => false,
    };
    let open = || owners.iter().filter(|(_, owner)| !owner.is_closed());
    let known = || open().filter_map(|(id, owner)| owner.known().map(|known| (id, known)));
    if let Some((id, _)) = known().find(|(id, known)| is_named(id, known)) {
        return Ok(*id);
    }
    let mut names: Vec<String> = known().map(|(id, known)| format!("`{}` ({id})", known.name)).collect();
    names.sort_unstable();
    let message = format!(
        "the store is unavailable, so sessions of this host can be stopped only by id, and those of the operator by name: {}",
        names.join(", ")
    );
    Err(Error::new(ErrorKind::StoreUnavailable, message))
}

/// Stops the session first, so that it creates no more children, then its descendants. Returns the descendants.
pub(super) async fn stop_tree(
    hub: &Arc<Hub>,
    caller: &Admitted,
    session: &SessionRow,
    why: &str,
) -> Result<Vec<SessionRow>, Error> {
    // Nothing of a lost host runs any more. If it is unknown which hosts are lost, the calls below fail.
    let lost = hub.lost_hosts().await.unwrap_or_default();
    if !session.host.as_ref().is_some_and(|host| lost.contains(host)) {
        hub.stop_here(session.id, why).await;
    }
    stop_descendants(hub, caller, session, &lost, why).await
}

/// Stops all sessions below a session, except those of lost hosts. Returns them. Each is tried, whether or not another one fails.
async fn stop_descendants(
    hub: &Arc<Hub>,
    caller: &Admitted,
    session: &SessionRow,
    lost: &BTreeSet<HostName>,
    why: &str,
) -> Result<Vec<SessionRow>, Error> {
    let below = access::descendants(hub.store(), session.id).await?;
    let may_run = |row: &&SessionRow| !row.host.as_ref().is_some_and(|host| lost.contains(host));
    let stopped = below.iter().filter(may_run).map(|child| stop_one(hub, caller, child, why));
    join_all(stopped).await.into_iter().collect::<Result<(), Error>>()?;
    Ok(below)
}

async fn stop_one(hub: &Arc<Hub>, caller: &Admitted, child: &SessionRow, why: &str) -> Result<(), Error> {
    match child.host.as_ref().filter(|host| !hub.is_own(Some(host))) {
        None => hub.stop_here(child.id, why).await,
        Some(host) => {
            hub.call_on(host, caller, METHOD, json!({"session_id": child.id})).await?;
        }
    }
    Ok(())
}
