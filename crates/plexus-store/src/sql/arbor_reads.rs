//! Reads conversation trees in pages, without recursion. The work is proportional to the size of the page, at any position
//! in a tree.

use plexus_protocol::arbor::{Node, NodeSummary, TreeSession, TreeSummary};
use plexus_protocol::{NodeId, SessionId, TreeId};
use serde_json::Value;

use super::columns::{Json, Text, Word, int};
use super::{Database, Row, statements};
use crate::page::Page;
use crate::rows::Stored;
use crate::{ResumePoint, SearchHit};

pub(crate) fn node(database: &dyn Database, id: NodeId) -> Stored<Option<Node>> {
    let found = database.one(statements::NODE, [Text(id)], |row| {
        Ok((node_row(row)?, row.get("ordinal")?, row.get("long")?))
    })?;
    let Some((mut node, ordinal, long)) = found else { return Ok(None) };
    if long {
        put_long_texts_back(database, ordinal, &mut node.content)?;
    }
    Ok(Some(node))
}

pub(crate) fn children(
    database: &dyn Database,
    of: NodeId,
    after: Option<NodeId>,
    limit: u64,
) -> Stored<Vec<NodeSummary>> {
    database.all(statements::CHILDREN, (Text(of), after.map(Text), int(limit)), summary_row)
}

pub(crate) fn nodes(
    database: &dyn Database,
    tree: TreeId,
    after: Option<NodeId>,
    limit: u64,
) -> Stored<Vec<NodeSummary>> {
    database.all(statements::NODES_OF_TREE, (Text(tree), after.map(Text), int(limit)), summary_row)
}

pub(crate) fn leaves(
    database: &dyn Database,
    tree: TreeId,
    after: Option<NodeId>,
    limit: u64,
) -> Stored<Vec<NodeSummary>> {
    database.all(statements::LEAVES, (Text(tree), after.map(Text), int(limit)), summary_row)
}

/// The nodes from depth `from` on, on the path from the root to `head`.
pub(crate) fn path(database: &dyn Database, head: NodeId, from: u64, limit: u64) -> Stored<Vec<Node>> {
    let head = database.one(statements::STEP_FROM, [Text(head)], step)?;
    let Some(head) = head.filter(|head| from <= head.depth && limit > 0) else { return Ok(Vec::new()) };
    let last = head.depth.min(from.saturating_add(limit - 1));
    let mut at = Some(ancestor(database, head, last)?);
    let mut steps = Vec::new();
    while let Some(step) = at.filter(|step| step.depth >= from) {
        steps.push(step.ordinal);
        at = step.above.map(|above| step_at(database, above)).transpose()?;
    }
    let mut page = Page::new();
    for ordinal in steps.into_iter().rev() {
        let found = database.one(statements::NODE_AT, [ordinal], |row| {
            let size = row.text("content")?.len();
            Ok((node_row(row)?, row.get("long")?, size))
        })?;
        let Some((mut node, long, mut size)) = found else { break };
        if long {
            put_long_texts_back(database, ordinal, &mut node.content)?;
            size = node.content.to_string().len();
        }
        if !page.has_room_for(size) {
            break;
        }
        page.push(node);
    }
    Ok(page.rows())
}

/// One node of a path.
#[derive(Clone, Copy)]
struct Step {
    ordinal: u64,
    depth: u64,
    above: Option<u64>,
    jump: Option<u64>,
}

/// The node at this depth on the path from the root to `from`.
fn ancestor(database: &dyn Database, from: Step, depth: u64) -> Stored<Step> {
    let mut at = from;
    while at.depth > depth {
        let far = at.jump.map(|jump| step_at(database, jump)).transpose()?.filter(|far| far.depth >= depth);
        at = match (far, at.above) {
            (Some(far), _) => far,
            (None, Some(above)) => step_at(database, above)?,
            (None, None) => break,
        };
    }
    Ok(at)
}

fn step_at(database: &dyn Database, ordinal: u64) -> Stored<Step> {
    database.only(statements::STEP_AT, [ordinal], step)
}

fn step(row: &Row<'_>) -> Stored<Step> {
    Ok(Step { ordinal: row.get(0)?, depth: row.get(1)?, above: row.get(2)?, jump: row.get(3)? })
}

