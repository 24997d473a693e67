//! `claudecode.delete`: stops a session and all below it, frees the name and keeps the record.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{DoneResult, SessionParams};
use plexus_store::Change;

use super::stop::stop_tree;
use crate::Hub;
use crate::hub::store_error;
use crate::method::{Audience, Caller, Method};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.delete",
        "Stops a session and those below it, frees their names and keeps the record.",
        Audience::Programs,
        delete,
    )
}

async fn delete(hub: Arc<Hub>, caller: Caller, params: SessionParams) -> Result<DoneResult, Error> {
    let session = hub.find_session(&caller.principal, params.session_id, params.name.as_deref()).await?;
    let below = stop_tree(&hub, &session, "the session was deleted").await?;
    let mut changes: Vec<Change> = below.iter().map(|child| Change::DeleteSession(child.id)).collect();
    changes.push(Change::DeleteSession(session.id));
    hub.commit(changes).await.map_err(store_error)?;
    for gone in below.iter().map(|child| child.id).chain([session.id]) {
        hub.session(gone).retire();
    }
    Ok(DoneResult::Ok { session_id: session.id })
}
