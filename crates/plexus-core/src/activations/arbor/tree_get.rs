//! `arbor.tree_get`: a tree, its sessions, and a page of its nodes.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::arbor::{TreeParams, TreeResult};

use super::{checked, next};
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::conversations::find_tree;
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "arbor.tree_get",
        "Returns a conversation tree: its sessions, and its nodes in the order of creation.",
        Audience::Programs,
        Needs::Read,
        tree_get,
    )
    .repeatable()
}

async fn tree_get(hub: Arc<Hub>, caller: Admitted, params: TreeParams) -> Result<TreeResult, Error> {
    let limit = checked(params.limit)?;
    let tree = find_tree(hub.store(), &caller, params.tree_id).await?;
    let nodes = hub.store().nodes(params.tree_id, params.after, limit).await.map_err(store_error)?;
    let next = next(&nodes, limit, |node| node.id);
    Ok(TreeResult::Ok { tree, nodes, next })
}
