//! Sessions, their trees and their turns in progress, as they are shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, PolicyName, ProjectView, SandboxView, Status, Wall};
use crate::arbor::Position;
use crate::budget::BudgetView;
use crate::worktree::WorktreeView;
use crate::{AskedOf, Attention, Object, SessionId, SessionName, UnixSeconds};

/// A session as `get` and `list` show it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: SessionName,
    /// Where it stands.
    pub status: Status,
    /// What keeps it from going on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attention: Vec<Attention>,
    /// Its latest turn; 0 before the first.
    pub turn: u64,
    /// Where it works.
    pub working_dir: String,
    /// Its own worktree, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeView>,
    /// The model it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it asks.
    pub channel: Channel,
    /// Whether its calls stop at the gate.
    pub loopback_enabled: bool,
    /// What is said at the gate.
    pub policy: PolicyName,
    /// The mode its process last said it is in, or the one it will be started in.
    pub permission_mode: String,
    /// Whether it may start agents of its own.
    pub hub_tools: bool,
    /// Who answers for it.
    pub answers_to: AskedOf,
    /// How many levels it is below the uppermost session that you see.
    pub depth: u32,
    /// How many approvals wait for an answer.
    pub pending_approvals: u64,
    /// What its turns have cost.
    pub cost_usd: f64,
    /// It and all below it, together.
    pub tree: TreeView,
    /// What it and all below it may use; left out where it has no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetView>,
    /// Where its conversation stands.
    pub head: Position,
    /// When an unanswered approval expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_timeout_secs: Option<u64>,
    /// When an unanswered approval goes on to the next above, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_after_secs: Option<u64>,
    /// Whether it is given a turn when those below it ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wake: bool,
    /// The process of its present run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// What keeps its processes from the hub's own files; `get` tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<Wall>,
    /// Why there is no such wall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_missing: Option<String>,
    /// What the sandbox of its processes protects besides; `get` tells, where there is a sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxView>,
    /// What its processes load besides Claude Code itself, by name; `get` tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<LoadsView>,
    /// When it was made.
    pub created_at: UnixSeconds,
    /// What its maker kept with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// What the processes of a session load besides Claude Code itself. Names only: what stands behind them may be secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadsView {
    /// The MCP servers it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<String>,
    /// What it gets of the user's own settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_settings: Vec<String>,
    /// What of the project's own files the operator trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectView>,
}

/// What a session and all below it come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeView {
    /// How many they are.
    pub sessions: u64,
    /// How many of them have a turn in progress.
    pub running: u64,
    /// How many approvals of theirs wait for an answer.
    pub pending_approvals: u64,
    /// What their turns have cost.
    pub cost_usd: f64,
}

/// One turn in progress, as `claudecode.streams` shows it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StreamView {
    /// The session.
    pub session_id: SessionId,
    /// Its name.
    pub session_name: SessionName,
    /// The turn.
    pub turn: u64,
    /// Where it stands.
    pub status: Status,
    /// What keeps the agent from going on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attention: Vec<Attention>,
    /// How many events it has.
    pub total_events: u64,
    /// The first event the caller's next poll returns.
    pub read_position: u64,
    /// When it began.
    pub started_at: UnixSeconds,
}
