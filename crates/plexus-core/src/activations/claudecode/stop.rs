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
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.stop",
        "Stops the processes of a session and all below it; the next prompt resumes the session.",
        Audience::Agents,
        Needs::Act,
        stop,
    )
    .repeatable()
}

async fn stop(hub: Arc<Hub>, caller: Admitted, params: SessionParams) -> Result<DoneResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    // Stopping an agent must also work on a full disk, so a missing audit entry does not prevent it.
    if let Err(error) = session_audit::record(hub.commits(), &caller, "stopped", &session, json!({})).await {
        tracing::error!(session = %session.id, %error, "a session was stopped, but the audit log has no \
            entry for it");
    }
    stop_tree(&hub, &session, "the session was stopped").await?;
    Ok(DoneResult::Ok { session_id: session.id })
}

/// Stops the session first, so that it creates no more children, then its descendants. Returns the descendants.
pub(super) async fn stop_tree(
    hub: &Arc<Hub>,
    session: &SessionRow,
    why: &str,
) -> Result<Vec<SessionRow>, Error> {
    hub.session(session.id).stop(why).await;
    let below = access::descendants(hub.store(), session.id).await?;
    futures::future::join_all(below.iter().map(|child| {
        let handle = hub.session(child.id);
        async move { handle.stop(why).await }
    }))
    .await;
    Ok(below)
}
