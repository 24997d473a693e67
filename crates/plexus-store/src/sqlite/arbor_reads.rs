//! Reads conversation trees in pages, without recursion. The work is proportional to the size of the page, at any position
//! in a tree.

use plexus_protocol::arbor::{Node, NodeSummary, TreeSession, TreeSummary};
use plexus_protocol::{NodeId, SessionId, TreeId};
use rusqlite::{Connection, Result, Row};
use serde_json::Value;

use super::columns::{Json, Text, Word, int};
use super::reads::{all, one};
use super::sql;
use crate::node_text::spaced;
use crate::page::Page;
use crate::{ResumePoint, SearchHit};

pub(super) fn node(connection: &Connection, id: NodeId) -> Result<Option<Node>> {
    let found = one(connection, sql::NODE, [Text(id)], |row| {
        Ok((node_row(row)?, row.get("ordinal")?, row.get("long")?))
    })?;
    let Some((mut node, ordinal, long)) = found else { return Ok(None) };
    if long {
        put_long_texts_back(connection, ordinal, &mut node.content)?;
    }
    Ok(Some(node))
}

pub(super) fn children(
    connection: &Connection,
    of: NodeId,
    after: Option<NodeId>,
    limit: u64,
) -> Result<Vec<NodeSummary>> {
    all(connection, sql::CHILDREN, (Text(of), after.map(Text), int(limit)), summary_row)
}

pub(super) fn nodes(
    connection: &Connection,
    tree: TreeId,
    after: Option<NodeId>,
    limit: u64,
) -> Result<Vec<NodeSummary>> {
    all(connection, sql::NODES_OF_TREE, (Text(tree), after.map(Text), int(limit)), summary_row)
}

pub(super) fn leaves(
    connection: &Connection,
    tree: TreeId,
    after: Option<NodeId>,
    limit: u64,
) -> Result<Vec<NodeSummary>> {
    all(connection, sql::LEAVES, (Text(tree), after.map(Text), int(limit)), summary_row)
}

