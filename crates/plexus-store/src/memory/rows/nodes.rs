//! Conversation trees in memory.

use plexus_protocol::arbor::{NodeSummary, Role};
use plexus_protocol::{NodeId, TreeId, UnixSeconds};
use serde_json::Value;

use super::super::tables::{StoredNode, Tables, Tree};
use crate::node_text::{as_blocks, preview};
use crate::rows::{LeafNode, NewNode, NodeRows, Stored};

impl NodeRows for Tables {
    fn insert_tree(&mut self, tree: TreeId, root: NodeId, at: UnixSeconds) -> Stored<()> {
        let ordinal = self.trees.len();
        self.trees.put(tree, Tree { ordinal, root, created_at: at });
        let summary = NodeSummary {
            id: root,
            parent_id: None,
            depth: 0,
            role: Role::Root,
            session_id: None,
            turn: None,
            children: 0,
            preview: String::new(),
            created_at: at,
        };
        self.put_node(tree, summary, Value::Null, None);
        Ok(())
    }

    fn tree_has_session(&self, tree: TreeId) -> Stored<bool> {
        let mut sessions = self.sessions.values().map(|session| &session.row);
        Ok(sessions.any(|row| row.tree == tree && row.deleted_at.is_none()))
    }

    fn insert_node(&mut self, node: &NewNode<'_>) -> Stored<bool> {
        let NewNode { row, session, at } = *node;
        let Some(parent) = self.nodes.get(&row.parent) else { return Ok(false) };
        let depth = parent.summary.depth + 1;
        self.nodes.update(&row.parent, |parent| parent.summary.children += 1);
        let summary = NodeSummary {
            id: row.id,
            parent_id: Some(row.parent),
            depth,
            role: row.role,
            session_id: Some(session),
            turn: Some(row.turn),
            children: 0,
            preview: preview(&row.content),
            created_at: at,
        };
        self.put_node(row.tree, summary, row.content.clone(), row.uuid.clone());
        Ok(true)
    }

    fn extend_node(&mut self, id: NodeId, blocks: &[Value], uuid: Option<&str>) -> Stored<bool> {
        Ok(self.nodes.update(&id, |node| {
            let mut content = as_blocks(node.content.take());
            content.extend_from_slice(blocks);
            node.content = Value::Array(content);
            if let Some(uuid) = uuid {
                node.uuid = Some(uuid.to_owned());
            }
        }))
    }

    fn last_nodes(&self, tree: TreeId, limit: u64) -> Stored<Vec<LeafNode>> {
        let newest = self.nodes_in_order().rev().filter(|node| node.tree == tree);
        let below_root = newest.filter_map(|StoredNode { summary, .. }| {
            summary.parent_id.map(|parent| LeafNode { id: summary.id, parent })
        });
        Ok(below_root.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect())
    }

    fn delete_node(&mut self, _tree: TreeId, node: LeafNode) -> Stored<()> {
        if let Some(ordinal) = self.nodes.get(&node.id).map(|node| node.ordinal) {
            self.node_order.delete(&ordinal);
        }
        self.nodes.delete(&node.id);
        self.nodes.update(&node.parent, |parent| parent.summary.children -= 1);
        Ok(())
    }

    fn move_heads(&mut self, tree: TreeId, from: NodeId, to: NodeId) -> Stored<()> {
        self.sessions.update_where(
            |session| session.row.tree == tree && session.row.head == from,
            |session| session.row.head = to,
        );
        Ok(())
    }
}

impl Tables {
    /// All nodes, oldest first.
    pub(in crate::memory) fn nodes_in_order(&self) -> impl DoubleEndedIterator<Item = &StoredNode> {
        self.node_order.values().filter_map(|id| self.nodes.get(id))
    }

    fn put_node(&mut self, tree: TreeId, summary: NodeSummary, content: Value, uuid: Option<String>) {
        let ordinal = self.node_order.append(summary.id);
        self.nodes.put(summary.id, StoredNode { ordinal, tree, summary, content, uuid });
    }
}
