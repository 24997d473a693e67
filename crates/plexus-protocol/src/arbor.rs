//! `arbor`: conversation trees. A node is one message, or how a turn ended; the path from the root to a node is a
//! conversation, and sessions that were forked share the beginning of theirs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{NodeId, Object, SessionId, SessionName, TreeId, UnixSeconds};

/// A place in a conversation tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The tree.
    pub tree_id: TreeId,
    /// The node in it.
    pub node_id: NodeId,
}

/// Who speaks in a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Nobody: where a tree begins.
    Root,
    /// Whoever prompts the agent, or a tool that gives its result.
    User,
    /// The agent.
    Assistant,
    /// The hub: how a turn ended.
    Outcome,
}

/// A node without what it says in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeSummary {
    /// Its id.
    pub id: NodeId,
    /// What it follows; the root follows nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<NodeId>,
    /// How many nodes are above it.
    pub depth: u64,
    /// Who speaks.
    pub role: Role,
    /// The session it was said in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The turn of that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// How many nodes follow it directly: more than one where it was forked.
    pub children: u64,
    /// How it begins.
    pub preview: String,
    /// When it was said.
    pub created_at: UnixSeconds,
}

/// A node with all it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Where it stands.
    #[serde(flatten)]
    pub summary: NodeSummary,
    /// The tree.
    pub tree_id: TreeId,
    /// What it says: content blocks as the Claude API has them, results of tools with the `decision` that let them run or
    /// not; of an outcome, an object.
    #[schemars(with = "Vec<Object>")]
    pub content: Value,
}

/// A session that speaks in a tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeSession {
    /// Which.
    pub id: SessionId,
    /// Its name; when it was deleted, the one it had.
    pub name: SessionName,
    /// Where its conversation stands.
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
    /// Where it begins.
    pub root: NodeId,
    /// How many nodes it has.
    pub nodes: u64,
    /// Those who speak in it.
    pub sessions: Vec<TreeSession>,
    /// When it was begun.
    pub created_at: UnixSeconds,
}

/// What a conversation is rendered as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Plain text.
    #[default]
    Text,
    /// Markdown.
    Markdown,
    /// Messages as the Claude API takes them.
    Messages,
}

/// Declares parameters that select a page of a conversation. `serde(flatten)` is no alternative: its error messages do not name
/// the field.
macro_rules! page_of_a_path {
    ($(#[$attribute:meta])* $name:ident { $($more:tt)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The last node; left out, where the session stands.
            #[serde(default)]
            pub node_id: Option<NodeId>,
            /// The session, by id…
            #[serde(default)]
            pub session_id: Option<SessionId>,
            /// …or by name.
            #[serde(default)]
            pub name: Option<String>,
            $($more)*
            /// The depth of the first node that is wanted; 0 is the root.
            #[serde(default)]
            pub from: Option<u64>,
            /// How many nodes at most.
            #[serde(default)]
            pub limit: Option<u64>,
        }
    };
}

page_of_a_path! {
    /// Parameters that name a conversation: by the session that has it, or by its last node.
    PathParams {}
}

page_of_a_path! {
    /// Parameters of `arbor.render`.
    RenderParams {
        /// As what; `text` unless said.
        #[serde(default)]
        pub format: Option<Format>,
    }
}

/// Parameters of `arbor.tree_list`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeListParams {
    /// Goes on after this tree.
    #[serde(default)]
    pub after: Option<TreeId>,
    /// How many at most.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Parameters of `arbor.tree_get` and `arbor.leaves`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeParams {
    /// The tree.
    pub tree_id: TreeId,
    /// Goes on after this node.
    #[serde(default)]
    pub after: Option<NodeId>,
    /// How many nodes at most.
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
    /// Goes on after this one of its children.
    #[serde(default)]
    pub after: Option<NodeId>,
    /// How many at most.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Parameters of `arbor.search`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchParams {
    /// Words; all of them are to be found.
    pub query: String,
    /// In this tree only.
    #[serde(default)]
    pub tree_id: Option<TreeId>,
    /// Goes on with what is older than this node.
    #[serde(default)]
    pub before: Option<NodeId>,
    /// How many at most.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Parameters of `arbor.delete`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteParams {
    /// The tree; no living session may speak in it.
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
        /// It and those who speak in it.
        tree: TreeSummary,
        /// Its nodes as they were added.
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
        /// With all it says.
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

/// Something that was found.
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
    /// What was found.
    Ok {
        /// The newest first.
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
    /// All of it but the root is gone.
    Ok {
        /// The tree.
        tree_id: TreeId,
        /// How many nodes were removed.
        removed: u64,
    },
}
