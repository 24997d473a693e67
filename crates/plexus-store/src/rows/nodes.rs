//! The rows of conversation trees and their nodes. How a backend shortens long paths or shares long texts is its own
//! decision; `crate::node_text` derives the preview and the searchable text.

use plexus_protocol::{NodeId, SessionId, TreeId, UnixSeconds};
use serde_json::Value;

use super::Stored;
use crate::NodeRow;

/// Conversation trees.
pub(crate) trait NodeRows {
    /// Inserts a tree with its root node.
    fn insert_tree(&mut self, tree: TreeId, root: NodeId, at: UnixSeconds) -> Stored<()>;
    /// Whether a session that is not deleted has its conversation in this tree.
    fn tree_has_session(&self, tree: TreeId) -> Stored<bool>;

    /// Inserts a node below its parent; returns whether the parent exists.
    fn insert_node(&mut self, node: &NewNode<'_>) -> Stored<bool>;
    /// Appends content blocks to a node, and replaces its uuid if one is given; returns whether the node exists.
    fn extend_node(&mut self, id: NodeId, blocks: &[Value], uuid: Option<&str>) -> Stored<bool>;

    /// The last `limit` nodes of a tree without its root, newest first.
    fn last_nodes(&self, tree: TreeId, limit: u64) -> Stored<Vec<LeafNode>>;
    /// Deletes a node that has no children.
    fn delete_node(&mut self, tree: TreeId, node: LeafNode) -> Stored<()>;
    /// Moves the head of every session of this tree that is at `from` to `to`.
    fn move_heads(&mut self, tree: TreeId, from: NodeId, to: NodeId) -> Stored<()>;
}

/// A node to be inserted.
pub(crate) struct NewNode<'a> {
    pub(crate) row: &'a NodeRow,
    pub(crate) session: SessionId,
    pub(crate) at: UnixSeconds,
}

/// A node and its parent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafNode {
    pub(crate) id: NodeId,
    pub(crate) parent: NodeId,
}
