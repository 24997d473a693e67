//! Sessions, their runs and turns, and the events in those.

use std::collections::BTreeMap;

use plexus_protocol::claudecode::{Channel, McpServer, PermissionMode, PolicyName, TrustedProject};
use plexus_protocol::worktree::Worktree;
use plexus_protocol::{ApprovalKind, AskedOf, NodeId, Object, SessionId, SessionName, TreeId, UnixSeconds};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::BudgetRow;
use crate::arbor::{Begins, ResumePoint};

/// One run of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    /// The session.
    pub session: SessionId,
    /// Its run, from 1.
    pub run: u32,
}

/// What a session was made with; kept as one JSON text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionConfig {
    /// Where the agent works.
    pub working_dir: String,
    /// The worktree that is its own, if it has one; the agent works in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The model it was given.
    pub model: Option<String>,
    /// The system prompt it was given.
    pub system_prompt: Option<String>,
    /// Whether its calls stop at the gate.
    pub loopback_enabled: bool,
    /// How it asks.
    pub channel: Channel,
    /// What it may do by itself.
    #[serde(default)]
    pub permission_mode: PermissionMode,
    /// What is said at the gate.
    #[serde(default)]
    pub policy: PolicyName,
    /// Whether live listeners get token deltas.
    #[serde(default)]
    pub deltas: bool,
    /// Environment on top of what it inherits.
    pub env: BTreeMap<String, String>,
    /// The MCP servers it was given, by name; with their secrets, until it is deleted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// What of its project's own files the operator trusts; until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<TrustedProject>,
    /// Whether it may start agents of its own.
    pub hub_tools: bool,
    /// What it may allow for those below it, as rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approve_scope: Vec<String>,
    /// When an unanswered approval expires.
    pub approval_timeout_secs: Option<u64>,
    /// When an unanswered approval goes on to the next above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_after_secs: Option<u64>,
    /// Whether it is given a turn when those below it ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wake: bool,
    /// What its maker kept with it.
    pub metadata: Option<Object>,
    /// Where it was forked from: what its first process takes up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<ResumePoint>,
}

/// A session to be made.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: SessionName,
    /// Who answers for it.
    pub answers_to: AskedOf,
    /// What it was made with.
    pub config: SessionConfig,
    /// Its conversation tree.
    pub tree: TreeId,
    /// Where its conversation stands: the root of a new tree, or a node of one that is there.
    pub head: NodeId,
    /// Which of both.
    pub begins: Begins,
}

/// A session as it is kept.
#[derive(Debug, Clone)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: SessionName,
    /// Who answers for it.
    pub answers_to: AskedOf,
    /// What it was made with.
    pub config: SessionConfig,
    /// Its conversation tree.
    pub tree: TreeId,
    /// Where its conversation began.
    pub beginning: NodeId,
    /// Where its conversation stands.
    pub head: NodeId,
    /// Its latest turn; 0 before the first.
    pub latest_turn: u64,
    /// Its latest run; 0 before the first.
    pub latest_run: u32,
    /// When it was made.
    pub created_at: UnixSeconds,
    /// When it was deleted, if it was.
    pub deleted_at: Option<UnixSeconds>,
    /// What its turns have cost, in dollars.
    pub cost_usd: f64,
    /// Up to which number of the feed it was woken.
    pub woken_to: u64,
}

/// A living session and how it stands.
#[derive(Debug, Clone)]
pub struct LivingSession {
    /// The session.
    pub row: SessionRow,
    /// How its latest turn stands; `None` before the first.
    pub turn: Option<TurnState>,
    /// What its open approvals ask about, one entry each.
    pub open: Vec<ApprovalKind>,
    /// Its limits.
    pub budget: Vec<BudgetRow>,
}

/// How a turn stands.
#[derive(Debug, Clone)]
pub struct TurnState {
    /// In a word.
    pub status: TurnStatus,
    /// What the session's owner has to remember of it.
    pub progress: Value,
    /// When it began.
    pub started_at: UnixSeconds,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Committed, its keeper not yet known: given up when found by a new hub.
    Starting,
    /// Its keeper is known.
    Running,
    /// Its stdin is closed, or about to be; prompts go to the next run.
    Ending,
    /// Its process is not the hub's: it was started elsewhere and asks over MCP.
    External,
    /// Over.
    Ended,
}

/// The identity of the process that keeps a run. A pid alone is used again after a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProcess {
    /// Its process id.
    pub pid: i32,
    /// When it started, in clock ticks after boot.
    pub start_time: u64,
    /// The boot of the machine.
    pub boot_id: String,
}

/// A run as it is kept.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// Which.
    pub key: RunKey,
    /// Where it stands.
    pub state: RunState,
    /// Its keeper, once that is known.
    pub process: Option<RunProcess>,
    /// Up to where its journal has been read and stored.
    pub journal_offset: u64,
    /// When it was begun.
    pub created_at: UnixSeconds,
}

/// How a turn stands, as far as the store is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Not over.
    Running,
    /// Ended well.
    Complete,
    /// Ended badly.
    Failed,
    /// Ended by someone.
    Interrupted,
}

/// A turn as it is kept.
#[derive(Debug, Clone)]
pub struct TurnRow {
    /// The session.
    pub session: SessionId,
    /// Its number, from 1.
    pub turn: u64,
    /// How it stands.
    pub status: TurnStatus,
    /// The run its prompt was bound to.
    pub run: Option<u32>,
    /// The prompt.
    pub prompt: String,
    /// The uuid the prompt goes out under, in that run.
    pub prompt_uuid: String,
    /// What the session's owner has to remember of it between two lines.
    pub progress: Value,
    /// When it began.
    pub started_at: UnixSeconds,
    /// When it ended.
    pub ended_at: Option<UnixSeconds>,
    /// Whether its events are there.
    pub events: EventsOfTurn,
    /// Where the conversation stood when it ended.
    pub head: Option<NodeId>,
}

/// Whether the events of a turn are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventsOfTurn {
    /// All of them.
    Kept,
    /// They are being removed: some may be there, and are shown to nobody.
    Removing,
    /// None any more.
    Removed,
}

/// An event as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: u64,
    /// Its number in the turn.
    pub seq: u64,
    /// The event.
    pub event: Value,
    /// When it was stored.
    pub at: UnixSeconds,
}
