//! `loopback.get`: one approval in full, with the digest that proves the caller read it.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::loopback::{GetParams, GetResult};

use crate::Hub;
use crate::approvals::context::{purpose, similar};
use crate::approvals::denied_before;
use crate::approvals::target_file::target_file;
use crate::callers::access::{self, Admitted, Needs};
use crate::callers::names::Paths;
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
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
    .on_host_of(Subject::Approval, IfUnreachable::ExecuteHere)
}

async fn get(hub: Arc<Hub>, caller: Admitted, params: GetParams) -> Result<GetResult, Error> {
    let (row, _) = access::find_approval(hub.store(), &caller, params.approval_id).await?;
    let (purpose, similar, file) = match params.context {
        Some(true) => (
            Some(purpose(hub.store(), &caller, &row).await?),
            Some(similar(hub.store(), &caller, &row).await?),
            match hub.is_own(row.approval.host.as_ref()) {
                true => target_file(hub.files(), &caller, &row.approval).await,
                // Its host is unreachable, and so are its files.
                false => None,
            },
        ),
        Some(false) | None => (None, None, None),
    };
    let mut paths = Paths::of(hub.store(), &caller.principal);
    let mut approval = Box::new(view::approval(row, &mut paths, usize::MAX).await.map_err(store_error)?);
    if let Some(similar) = &similar {
        denied_before::add_mark(&mut approval, similar);
    }
    Ok(GetResult::Ok { approval, purpose, like: similar, file })
}
