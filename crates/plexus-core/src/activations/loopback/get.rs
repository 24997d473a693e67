//! `loopback.get`: one approval in full, with the digest that proves the caller read it.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::loopback::{GetParams, GetResult};

use crate::Hub;
use crate::approvals::context::{purpose, similar};
use crate::approvals::target_file::target_file;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::Audience;
use crate::view;

pub(super) fn method() -> Method {
    Method::new(
        "loopback.get",
        "Returns one approval in full, with the digest that loopback_respond requires if the input was shown \
         truncated.",
        Audience::Agents,
        Needs::Watch,
        get,
    )
    .repeatable()
}

async fn get(hub: Arc<Hub>, caller: Admitted, params: GetParams) -> Result<GetResult, Error> {
    let (row, _) = access::find_approval(hub.store(), &caller, params.approval_id).await?;
    let (purpose, similar, file) = match params.context {
        Some(true) => (
            Some(purpose(hub.store(), &caller, &row).await?),
            Some(similar(hub.store(), &caller, &row).await?),
            target_file(hub.files(), &caller, &row.approval).await,
        ),
        Some(false) | None => (None, None, None),
    };
    Ok(GetResult::Ok { approval: Box::new(view::approval(row, usize::MAX)), purpose, like: similar, file })
}
