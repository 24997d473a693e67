//! Conversation trees: their nodes and the reads of them.

use async_trait::async_trait;
use plexus_protocol::arbor::{Node, NodeSummary, Role, TreeSummary};
use plexus_protocol::{NodeId, SessionId, TreeId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StoreError;

/// Where the conversation of a new session starts.
#[derive(Debug, Clone)]
pub enum ConversationStart {
    /// At the root of a new tree.
    NewTree,
    /// At an existing node.
    Forked,
    /// After the messages of a Claude Code conversation that the hub did not start.
    Adopted(AdoptedConversation),
}

/// A Claude Code conversation that the hub did not start. It becomes a new tree.
#[derive(Debug, Clone)]
pub struct AdoptedConversation {
    /// The id of Claude Code's session.
    pub session: SessionId,
    /// The root of the tree.
    pub root: NodeId,
    /// The messages, the first one below the root and each further one below the one before.
    pub messages: Vec<NodeRow>,
}

/// A node to be added: one message, or the outcome of a turn.
#[derive(Debug, Clone)]
pub struct NodeRow {
    /// Its id.
    pub id: NodeId,
    /// Its tree.
    pub tree: TreeId,
    /// Its parent.
    pub parent: NodeId,
    /// The role of its author.
    pub role: Role,
    /// The message.
    pub content: Value,
    /// The turn.
    pub turn: u64,
    /// The entry of Claude Code's transcript that contains it, if the agent wrote it.
    pub uuid: Option<String>,
}

/// A point where Claude Code can resume a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumePoint {
    /// The session with the transcript: one of the hub's, or a Claude Code session that the hub did not start.
    pub session: SessionId,
    /// The last entry of the transcript to use.
    pub uuid: String,
}

/// A search result.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The tree.
    pub tree: TreeId,
    /// The node.
    pub node: NodeSummary,
}

/// The reads of conversation trees. The next page starts after the last node or tree of the page before.
#[async_trait]
pub trait Arbor: Send + Sync + 'static {
    /// One tree and its sessions, including deleted ones.
    async fn tree(&self, id: TreeId) -> Result<Option<TreeSummary>, StoreError>;
    /// All trees, oldest first.
    async fn trees(&self, after: Option<TreeId>, limit: u64) -> Result<Vec<TreeSummary>, StoreError>;
    /// The nodes of a tree, oldest first.
    async fn nodes(
        &self,
        tree: TreeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError>;
    /// The nodes of a tree without children, oldest first.
    async fn leaves(
        &self,
        tree: TreeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError>;
    /// One node.
    async fn node(&self, id: NodeId) -> Result<Option<Node>, StoreError>;
    /// The children of a node, oldest first.
    async fn children(
        &self,
        of: NodeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError>;
    /// The nodes from depth `from` on, on the path from the root to `head`, at most `limit`. A page of large nodes is shorter,
    /// but has at least one node if there is any.
    async fn path(&self, head: NodeId, from: u64, limit: u64) -> Result<Vec<Node>, StoreError>;
    /// Where Claude Code can resume a conversation that ends with this node: at most `limit` points, the last one first. There is
    /// none before the first message of an agent.
    async fn resume_points(&self, node: NodeId, limit: usize) -> Result<Vec<ResumePoint>, StoreError>;
    /// The nodes that contain all of these words, newest first, older than `before`.
    async fn search(
        &self,
        words: &str,
        tree: Option<TreeId>,
        before: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<SearchHit>, StoreError>;
}
