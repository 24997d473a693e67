//! `template.delete`: deletes a template.

use std::sync::Arc;

use plexus_protocol::template::{DeleteParams, DeleteResult};
use plexus_protocol::{Decider, Error};
use plexus_store::Change;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "template.delete",
        "Deletes a template. Sessions that were created with it stay.",
        Audience::Programs,
        Needs::Rule,
        delete,
    )
}

async fn delete(hub: Arc<Hub>, caller: Admitted, params: DeleteParams) -> Result<DeleteResult, Error> {
    let by = Decider::from(&caller.principal);
    hub.commit(vec![Change::DeleteTemplate { name: params.name.clone(), by }]).await.map_err(store_error)?;
    Ok(DeleteResult::Ok { name: params.name })
}
