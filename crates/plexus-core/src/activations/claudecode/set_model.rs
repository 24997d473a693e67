//! `claudecode.set_model`: sets the model that the agent uses from now on.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{DoneResult, SetModelParams};
use plexus_store::SessionRow;
use serde_json::json;

use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.set_model",
        "Changes the model of a session, also during a turn.",
        Audience::Programs,
        Needs::Act,
        set_model,
    )
    .repeatable()
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn set_model(hub: Arc<Hub>, caller: Admitted, params: SetModelParams) -> Result<DoneResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    apply_model(&hub, &caller, &session, params.model).await?;
    Ok(DoneResult::Ok { session_id: session.id })
}

/// Sets the model of the session, with an audit entry. `None` is Claude Code's own choice.
pub(super) async fn apply_model(
    hub: &Hub,
    caller: &Admitted,
    session: &SessionRow,
    model: Option<String>,
) -> Result<(), Error> {
    session_audit::record(hub.commits(), caller, "set_model", session, json!({"model": model})).await?;
    hub.session(session.id).set_model(model).await
}
