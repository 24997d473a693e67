//! `claudecode.transcript`: a session's whole conversation, to keep or to show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SessionId;

/// The format of a transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptFormat {
    /// Markdown.
    #[default]
    Markdown,
    /// JSON lines, one per node of the conversation.
    Jsonl,
    /// A page for a browser, with the decisions inline. It loads nothing and runs no scripts.
    Html,
}

/// Parameters of `claudecode.transcript`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TranscriptParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The format; default `markdown`.
    #[serde(default)]
    pub format: Option<TranscriptFormat>,
    /// Continues from here: the `next` of the previous part.
    #[serde(default)]
    pub from: Option<u64>,
    /// Maximum number of nodes.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Result of `claudecode.transcript`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TranscriptResult {
    /// A part of the transcript; concatenate all parts.
    Ok {
        /// The text.
        text: String,
        /// For `from`, if there is more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
    },
}
