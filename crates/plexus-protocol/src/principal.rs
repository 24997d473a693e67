//! Who is calling. Every door turns what it was shown (a token, a socket peer) into one of these; what a caller
//! may see and decide is worked out from it alone.

use serde::{Deserialize, Serialize};

use crate::token::TokenRight;
use crate::{AskedOf, SessionId, TokenName};

/// The caller of a method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Principal {
    /// The person, or program, that holds the operator's token.
    Operator,
    /// Whoever holds a token that the operator handed out.
    Token {
        /// Which.
        name: TokenName,
        /// What it is good for.
        right: TokenRight,
    },
    /// An agent outside the hub that came through `plexus mcp`; it answers for the sessions it made.
    Parent {
        /// How it is told from other agents outside the hub.
        id: String,
    },
    /// One supervised session, by the token of one of its runs.
    Session {
        /// The session.
        id: SessionId,
        /// The run whose token was shown.
        run: u32,
    },
}

impl Principal {
    /// The address at which this caller is asked.
    pub fn asked_as(&self) -> AskedOf {
        match self {
            // What is asked of the operator is there for those who stand in for it.
            Self::Operator | Self::Token { .. } => AskedOf::Operator,
            Self::Parent { id } => AskedOf::Parent { id: id.clone() },
            Self::Session { id, .. } => AskedOf::Session { id: *id },
        }
    }

    /// A stable key for what belongs to this caller, such as its read positions.
    pub fn key(&self) -> String {
        match self {
            Self::Operator => "operator".to_owned(),
            Self::Token { name, .. } => format!("token:{name}"),
            Self::Parent { id } => format!("parent:{id}"),
            Self::Session { id, .. } => format!("session:{id}"),
        }
    }
}
