//! The caller of a method. Every door authenticates its peer (by token or socket) as one of these. Access
//! checks use nothing else.

use serde::{Deserialize, Serialize};

use crate::token::TokenRight;
use crate::{AskedOf, SessionId, TokenName};

/// The caller of a method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Principal {
    /// The person or program with the operator's token.
    Operator,
    /// The holder of a token that the operator created.
    Token {
        /// The name of the token.
        name: TokenName,
        /// Its right.
        right: TokenRight,
    },
    /// An agent outside the hub that connects through `plexus mcp`. It decides for the sessions that it
    /// created.
    Parent {
        /// Distinguishes it from other agents outside the hub.
        id: String,
    },
    /// One supervised session, by the token of one of its runs.
    Session {
        /// The session.
        id: SessionId,
        /// The run that the token belongs to.
        run: u32,
    },
}

impl Principal {
    /// The address for approvals that this caller decides.
    pub fn asked_as(&self) -> AskedOf {
        match self {
            // A token acts for the operator, so approvals addressed to the operator are addressed to it as well.
            Self::Operator | Self::Token { .. } => AskedOf::Operator,
            Self::Parent { id } => AskedOf::Parent { id: id.clone() },
            Self::Session { id, .. } => AskedOf::Session { id: *id },
        }
    }

    /// A stable key for data of this caller, such as its read positions.
    pub fn key(&self) -> String {
        match self {
            Self::Operator => "operator".to_owned(),
            Self::Token { name, .. } => format!("token:{name}"),
            Self::Parent { id } => format!("parent:{id}"),
            Self::Session { id, .. } => format!("session:{id}"),
        }
    }
}
