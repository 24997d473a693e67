//! `claudecode.fork`: a new session that shares the history of another up to a point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arbor::Position;
use crate::{NodeId, SessionId, SessionName};

/// Parameters of `claudecode.fork`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// Name of the new session.
    pub new_name: SessionName,
    /// The last shared turn (number) or node (id); by default everything that is finished.
    #[serde(default)]
    pub at: Option<ForkAt>,
}

/// A point in a session's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ForkAt {
    /// The end of this turn; 0 is before the first turn.
    Turn(u64),
    /// This node of its conversation.
    Node(NodeId),
}

/// Result of `claudecode.fork`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ForkResult {
    /// The new session was created.
    Forked {
        /// Its id.
        id: SessionId,
        /// The node from which its conversation continues.
        head: Position,
    },
}
