//! `arbor.search`: searches conversations for words.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::arbor::{Hit, SearchParams, SearchResult};

use super::{checked, next};
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::conversations::find_tree;
use crate::conversations::reads_all;
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "arbor.search",
        "Finds nodes that contain all the given words, newest first.",
        Audience::Programs,
        Needs::Read,
        search,
    )
    .repeatable()
}

async fn search(hub: Arc<Hub>, caller: Admitted, params: SearchParams) -> Result<SearchResult, Error> {
    let limit = checked(params.limit)?;
    if !params.query.chars().any(char::is_alphanumeric) {
        return Err(Error::invalid("query", "contains no word to search for"));
    }
    match params.tree_id {
        Some(tree) => drop(find_tree(hub.store(), &caller, tree).await?),
        None if reads_all(&caller.principal) => {}
        None => {
            return Err(Error::invalid(
                "tree_id",
                "is missing; arbor.tree_list lists the trees that you may read",
            ));
        }
    }
    let found = hub.store().search(&params.query, params.tree_id, params.before, limit).await;
    let found =
        found.map_err(store_error)?.into_iter().map(|found| Hit { tree_id: found.tree, node: found.node });
    let found: Vec<Hit> = found.collect();
    let next = next(&found, limit, |hit| hit.node.id);
    Ok(SearchResult::Ok { found, next })
}
