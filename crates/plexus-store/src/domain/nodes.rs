//! Adds nodes to conversation trees. New nodes are appended at the head of a session.

use plexus_protocol::{NodeId, SessionId};
use serde_json::Value;

use super::Commit;
use crate::rows::{NewNode, SessionUpdate, Stored};
use crate::{NodeRow, Refusal, StoreError};

impl Commit<'_> {
    pub(super) fn add_node(&mut self, session: SessionId, node: &NodeRow) -> Stored<()> {
        self.check_exists(session)?;
        if !self.rows.insert_node(&NewNode { row: node, session, at: self.at })? {
            return Err(Refusal::NoSuchNode(node.parent).into());
        }
        self.rows.update_session(session, SessionUpdate::Head(node.id))
    }

    pub(super) fn extend_node(&mut self, node: NodeId, blocks: &[Value], uuid: Option<&str>) -> Stored<()> {
        if self.rows.extend_node(node, blocks, uuid)? {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!("node {node} does not exist and cannot be extended")))
    }
}
