//! `claudecode.interrupt`: ends the running turn and keeps the session and its process.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{DoneResult, SessionParams};

use crate::Hub;
use crate::access::{Admitted, Needs};
use crate::method::{Audience, Method};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.interrupt",
        "Ends the running turn of a session and keeps its process for the next prompt.",
        Audience::Agents,
        Needs::Act,
        interrupt,
    )
    .repeatable()
}

async fn interrupt(hub: Arc<Hub>, caller: Admitted, params: SessionParams) -> Result<DoneResult, Error> {
    let session = hub.find_session(&caller, params.session_id, params.name.as_deref()).await?;
    hub.session(session.id).interrupt().await;
    Ok(DoneResult::Ok { session_id: session.id })
}
