//! `claudecode.set_permission_mode`: sets what the agent may do without an approval from now on.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{DoneResult, PermissionMode, SetPermissionModeParams};
use plexus_store::SessionRow;
use serde_json::json;

use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::policy::inheritance::check_mode_by;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.set_permission_mode",
        "Changes the permission mode of a session, also during a turn.",
        Audience::Programs,
        Needs::Act,
        set_permission_mode,
    )
    .repeatable()
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn set_permission_mode(
    hub: Arc<Hub>,
    caller: Admitted,
    params: SetPermissionModeParams,
) -> Result<DoneResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    check_mode_by(hub.store(), &caller, params.mode, "mode").await?;
    apply_mode(&hub, &caller, &session, params.mode).await?;
    Ok(DoneResult::Ok { session_id: session.id })
}

/// Sets the mode of the session, with an audit entry. `check_mode_by` has checked that the caller may set it.
pub(super) async fn apply_mode(
    hub: &Hub,
    caller: &Admitted,
    session: &SessionRow,
    mode: PermissionMode,
) -> Result<(), Error> {
    session_audit::record(hub.commits(), caller, "set_permission_mode", session, json!({"mode": mode}))
        .await?;
    hub.session(session.id).set_mode(mode).await
}
