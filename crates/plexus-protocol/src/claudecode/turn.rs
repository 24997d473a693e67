//! `claudecode.chat`, `chat_async`, `send`, `poll` and `event`: start a turn, add to it and read it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Status;
use crate::{Approval, AttachmentGiven, Attention, NewEvent, NumberedEvent, Object, SessionId, UnixSeconds};

/// Parameters of `claudecode.chat`, `claudecode.chat_async` and `claudecode.send`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The task for the agent; at most 16 MiB.
    pub prompt: String,
    /// Lets Claude Code read files named as `@path` in it without an approval (operator only).
    #[serde(default)]
    #[schemars(extend("x-plexus-operator" = true))]
    pub expand: Option<bool>,
    /// Images, PDF documents and text files for the agent: at most 20 files and 10 MiB (not for agents).
    #[serde(default)]
    #[schemars(extend("x-plexus-operator" = true))]
    pub attachments: Option<Vec<AttachmentGiven>>,
}

/// Parameters of `claudecode.compact`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// What the summary has to keep; at most 8 KiB.
    #[serde(default)]
    pub instructions: Option<String>,
}

/// Result of `claudecode.chat_async`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChatAsyncResult {
    /// The turn started.
    Started {
        /// The session.
        session_id: SessionId,
        /// The turn's number.
        turn: u64,
        /// For loopback_wait: everything that happens in this turn is newer.
        cursor: u64,
    },
}

/// Result of `claudecode.send`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SendResult {
    /// The message was added to the turn.
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
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// First event; by default your last position.
    #[serde(default)]
    pub from_seq: Option<u64>,
    /// Maximum number of events; default 100.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The turn; default the latest.
    #[serde(default)]
    pub turn: Option<u64>,
    /// Waits up to this long for an event. For an agent, the start of a call does not end the wait.
    #[serde(default)]
    pub wait_ms: Option<u64>,
    /// Truncates longer texts; default 8192.
    #[serde(default)]
    pub max_bytes: Option<u64>,
}

/// Result of `claudecode.poll` and `claudecode.chat`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PollResult {
    /// The events and the state of the turn.
    Ok {
        /// The status of the turn.
        status: Status,
        /// The turn; 0 before the first.
        turn: u64,
        /// Its events from the requested position on.
        events: Vec<NumberedEvent>,
        /// Why the agent cannot continue.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attention: Vec<Attention>,
        /// The open approvals of this session.
        pending_approvals: Vec<Approval>,
        /// The first event that the next poll returns.
        read_position: u64,
        /// The number of events of the turn.
        total_events: u64,
        /// Whether the turn has more events than were returned.
        has_more: bool,
    },
}

/// Result of `claudecode.poll` without `from_seq` for an agent: what is new to it. The agent's own answers, Claude Code's internal messages
/// and empty fields are left out; a poll with `from_seq` returns a [`PollResult`] instead.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PollNews {
    /// The new events and the state of the turn.
    Ok {
        /// The status of the turn.
        status: Status,
        /// The turn; 0 before the first.
        turn: u64,
        /// Its new events.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        events: Vec<NewEvent>,
        /// Why the agent cannot continue.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attention: Vec<Attention>,
        /// The open approvals of this session.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pending_approvals: Vec<Approval>,
        /// Whether the turn has more events than were returned.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        has_more: bool,
    },
}

/// Parameters of `claudecode.event`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The turn; default the latest.
    #[serde(default)]
    pub turn: Option<u64>,
    /// The number of the event.
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
