//! `claudecode.transcript`: a session's whole conversation, to be kept or shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SessionId;

/// What a transcript is written as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptFormat {
    /// Markdown.
    #[default]
    Markdown,
    /// One node of the conversation as JSON on each line.
    Jsonl,
    /// A page to be opened in a browser, with the decisions in line; it loads nothing and runs nothing.
    Html,
}

/// Parameters of `claudecode.transcript`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TranscriptParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// As what; `markdown` unless said.
    #[serde(default)]
    pub format: Option<TranscriptFormat>,
    /// Goes on from here: the `next` of the part before.
    #[serde(default)]
    pub from: Option<u64>,
    /// How many nodes of the conversation at most.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Result of `claudecode.transcript`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TranscriptResult {
    /// A part of it; all parts, one after the other, are the whole.
    Ok {
        /// The text.
        text: String,
        /// For `from`, if there is more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
    },
}
