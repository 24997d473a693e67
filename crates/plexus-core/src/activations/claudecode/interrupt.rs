//! `claudecode.interrupt`: interrupts the running turns of a session and its descendants. Their processes continue.

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
        "claudecode.interrupt",
        "Interrupts the running turns of a session and all below it; their processes stay for the next \
         prompt.",
        Audience::Agents,
        Needs::Act,
        interrupt,
    )
    .repeatable()
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn interrupt(hub: Arc<Hub>, caller: Admitted, params: SessionParams) -> Result<DoneResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    // The interrupt proceeds even if the audit entry cannot be written.
    if let Err(error) =
        session_audit::record(hub.commits(), &caller, "interrupted", &session, json!({})).await
    {
        tracing::error!(session = %session.id, %error, "a session was interrupted, but the audit log has no \
            entry for it");
    }
    // The session comes first, so that it gives its descendants no more work.
    hub.session(session.id).interrupt().await;
    let below = access::descendants(hub.store(), session.id).await?;
    let interrupted =
        futures::future::join_all(below.iter().map(|child| interrupt_below(&hub, &caller, child))).await;
    interrupted.into_iter().collect::<Result<(), Error>>()?;
    Ok(DoneResult::Ok { session_id: session.id })
}

async fn interrupt_below(hub: &Arc<Hub>, caller: &Admitted, child: &SessionRow) -> Result<(), Error> {
    match child.host.as_ref().filter(|host| !hub.is_own(Some(host))) {
        None => hub.session(child.id).interrupt().await,
        Some(host) => {
            hub.call_on(host, caller, "claudecode.interrupt", json!({"session_id": child.id})).await?;
        }
    }
    Ok(())
}
