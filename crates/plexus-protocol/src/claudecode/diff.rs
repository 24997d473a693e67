//! `claudecode.diff`: the changes of a session in its worktree, as unified diffs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::review::{BranchCommit, CommitProposal};
use crate::SessionId;
use crate::worktree::{BranchState, FileDiff};

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
    /// Number of unchanged lines around each change; default 3.
    #[serde(default)]
    pub context_lines: Option<u32>,
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
        /// The branch that `base` was taken from, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base_branch: Option<String>,
        /// Identifies this content; pass it to `commit`. Omitted if the worktree is too large to read in time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// The commit of the branch; pass it to `merge`. Omitted if it has content that this diff does not show.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// The commits of the branch since the base commit, newest first, at most 100.
        commits: Vec<BranchCommit>,
        /// What is left to commit and to merge.
        state: BranchState,
        /// The message and the author that `commit` and `merge` use by default.
        proposal: CommitProposal,
        /// The files that differ, by path, including new ones.
        files: Vec<FileDiff>,
        /// Whether there are more files.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
}
