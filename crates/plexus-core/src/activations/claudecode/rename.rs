//! `claudecode.rename`: renames a session.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{DoneResult, RenameParams};
use plexus_store::Change;
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
    let record = session_audit::change(&caller, "renamed", &session, json!({"to": params.new_name}));
    hub.commit(vec![Change::RenameSession(session.id, params.new_name), record])
        .await
        .map_err(store_error)?;
    Ok(DoneResult::Ok { session_id: session.id })
}
