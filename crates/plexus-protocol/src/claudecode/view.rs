//! How sessions, their trees and their turns in progress are shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, Hooks, ImportedView, PolicyName, ProjectView, SandboxKind, SandboxView, Status};
use crate::arbor::Position;
use crate::budget::BudgetView;
use crate::worktree::WorktreeView;
use crate::{ApprovalKind, AskedOf, Attention, HostName, Object, SessionId, SessionName, UnixSeconds};

/// A session as `get` and `list` return it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Its name, unique among the sessions of its creator.
    pub name: SessionName,
    /// The names from the topmost session that you see down to this one, such as `lead/worker`. It starts with the name of
    /// the agent outside the hub that created the topmost session, unless that agent is you.
    #[serde(default)]
    pub path: String,
    /// The host that runs it, if several hosts share the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// What it is about: the start of its first prompt, or the title that the operator gave it. Omitted before the first
    /// prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its status.
    pub status: Status,
    /// Why it cannot continue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attention: Vec<Attention>,
    /// What it does now; omitted if no turn is in progress and no approval is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_action: Option<CurrentAction>,
    /// When its last event was stored.
    #[serde(default)]
    pub last_activity_at: UnixSeconds,
    /// Its latest turn; 0 before the first.
    pub turn: u64,
    /// Its working directory.
    pub working_dir: String,
    /// The project that it works in.
    #[serde(default)]
    pub project: ProjectRef,
    /// Its own worktree, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeView>,
    /// Its configured model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it requests approvals.
    pub channel: Channel,
    /// Whether its calls pass the gate.
    pub loopback_enabled: bool,
    /// What the gate decides about calls that no rule matches.
    pub policy: PolicyName,
    /// The mode that its process last reported, or the one in which the next process starts.
    pub permission_mode: String,
    /// Whether it may start agents itself.
    pub hub_tools: bool,
    /// Its creator, which decides its approvals first.
    pub answers_to: AskedOf,
    /// The number of levels below the topmost session that you see.
    pub depth: u32,
    /// The number of its open approvals.
    pub pending_approvals: u64,
    /// The cost of its finished turns.
    pub cost_usd: f64,
    /// The cost of the turn in progress, as Claude Code reported it when its last tool call reached the gate. Omitted
    /// before the first report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_cost_usd: Option<f64>,
    /// Sums over the session and all below it.
    pub tree: TreeView,
    /// The budget of the session and all below it; omitted if it has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetView>,
    /// The last node of its conversation.
    pub head: Position,
    /// After how many seconds an approval without an answer expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_timeout_secs: Option<u64>,
    /// After how many seconds an approval without an answer escalates, if configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_after_secs: Option<u64>,
    /// Whether it gets a turn when sessions below it request approvals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wake: bool,
    /// The process of its current run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// What protects the hub's files from its processes; in `get` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<SandboxKind>,
    /// Why nothing protects them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_missing: Option<String>,
    /// Further protections of the sandbox of its processes; in `get` only, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxView>,
    /// What its processes load besides Claude Code itself; in `get` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<LoadsView>,
    /// The Claude Code session of which it continues a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<SessionId>,
    /// When it was created.
    pub created_at: UnixSeconds,
    /// When the operator archived it; omitted if it is not archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<UnixSeconds>,
    /// The metadata that its creator stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// The project of a session: the repository that contains its working directory, otherwise that directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectRef {
    /// The last component of `root`.
    pub name: String,
    /// The directory. For a session with its own worktree: the repository from which the worktree was created.
    pub root: String,
}

/// What a session does now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CurrentAction {
    /// Its process starts and has not read the prompt yet.
    Starting,
    /// It waits for its model.
    Thinking,
    /// Tool calls run.
    Tools {
        /// The latest calls, oldest first.
        calls: Vec<RunningCall>,
        /// How many earlier calls also run.
        #[serde(default, skip_serializing_if = "is_zero")]
        more: u64,
    },
    /// It waits for the answer to an approval.
    Approval {
        /// The kind of its oldest open approval.
        kind: ApprovalKind,
        /// The call that the approval is about. Written by the child: do not trust it.
        call: RunningCall,
        /// The decider that it is addressed to.
        asked_of: AskedOf,
        /// How many more approvals are open.
        #[serde(default, skip_serializing_if = "is_zero")]
        more: u64,
    },
}

/// A tool call in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunningCall {
    /// The tool.
    pub tool_name: String,
    /// Its command, file or URL, at most 200 bytes; empty if the gate did not see the call.
    pub summary: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What the processes of a session load besides Claude Code itself. Names only, because the contents may be secret; hooks are shown
/// in full.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadsView {
    /// Its MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<String>,
    /// The user's settings that it gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_settings: Vec<String>,
    /// The project files that the operator trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectView>,
    /// What it loads of the user's imported configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedView>,
    /// The hooks that the operator gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
}

/// Sums over a session and all below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeView {
    /// The number of sessions.
    pub sessions: u64,
    /// The number of sessions with a turn in progress.
    pub running: u64,
    /// The number of their open approvals.
    pub pending_approvals: u64,
    /// The cost of their turns.
    pub cost_usd: f64,
}

/// A turn, as `claudecode.streams` returns it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StreamView {
    /// The session.
    pub session_id: SessionId,
    /// Its name.
    pub session_name: SessionName,
    /// Its path as the caller sees it, such as `lead/worker`.
    pub session_path: String,
    /// The turn.
    pub turn: u64,
    /// Its status.
    pub status: Status,
    /// Why the agent cannot continue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attention: Vec<Attention>,
    /// The number of its events.
    pub total_events: u64,
    /// The first event that the caller's next poll returns.
    pub read_position: u64,
    /// When it started.
    pub started_at: UnixSeconds,
    /// When it ended; omitted while it is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnixSeconds>,
}
