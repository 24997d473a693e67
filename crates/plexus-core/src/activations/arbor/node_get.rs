//! `arbor.node_get`: one node with its full content.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::arbor::{NodeParams, NodeResult};

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::conversations::find_node;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "arbor.node_get",
        "Returns one node of a conversation with its whole content.",
        Audience::Programs,
        Needs::Read,
        node_get,
    )
    .repeatable()
}

async fn node_get(hub: Arc<Hub>, caller: Admitted, params: NodeParams) -> Result<NodeResult, Error> {
    let node = find_node(hub.store(), &caller, params.node_id).await?;
    Ok(NodeResult::Ok { node })
}
