//! Conversation trees: what is added to them, and what can be asked of them.

use async_trait::async_trait;
use plexus_protocol::arbor::{Node, NodeSummary, Role, TreeSummary};
use plexus_protocol::{NodeId, SessionId, TreeId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StoreError;

/// Where the conversation of a new session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// At the root of a tree that is made with it.
    NewTree,
    /// At a node that is there.
    Forked,
}

/// A node to be added: one message, or how a turn ended.
#[derive(Debug, Clone)]
pub struct NodeRow {
    /// Its id.
    pub id: NodeId,
    /// Its tree.
    pub tree: TreeId,
    /// What it follows.
    pub parent: NodeId,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Value,
    /// The turn it is said in.
    pub turn: u64,
    /// Where Claude Code's transcript of the session has it, if its agent said it.
    pub uuid: Option<String>,
}

/// Where Claude Code can take a conversation up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumePoint {
    /// Whose transcript it is in.
    pub session: SessionId,
    /// The last entry that is wanted of it.
    pub uuid: String,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The tree.
    pub tree: TreeId,
    /// The node in it.
    pub node: NodeSummary,
}

/// What can be asked of conversation trees. Pages go on after the last node or tree of the one before.
#[async_trait]
pub trait Arbor: Send + Sync + 'static {
    /// One tree and those who speak in it, deleted sessions included.
    async fn tree(&self, id: TreeId) -> Result<Option<TreeSummary>, StoreError>;
    /// All trees, oldest first.
    async fn trees(&self, after: Option<TreeId>, limit: u64) -> Result<Vec<TreeSummary>, StoreError>;
    /// The nodes of a tree as they were added.
    async fn nodes(
        &self,
        tree: TreeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError>;
    /// The nodes of a tree that nothing follows.
    async fn leaves(
        &self,
        tree: TreeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError>;
    /// One node.
    async fn node(&self, id: NodeId) -> Result<Option<Node>, StoreError>;
    /// What follows a node directly, oldest first.
    async fn children(
        &self,
        of: NodeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError>;
    /// The nodes from depth `from` on, on the way from the root to `head`: at most `limit`, fewer where they are large, yet
    /// at least one if there is any.
    async fn path(&self, head: NodeId, from: u64, limit: u64) -> Result<Vec<Node>, StoreError>;
    /// Where Claude Code can take a conversation up that ends with this node; `None` before its agent has said anything.
    async fn resume_point(&self, node: NodeId) -> Result<Option<ResumePoint>, StoreError>;
    /// Nodes in which all of these words are said, the newest first, after `before`.
    async fn search(
        &self,
        words: &str,
        tree: Option<TreeId>,
        before: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<Found>, StoreError>;
}
