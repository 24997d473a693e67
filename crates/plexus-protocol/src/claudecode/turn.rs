//! `claudecode.chat`, `chat_async`, `send`, `poll` and `event`: a turn is begun, added to and read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Status;
use crate::{Approval, Attention, NumberedEvent, Object, SessionId, UnixSeconds};

/// Parameters of `claudecode.chat` and `claudecode.chat_async`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// What the agent is to do; at most 16 MiB.
    pub prompt: String,
    /// Has Claude Code read the files that are named as `@path` in it, unasked (operator only).
    #[serde(default)]
    pub expand: Option<bool>,
}

/// Result of `claudecode.chat_async`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChatAsyncResult {
    /// The turn began.
    Started {
        /// The session.
        session_id: SessionId,
        /// The turn's number.
        turn: u64,
        /// For loopback_wait: all that comes of this turn is newer.
        cursor: u64,
    },
}

/// Result of `claudecode.send`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SendResult {
    /// The message is part of the turn.
    Sent {
        /// The session.
        session_id: SessionId,
        /// The turn it was added to.
        turn: u64,
    },
}

/// Parameters of `claudecode.poll`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// First event wanted; else on from this caller's last position.
    #[serde(default)]
    pub from_seq: Option<u64>,
    /// At most so many events; 100 unless said.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Which turn; the latest unless said.
    #[serde(default)]
    pub turn: Option<u64>,
    /// Wait up to so long for something new.
    #[serde(default)]
    pub wait_ms: Option<u64>,
    /// Cut texts longer than this; 8192 unless said.
    #[serde(default)]
    pub max_bytes: Option<u64>,
}

/// Result of `claudecode.poll` and `claudecode.chat`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PollResult {
    /// What there is.
    Ok {
        /// Where the turn stands.
        status: Status,
        /// Which turn; 0 before the first.
        turn: u64,
        /// Its events from the position asked for.
        events: Vec<NumberedEvent>,
        /// What keeps the agent from going on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attention: Vec<Attention>,
        /// What of this session waits for an answer now.
        pending_approvals: Vec<Approval>,
        /// The first event the next poll returns.
        read_position: u64,
        /// How many events the turn has.
        total_events: u64,
        /// Whether there are more than were returned.
        has_more: bool,
    },
}

/// Parameters of `claudecode.event`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// Which turn; the latest unless said.
    #[serde(default)]
    pub turn: Option<u64>,
    /// Which event.
    pub seq: u64,
}

/// Result of `claudecode.event`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventResult {
    /// The event in full.
    Ok {
        /// Its turn.
        turn: u64,
        /// Its number.
        seq: u64,
        /// The event.
        #[schemars(with = "Object")]
        event: Value,
        /// When it was stored.
        at: UnixSeconds,
    },
}
