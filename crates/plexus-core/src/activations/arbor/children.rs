//! `arbor.children`: the direct successors of a node. A node has several where sessions were forked.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::arbor::{ChildrenParams, NodesResult};

use super::{checked, next};
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::conversations::{find_node, find_tree};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "arbor.children",
        "Lists the nodes that directly follow a node: several if sessions were forked there.",
        Audience::Programs,
        Needs::Read,
        children,
    )
    .repeatable()
}

async fn children(hub: Arc<Hub>, caller: Admitted, params: ChildrenParams) -> Result<NodesResult, Error> {
    let limit = checked(params.limit)?;
    let of = find_node(hub.store(), &caller, params.node_id).await?;
    find_tree(hub.store(), &caller, of.tree_id).await?;
    let nodes = hub.store().children(params.node_id, params.after, limit).await.map_err(store_error)?;
    let next = next(&nodes, limit, |node| node.id);
    Ok(NodesResult::Ok { nodes, next })
}
