//! `claudecode.diff`: the changes of a session in its worktree, as unified diffs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SessionId;
use crate::worktree::FileDiff;

/// Parameters of `claudecode.diff`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// Shows more of this file only; a `path` from an earlier result.
    #[serde(default)]
    pub path: Option<String>,
}

/// Result of `claudecode.diff`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DiffResult {
    /// The differences from the initial state of the worktree: its base commit, copied files and setup.
    Ok {
        /// The base commit.
        base: String,
        /// The branch of the worktree.
        branch: String,
        /// The files that differ, by path, including new ones.
        files: Vec<FileDiff>,
        /// Whether there are more files.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
}
