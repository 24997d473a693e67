//! `arbor`: conversation trees. A node is one message, or the outcome of a turn. The path from the root to a
//! node is a conversation. Forked sessions share the start of their paths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{NodeId, Object, SessionId, SessionName, TreeId, UnixSeconds};

/// A position in a conversation tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The tree.
    pub tree_id: TreeId,
    /// The node in it.
    pub node_id: NodeId,
}

/// The author of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// None: the root of a tree.
    Root,
    /// The author of a prompt, or a tool that returns its result.
    User,
    /// The agent.
    Assistant,
    /// The hub: the outcome of a turn.
    Outcome,
}

/// A node without its whole content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeSummary {
    /// Its id.
    pub id: NodeId,
    /// The node before it; omitted for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<NodeId>,
    /// The number of nodes above it.
    pub depth: u64,
    /// Its author.
    pub role: Role,
    /// The session that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The turn of that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The number of nodes that directly follow it: more than one if sessions were forked here.
    pub children: u64,
    /// The start of its content.
    pub preview: String,
    /// When it was created.
    pub created_at: UnixSeconds,
}

/// A node with its whole content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// The summary.
    #[serde(flatten)]
    pub summary: NodeSummary,
    /// The tree.
    pub tree_id: TreeId,
    /// The content: content blocks as in the Claude API, where tool results have the `decision` on their
    /// call; for an outcome, an object.
    #[schemars(with = "Vec<Object>")]
    pub content: Value,
}

/// A session in a tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeSession {
    /// Its id.
    pub id: SessionId,
    /// Its name; for a deleted session, its last name.
    pub name: SessionName,
    /// The last node of its conversation.
    pub head: NodeId,
    /// Whether it was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

/// A tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeSummary {
    /// Its id.
    pub id: TreeId,
    /// Its root node.
    pub root: NodeId,
    /// The number of its nodes.
    pub nodes: u64,
    /// The sessions in it.
    pub sessions: Vec<TreeSession>,
    /// When it was created.
    pub created_at: UnixSeconds,
}

/// The format of a rendered conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Plain text.
    #[default]
    Text,
    /// Markdown.
    Markdown,
    /// Messages as in the Claude API.
    Messages,
}

/// Declares parameters that select a page of a conversation. `serde(flatten)` is not an alternative: its error messages do not name
/// the field.
macro_rules! page_of_a_path {
    ($(#[$attribute:meta])* $name:ident { $($more:tt)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The last node; by default that of the session.
            #[serde(default)]
            pub node_id: Option<NodeId>,
            /// Session id.
            #[serde(default)]
            pub session_id: Option<SessionId>,
            /// Session name instead of the id.
            #[serde(default)]
            pub name: Option<String>,
            $($more)*
            /// The depth of the first node; 0 is the root.
            #[serde(default)]
            pub from: Option<u64>,
            /// Maximum number of nodes.
            #[serde(default)]
            pub limit: Option<u64>,
        }
    };
}

page_of_a_path! {
    /// Parameters that identify a conversation: by its session or by its last node.
    PathParams {}
}

page_of_a_path! {
    /// Parameters of `arbor.render`.
    RenderParams {
        /// The format; default `text`.
        #[serde(default)]
        pub format: Option<Format>,
    }
}

/// Parameters of `arbor.tree_list`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeListParams {
    /// Continues after this tree.
    #[serde(default)]
    pub after: Option<TreeId>,
    /// Maximum number of trees.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Parameters of `arbor.tree_get` and `arbor.leaves`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeParams {
    /// The tree.
    pub tree_id: TreeId,
    /// Continues after this node.
    #[serde(default)]
    pub after: Option<NodeId>,
    /// Maximum number of nodes.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Parameters of `arbor.node_get`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeParams {
    /// The node.
    pub node_id: NodeId,
}

/// Parameters of `arbor.children`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildrenParams {
    /// The node.
    pub node_id: NodeId,
    /// Continues after this child of the node.
    #[serde(default)]
    pub after: Option<NodeId>,
    /// Maximum number of nodes.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Parameters of `arbor.search`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchParams {
    /// Words that a node must all contain.
    pub query: String,
    /// Searches only this tree.
    #[serde(default)]
    pub tree_id: Option<TreeId>,
    /// Continues with nodes older than this one.
    #[serde(default)]
    pub before: Option<NodeId>,
    /// Maximum number of nodes.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Parameters of `arbor.delete`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteParams {
    /// The tree; no existing session may use it.
    pub tree_id: TreeId,
}

/// Result of `arbor.tree_list`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TreeListResult {
    /// The trees.
    Ok {
        /// Oldest first.
        trees: Vec<TreeSummary>,
        /// For `after`, if there may be more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<TreeId>,
    },
}

/// Result of `arbor.tree_get`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TreeResult {
    /// The tree.
    Ok {
        /// The tree and its sessions.
        tree: TreeSummary,
        /// Its nodes in the order of creation.
        nodes: Vec<NodeSummary>,
        /// For `after`, if there may be more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<NodeId>,
    },
}

/// Result of `arbor.children` and `arbor.leaves`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NodesResult {
    /// The nodes.
    Ok {
        /// Oldest first.
        nodes: Vec<NodeSummary>,
        /// For `after`, if there may be more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<NodeId>,
    },
}

/// Result of `arbor.node_get`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NodeResult {
    /// The node.
    Ok {
        /// The node with its whole content.
        node: Node,
    },
}

/// Result of `arbor.path`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PathResult {
    /// The conversation.
    Ok {
        /// From the root on.
        nodes: Vec<Node>,
        /// For `from`, if there is more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
    },
}

/// Result of `arbor.render`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RenderResult {
    /// The conversation.
    Ok {
        /// As text or Markdown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// As messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        messages: Option<Vec<Object>>,
        /// For `from`, if there is more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
    },
}

/// A search result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The tree.
    pub tree_id: TreeId,
    /// The node in it.
    pub node: NodeSummary,
}

/// Result of `arbor.search`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SearchResult {
    /// The search results.
    Ok {
        /// Newest first.
        found: Vec<Hit>,
        /// For `before`, if there may be more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<NodeId>,
    },
}

/// Result of `arbor.delete`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DeleteResult {
    /// All nodes but the root were deleted.
    Ok {
        /// The tree.
        tree_id: TreeId,
        /// The number of deleted nodes.
        removed: u64,
    },
}
