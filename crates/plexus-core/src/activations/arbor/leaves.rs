//! `arbor.leaves`: the last node of each conversation in a tree.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::arbor::{NodesResult, TreeParams};

use super::{checked, next};
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::conversations::find_tree;
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "arbor.leaves",
        "Lists the leaves of a tree: the last nodes of its conversations.",
        Audience::Programs,
        Needs::Read,
        leaves,
    )
    .repeatable()
}

async fn leaves(hub: Arc<Hub>, caller: Admitted, params: TreeParams) -> Result<NodesResult, Error> {
    let limit = checked(params.limit)?;
    find_tree(hub.store(), &caller, params.tree_id).await?;
    let nodes = hub.store().leaves(params.tree_id, params.after, limit).await.map_err(store_error)?;
    let next = next(&nodes, limit, |node| node.id);
    Ok(NodesResult::Ok { nodes, next })
}