/// Where Claude Code can resume a conversation that ends with this node: at the last messages of agents in it.
pub(crate) fn resume_points(database: &dyn Database, from: NodeId, limit: usize) -> Stored<Vec<ResumePoint>> {
    let mut points = Vec::new();
    let mut at = database.one(statements::SAID, [Text(from)], author)?;
    while let Some(Author { session, uuid, above }) = at
        && points.len() < limit
    {
        if let (Some(session), Some(uuid)) = (session, uuid) {
            points.push(ResumePoint { session, uuid });
        }
        let Some(above) = above else { break };
        at = database.one(statements::SAID_AT, [above], author)?;
    }
    Ok(points)
}

/// The author of a node, and the entry of the transcript if an agent wrote it.
struct Author {
    session: Option<SessionId>,
    uuid: Option<String>,
    above: Option<u64>,
}

fn author(row: &Row<'_>) -> Stored<Author> {
    let session: Option<Text<SessionId>> = row.get(0)?;
    Ok(Author { session: session.map(|id| id.0), uuid: row.get(1)?, above: row.get(2)? })
}

pub(crate) fn tree(database: &dyn Database, id: TreeId) -> Stored<Option<TreeSummary>> {
    let Some(mut tree) = database.one(statements::TREE, [Text(id)], tree_row)? else { return Ok(None) };
    tree.sessions = tree_sessions(database, id)?;
    Ok(Some(tree))
}

pub(crate) fn trees(database: &dyn Database, after: Option<TreeId>, limit: u64) -> Stored<Vec<TreeSummary>> {
    let mut trees = database.all(statements::TREES, (after.map(Text), int(limit)), tree_row)?;
    for tree in &mut trees {
        tree.sessions = tree_sessions(database, tree.id)?;
    }
    Ok(trees)
}

fn tree_sessions(database: &dyn Database, id: TreeId) -> Stored<Vec<TreeSession>> {
    database.all(statements::TREE_SESSIONS, [Text(id)], |row| {
        Ok(TreeSession {
            id: row.get::<Text<_>>("id")?.0,
            name: row.get::<Word<_>>("name")?.0,
            head: row.get::<Text<_>>("head")?.0,
            deleted: row.get("deleted")?,
        })
    })
}

/// The nodes that contain all of these words, newest first.
pub(crate) fn search(
    database: &dyn Database,
    words: &str,
    tree: Option<TreeId>,
    before: Option<NodeId>,
    limit: u64,
) -> Stored<Vec<SearchHit>> {
    let dialect = database.dialect();
    let key = ((dialect.search_words)(words), tree.map(Text), before.map(Text), int(limit));
    database.all(dialect.search, key, |row| {
        Ok(SearchHit { tree: row.get::<Text<_>>("tree")?.0, node: summary_row(row)? })
    })
}

/// Puts the long texts of a node back into its content.
pub(crate) fn put_long_texts_back(database: &dyn Database, node: u64, content: &mut Value) -> Stored<()> {
    let long: Vec<(String, String)> =
        database.all(statements::LONG_OF_NODE, [node], |row| Ok((row.get(0)?, row.get(2)?)))?;
    for (place, text) in long {
        if let Some(empty) = content.pointer_mut(&place) {
            *empty = Value::String(text);
        }
    }
    Ok(())
}

fn summary_row(row: &Row<'_>) -> Stored<NodeSummary> {
    Ok(NodeSummary {
        id: row.get::<Text<_>>("id")?.0,
        parent_id: row.get::<Option<Text<_>>>("parent")?.map(|id| id.0),
        depth: row.get("depth")?,
        role: row.get::<Word<_>>("role")?.0,
        session_id: row.get::<Option<Text<_>>>("session")?.map(|id| id.0),
        turn: row.get("turn")?,
        children: row.get("children")?,
        preview: row.get("preview")?,
        created_at: row.get("created_at")?,
    })
}

fn node_row(row: &Row<'_>) -> Stored<Node> {
    Ok(Node {
        summary: summary_row(row)?,
        tree_id: row.get::<Text<_>>("tree")?.0,
        content: row.get::<Json<_>>("content")?.0,
    })
}

fn tree_row(row: &Row<'_>) -> Stored<TreeSummary> {
    Ok(TreeSummary {
        id: row.get::<Text<_>>("id")?.0,
        root: row.get::<Text<_>>("root")?.0,
        nodes: row.get("nodes")?,
        sessions: Vec::new(),
        created_at: row.get("created_at")?,
    })
}
