//! Frames of `GET /events`, the server-sent event stream of the console. Each frame type is named after the `event:` line it
//! is sent with. A `changed` frame has no content, and a `delta` frame is Claude Code's own message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Approval, ErrorKind, Event, UnixSeconds};

/// A group of operations that a signed-in person may have access to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read sessions, conversations and rules.
    Read,
    /// Follow approvals.
    Watch,
    /// Answer approvals.
    Decide,
    /// Start, prompt and stop sessions.
    Act,
    /// Add rules and read the audit log.
    Rule,
}

/// `hello`: the first frame of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelloFrame {
    /// The stream sends approval changes with a higher number than this.
    pub cursor: u64,
    /// The operations that the caller has access to.
    pub may: Vec<Access>,
    /// The version of the hub.
    pub version: String,
}

/// The change that an `approval` frame reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalChange {
    /// The approval was created.
    Asked,
    /// The approval was resolved.
    Resolved,
}

/// `approval`: an approval was created or resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalFrame {
    /// Which of the two.
    #[serde(rename = "type")]
    pub change: ApprovalChange,
    /// The approval in its current state.
    pub approval: Approval,
}

/// `session`: an event of the session that the stream follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFrame {
    /// The turn of the event.
    pub turn: u64,
    /// The number of the event in its turn.
    pub seq: u64,
    /// The event as it is stored.
    #[schemars(with = "Event")]
    pub event: Value,
    /// When the event was stored.
    pub at: UnixSeconds,
}

/// `error`: the stream, or its session part, ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorFrame {
    /// The stable word for the failure.
    #[serde(rename = "type")]
    pub kind: ErrorKind,
    /// The failure, for people.
    pub message: String,
    /// Only the session part ended: this session cannot be followed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub session: bool,
}
