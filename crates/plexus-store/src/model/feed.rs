//! What somebody is told: the entries of the feed.

use plexus_protocol::{ApprovalId, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What sort of thing a feed entry tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedKind {
    /// An approval was asked.
    Asked,
    /// An approval came to its end.
    Resolved,
    /// A turn ended.
    Finished,
    /// Something else its addressee should know.
    Notice,
}

/// One entry of the durable, numbered feed that `wait` reads.
#[derive(Debug, Clone)]
pub struct FeedRow {
    /// Its number, from 1, over all addressees.
    pub number: u64,
    /// Whom it is for ([`plexus_protocol::AskedOf::key`]).
    pub to: String,
    /// What it tells.
    pub kind: FeedKind,
    /// The session it is about.
    pub session: SessionId,
    /// The approval it is about.
    pub approval: Option<ApprovalId>,
    /// The turn it is about.
    pub turn: Option<u64>,
    /// More.
    pub data: Value,
}
