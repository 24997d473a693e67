//! `token.revoke`: revokes a token.

use std::sync::Arc;

use plexus_protocol::token::{RevokeParams, RevokeResult};
use plexus_protocol::{Decider, Error};
use plexus_store::Change;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "token.revoke",
        "Revokes a token and closes its open connections.",
        Audience::Programs,
        Needs::Rule,
        revoke,
    )
}

async fn revoke(hub: Arc<Hub>, caller: Admitted, params: RevokeParams) -> Result<RevokeResult, Error> {
    let by = Decider::from(&caller.principal);
    hub.commit(vec![Change::RevokeToken { name: params.name.clone(), by }]).await.map_err(store_error)?;
    Ok(RevokeResult::Ok { name: params.name })
}
