//! Access to conversations. All sessions in one conversation tree belong to one family, so an ancestor of any of them
//! may read the whole tree. A session itself may read its own conversation, but not the branches of others.

use plexus_protocol::arbor::{Node, TreeSummary};
use plexus_protocol::{Error, ErrorKind, NodeId, Principal, SessionId, TreeId};
use plexus_store::Store;

use crate::callers::access::{self, Admitted, Relation};
use crate::errors::store_error;

/// Finds a tree that the caller may read completely.
pub(crate) async fn find_tree(
    store: &dyn Store,
    caller: &Admitted,
    id: TreeId,
) -> Result<TreeSummary, Error> {
    let not_found =
        || Error::new(ErrorKind::TreeNotFound, format!("conversation tree `{id}` does not exist"));
    let tree = store.tree(id).await.map_err(store_error)?.ok_or_else(not_found)?;
    if reads_all(&caller.principal) {
        return Ok(tree);
    }
    for speaker in &tree.sessions {
        if let Some(session) = store.session(speaker.id).await.map_err(store_error)?
            && access::relation(store, &caller.principal, &session).await? == Some(Relation::Ancestor)
        {
            return Ok(tree);
        }
    }
    Err(not_found())
}

/// Finds a node that the caller may read.
pub(crate) async fn find_node(store: &dyn Store, caller: &Admitted, id: NodeId) -> Result<Node, Error> {
    let not_found = || Error::new(ErrorKind::NodeNotFound, format!("node `{id}` does not exist"));
    let node = store.node(id).await.map_err(store_error)?.ok_or_else(not_found)?;
    if find_tree(store, caller, node.tree_id).await.is_ok() {
        return Ok(node);
    }
    let Principal::Session { id: me, .. } = caller.principal else { return Err(not_found()) };
    let mine = store.session(me).await.map_err(store_error)?.ok_or_else(not_found)?;
    let own = store.path(mine.head, node.summary.depth, 1).await.map_err(store_error)?;
    if own.first().is_some_and(|own| own.summary.id == id) { Ok(node) } else { Err(not_found()) }
}

/// The last node of the given conversation, if the caller may read it.
pub(crate) async fn find_conversation(
    store: &dyn Store,
    caller: &Admitted,
    node: Option<NodeId>,
    session: Option<SessionId>,
    name: Option<&str>,
) -> Result<NodeId, Error> {
    match node {
        Some(_) if session.is_some() || name.is_some() => {
            Err(Error::invalid("node_id", "pass either a node or a session, not both"))
        }
        Some(node) => Ok(find_node(store, caller, node).await?.summary.id),
        None => Ok(access::find_session(store, caller, session, name).await?.head),
    }
}

/// A page of the conversation that ends with `head`, starting at depth `from`, and the depth where the next page
/// starts.
pub(crate) async fn page(
    store: &dyn Store,
    head: NodeId,
    from: Option<u64>,
    limit: u64,
) -> Result<(Vec<Node>, Option<u64>), Error> {
    let nodes = store.path(head, from.unwrap_or(0), limit).await.map_err(store_error)?;
    let next = nodes.last().filter(|last| last.summary.id != head).map(|last| last.summary.depth + 1);
    Ok((nodes, next))
}

/// A page of the trees that the caller may read completely. Callers that cannot read everything get only trees of
/// existing sessions.
pub(crate) async fn readable_trees(
    store: &dyn Store,
    caller: &Admitted,
    after: Option<TreeId>,
    limit: u64,
) -> Result<Vec<TreeSummary>, Error> {
    if reads_all(&caller.principal) {
        return store.trees(after, limit).await.map_err(store_error);
    }
    let mut ids: Vec<TreeId> = Vec::new();
    for seen in access::visible_sessions(store, caller).await? {
        let row = seen.session.row;
        if !matches!(caller.principal, Principal::Session { id, .. } if id == row.id)
            && !ids.contains(&row.tree)
        {
            ids.push(row.tree);
        }
    }
    let first = after.and_then(|after| ids.iter().position(|id| *id == after)).map_or(0, |at| at + 1);
    let mut trees = Vec::new();
    for id in ids.into_iter().skip(first).take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        trees.extend(store.tree(id).await.map_err(store_error)?);
    }
    Ok(trees)
}

/// Whether a caller with read access may read everything.
pub(crate) fn reads_all(principal: &Principal) -> bool {
    matches!(principal, Principal::Operator | Principal::Token { .. })
}
