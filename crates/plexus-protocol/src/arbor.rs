//! Conversation trees as they are named on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{NodeId, TreeId};

/// A place in a conversation tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The tree.
    pub tree_id: TreeId,
    /// The node in it.
    pub node_id: NodeId,
}
