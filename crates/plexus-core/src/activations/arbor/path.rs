//! `arbor.path`: the conversation from the root to a node.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::arbor::{PathParams, PathResult};

use super::checked;
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::conversations::{find_conversation, page};
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "arbor.path",
        "Returns the conversation of a session, or the one that ends at a node, from the root on.",
        Audience::Programs,
        Needs::Read,
        path,
    )
    .repeatable()
}

async fn path(hub: Arc<Hub>, caller: Admitted, params: PathParams) -> Result<PathResult, Error> {
    let limit = checked(params.limit)?;
    let head =
        find_conversation(hub.store(), &caller, params.node_id, params.session_id, params.name.as_deref())
            .await?;
    let (nodes, next) = page(hub.store(), head, params.from, limit).await?;
    Ok(PathResult::Ok { nodes, next })
}
