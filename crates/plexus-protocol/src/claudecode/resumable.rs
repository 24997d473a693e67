//! `claudecode.resumable`: the Claude Code sessions that `claudecode.create` can continue.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{SessionId, UnixSeconds};

/// Parameters of `claudecode.resumable`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumableParams {
    /// The absolute path of the directory in which Claude Code was started.
    pub working_dir: String,
    /// Maximum number of sessions, up to 100; default 20.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Result of `claudecode.resumable`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResumableResult {
    /// The sessions, the newest first.
    Ok {
        /// The sessions.
        sessions: Vec<ResumableSession>,
    },
}

/// A session of Claude Code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResumableSession {
    /// Its id: `resume` of `claudecode.create`.
    pub id: SessionId,
    /// When its transcript was last changed.
    pub modified_at: UnixSeconds,
    /// The start of its first prompt.
    pub first_prompt: String,
}
