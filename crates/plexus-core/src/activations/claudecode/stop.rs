//! `claudecode.stop`: ends all processes of a session and its descendants. The next prompt resumes the session.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{DoneResult, SessionParams};
use plexus_store::SessionRow;
use serde_json::json;

use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.stop",
        "Stops the processes of a session and all below it; the next prompt resumes the session.",
        Audience::Agents,
        Needs::Act,
        stop,
    )
    .repeatable()
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn stop(hub: Arc<Hub>, caller: Admitted, params: SessionParams) -> Result<DoneResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    // Stopping an agent must also work on a full disk, so a missing audit entry does not prevent it.
    if let Err(error) = session_audit::record(hub.commits(), &caller, "stopped", &session, json!({})).await {
        tracing::error!(session = %session.id, %error, "a session was stopped, but the audit log has no \
            entry for it");
    }
    stop_tree(&hub, &caller, &session, "the session was stopped").await?;
    Ok(DoneResult::Ok { session_id: session.id })
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
    let may_run = |row: &&SessionRow| !row.host.as_ref().is_some_and(|host| lost.contains(host));
    if may_run(&session) {
        hub.session(session.id).stop(why).await;
    }
    let below = access::descendants(hub.store(), session.id).await?;
    let stopped = below.iter().filter(may_run).map(|child| stop_below(hub, caller, child, why));
    let stopped = futures::future::join_all(stopped).await;
    stopped.into_iter().collect::<Result<(), Error>>()?;
    Ok(below)
}

async fn stop_below(hub: &Arc<Hub>, caller: &Admitted, child: &SessionRow, why: &str) -> Result<(), Error> {
    match child.host.as_ref().filter(|host| !hub.is_own(Some(host))) {
        None => hub.session(child.id).stop(why).await,
        Some(host) => {
            hub.call_on(host, caller, "claudecode.stop", json!({"session_id": child.id})).await?;
        }
    }
    Ok(())
}
