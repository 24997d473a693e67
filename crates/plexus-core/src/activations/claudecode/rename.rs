//! `claudecode.rename`: renames a session.

use std::sync::Arc;

use plexus_protocol::claudecode::{DoneResult, RenameParams};
use plexus_protocol::{Error, SessionName};
use plexus_store::{Change, SessionRow};
use serde_json::json;

use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new("claudecode.rename", "Renames a session.", Audience::Programs, Needs::Act, rename)
}

async fn rename(hub: Arc<Hub>, caller: Admitted, params: RenameParams) -> Result<DoneResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    apply_name(&hub, &caller, &session, params.new_name).await?;
    Ok(DoneResult::Ok { session_id: session.id })
}

/// Gives the session this name, with an audit entry.
pub(super) async fn apply_name(
    hub: &Hub,
    caller: &Admitted,
    session: &SessionRow,
    name: SessionName,
) -> Result<(), Error> {
    let record = session_audit::change(caller, "renamed", session, json!({"to": name}));
    hub.commit(vec![Change::RenameSession(session.id, name.clone()), record]).await.map_err(store_error)?;
    hub.renamed(session.id, name);
    Ok(())
}