/// The nodes from depth `from` on, on the path from the root to `head`.
pub(super) fn path(connection: &Connection, head: NodeId, from: u64, limit: u64) -> Result<Vec<Node>> {
    let head = one(connection, sql::STEP_FROM, [Text(head)], step)?;
    let Some(head) = head.filter(|head| from <= head.depth && limit > 0) else { return Ok(Vec::new()) };
    let last = head.depth.min(from.saturating_add(limit - 1));
    let mut at = Some(ancestor(connection, head, last)?);
    let mut steps = Vec::new();
    while let Some(step) = at.filter(|step| step.depth >= from) {
        steps.push(step.ordinal);
        at = step.above.map(|above| step_at(connection, above)).transpose()?;
    }
    let mut page = Page::new();
    for ordinal in steps.into_iter().rev() {
        let found = one(connection, sql::NODE_AT, [ordinal], |row| {
            let size = row.get_ref("content")?.as_str()?.len();
            Ok((node_row(row)?, row.get("long")?, size))
        })?;
        let Some((mut node, long, mut size)) = found else { break };
        if long {
            put_long_texts_back(connection, ordinal, &mut node.content)?;
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
fn ancestor(connection: &Connection, from: Step, depth: u64) -> Result<Step> {
    let mut at = from;
    while at.depth > depth {
        let far = at.jump.map(|jump| step_at(connection, jump)).transpose()?.filter(|far| far.depth >= depth);
        at = match (far, at.above) {
            (Some(far), _) => far,
            (None, Some(above)) => step_at(connection, above)?,
            (None, None) => break,
        };
    }
    Ok(at)
}

fn step_at(connection: &Connection, ordinal: u64) -> Result<Step> {
    connection.prepare_cached(sql::STEP_AT)?.query_row([ordinal], step)
}

fn step(row: &Row<'_>) -> Result<Step> {
    Ok(Step { ordinal: row.get(0)?, depth: row.get(1)?, above: row.get(2)?, jump: row.get(3)? })
}

/// Where Claude Code can resume a conversation that ends with this node: at the last messages of agents in it.
pub(super) fn resume_points(connection: &Connection, from: NodeId, limit: usize) -> Result<Vec<ResumePoint>> {
    let mut points = Vec::new();
    let mut at = one(connection, sql::SAID, [Text(from)], author)?;
    while let Some(Author { session, uuid, above }) = at
        && points.len() < limit
    {
        if let (Some(session), Some(uuid)) = (session, uuid) {
            points.push(ResumePoint { session, uuid });
        }
        let Some(above) = above else { break };
        at = one(connection, sql::SAID_AT, [above], author)?;
    }
    Ok(points)
}

/// The author of a node, and the entry of the transcript if an agent wrote it.
struct Author {
    session: Option<SessionId>,
    uuid: Option<String>,
    above: Option<u64>,
}

fn author(row: &Row<'_>) -> Result<Author> {
    let session: Option<Text<SessionId>> = row.get(0)?;
    Ok(Author { session: session.map(|id| id.0), uuid: row.get(1)?, above: row.get(2)? })
}

pub(super) fn tree(connection: &Connection, id: TreeId) -> Result<Option<TreeSummary>> {
    let Some(mut tree) = one(connection, sql::TREE, [Text(id)], tree_row)? else { return Ok(None) };
    tree.sessions = tree_sessions(connection, id)?;
    Ok(Some(tree))
}

pub(super) fn trees(connection: &Connection, after: Option<TreeId>, limit: u64) -> Result<Vec<TreeSummary>> {
    let mut trees = all(connection, sql::TREES, (after.map(Text), int(limit)), tree_row)?;
    for tree in &mut trees {
        tree.sessions = tree_sessions(connection, tree.id)?;
    }
    Ok(trees)
}

fn tree_sessions(connection: &Connection, id: TreeId) -> Result<Vec<TreeSession>> {
    all(connection, sql::TREE_SESSIONS, [Text(id)], |row| {
        Ok(TreeSession {
            id: row.get::<_, Text<_>>("id")?.0,
            name: row.get::<_, Word<_>>("name")?.0,
            head: row.get::<_, Text<_>>("head")?.0,
            deleted: row.get("deleted")?,
        })
    })
}

/// The nodes that contain all of these words, newest first.
pub(super) fn search(
    connection: &Connection,
    words: &str,
    tree: Option<TreeId>,
    before: Option<NodeId>,
    limit: u64,
) -> Result<Vec<SearchHit>> {
    let phrases: Vec<String> = words
        .split_whitespace()
        .map(|word| format!("\"{}\"", spaced(word).trim().replace('"', "\"\"")))
        .collect();
    let key = (phrases.join(" "), tree.map(Text), before.map(Text), int(limit));
    all(connection, sql::SEARCH, key, |row| {
        Ok(SearchHit { tree: row.get::<_, Text<_>>("tree")?.0, node: summary_row(row)? })
    })
}

/// Puts the long texts of a node back into its content.
pub(super) fn put_long_texts_back(connection: &Connection, node: u64, content: &mut Value) -> Result<()> {
    let long: Vec<(String, String)> =
        all(connection, sql::LONG_OF_NODE, [node], |row| Ok((row.get(0)?, row.get(2)?)))?;
    for (place, text) in long {
        if let Some(empty) = content.pointer_mut(&place) {
            *empty = Value::String(text);
        }
    }
    Ok(())
}

fn summary_row(row: &Row<'_>) -> Result<NodeSummary> {
    Ok(NodeSummary {
        id: row.get::<_, Text<_>>("id")?.0,
        parent_id: row.get::<_, Option<Text<_>>>("parent")?.map(|id| id.0),
        depth: row.get("depth")?,
        role: row.get::<_, Word<_>>("role")?.0,
        session_id: row.get::<_, Option<Text<_>>>("session")?.map(|id| id.0),
        turn: row.get("turn")?,
        children: row.get("children")?,
        preview: row.get("preview")?,
        created_at: row.get("created_at")?,
    })
}

fn node_row(row: &Row<'_>) -> Result<Node> {
    Ok(Node {
        summary: summary_row(row)?,
        tree_id: row.get::<_, Text<_>>("tree")?.0,
        content: row.get::<_, Json<_>>("content")?.0,
    })
}

fn tree_row(row: &Row<'_>) -> Result<TreeSummary> {
    Ok(TreeSummary {
        id: row.get::<_, Text<_>>("id")?.0,
        root: row.get::<_, Text<_>>("root")?.0,
        nodes: row.get("nodes")?,
        sessions: Vec::new(),
        created_at: row.get("created_at")?,
    })
}
