//! `claudecode.diff`: what a session has made of its worktree, as text to read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SessionId;
use crate::worktree::FileDiff;

/// Parameters of `claudecode.diff`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffParams {
    /// Which session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// Only this file, of which more is shown then; a `path` as it was shown.
    #[serde(default)]
    pub path: Option<String>,
}

/// Result of `claudecode.diff`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DiffResult {
    /// How the worktree differs from the commit it began at, and from what was copied and set up there.
    Ok {
        /// That commit.
        base: String,
        /// The branch of the worktree.
        branch: String,
        /// The files that differ, by path, new ones included.
        files: Vec<FileDiff>,
        /// Whether there are more.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
}
