//! `claudecode.fork`: a session that shares the history of another up to a point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arbor::Position;
use crate::{NodeId, SessionId, SessionName};

/// Parameters of `claudecode.fork`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// What the new one is called.
    pub new_name: SessionName,
    /// The last turn, by number, or node, by id, that both share; left out, all that is finished.
    #[serde(default)]
    pub at: Option<ForkAt>,
}

/// A point in a session's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ForkAt {
    /// The end of this turn; 0 is before the first.
    Turn(u64),
    /// This node of its conversation.
    Node(NodeId),
}

/// Result of `claudecode.fork`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ForkResult {
    /// The new session is there.
    Forked {
        /// Its id.
        id: SessionId,
        /// Where its conversation goes on.
        head: Position,
    },
}
