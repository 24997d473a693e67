//! `arbor.tree_list`: all conversation trees that the caller may read.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::arbor::{TreeListParams, TreeListResult};

use super::{checked, next};
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::conversations::readable_trees;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    let doc = "Lists the conversation trees that you may read and their sessions, oldest first.";
    Method::new("arbor.tree_list", doc, Audience::Programs, Needs::Read, tree_list).repeatable()
}

async fn tree_list(hub: Arc<Hub>, caller: Admitted, params: TreeListParams) -> Result<TreeListResult, Error> {
    let limit = checked(params.limit)?;
    let trees = readable_trees(hub.store(), &caller, params.after, limit).await?;
    let next = next(&trees, limit, |tree| tree.id);
    Ok(TreeListResult::Ok { trees, next })
}
