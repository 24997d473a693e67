//! `policy.list`: the rules in force for a session, including inherited ones, or all rules.

use std::sync::Arc;

use plexus_protocol::policy::{ListParams, ListResult};
use plexus_protocol::{Error, ErrorKind, Principal};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::lineage::known_lineage;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "policy.list",
        "Lists the rules in force for a session, including inherited rules.",
        Audience::Programs,
        Needs::Read,
        list,
    )
    .repeatable()
}

async fn list(hub: Arc<Hub>, caller: Admitted, params: ListParams) -> Result<ListResult, Error> {
    hub.refresh_rules().await?;
    let rules = match (params.session_id, &params.name) {
        (None, None) if matches!(caller.principal, Principal::Operator | Principal::Token { .. }) => {
            hub.policy().in_force.list(None)
        }
        (None, None) => {
            let message = "only the operator can list all rules; pass `session_id` or `name`";
            return Err(Error::new(ErrorKind::Forbidden, message).with("field", "session_id"));
        }
        (id, name) => {
            let session = access::find_session(hub.store(), &caller, id, name.as_deref()).await?;
            hub.policy().in_force.list(Some(&known_lineage(hub.store(), session).await.map_err(store_error)?))
        }
    };
    Ok(ListResult::Ok { rules })
}
