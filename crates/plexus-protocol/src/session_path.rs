//! Paths of sessions: the names from the topmost session down to a session, such as `lead/worker`. This module owns their
//! format. A path is computed when it is shown, because a rename changes the paths of all descendants.

use crate::{AskedOf, SessionName};

/// The path of a session below another one.
pub fn join_path(above: &str, name: &str) -> String {
    format!("{above}/{name}")
}

/// The path of a root session as the operator sees it. The path of a session that an agent outside the hub created starts
/// with the name of that agent.
pub fn root_path(answers_to: &AskedOf, name: &SessionName) -> String {
    match answers_to {
        AskedOf::Parent { id } => join_path(id, name.as_str()),
        AskedOf::Operator | AskedOf::Session { .. } => name.to_string(),
    }
}
