//! Sessions, their runs and turns, and the events of turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use plexus_protocol::claudecode::{
    Channel, Hooks, ImportedConfig, McpServer, PermissionMode, PolicyName, TrustedProject,
};
use plexus_protocol::worktree::Worktree;
use plexus_protocol::{
    ApprovalKind, AskedOf, Event, HostName, NodeId, Object, SessionId, SessionName, TreeId, UnixSeconds,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::BudgetRow;
use crate::arbor::{ConversationStart, ResumePoint};

/// Names one run of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    /// The session.
    pub session: SessionId,
    /// Its run, from 1.
    pub run: u32,
}

/// The configuration of a session. Its JSON is the format of stored data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionConfig {
    /// The working directory of the agent.
    pub working_dir: String,
    /// The root of the repository that contains the working directory, as it was when the session was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Its own worktree, if it has one; the agent works in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The model.
    pub model: Option<String>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// Text that follows the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// Whether its tool calls stop at the gate.
    pub loopback_enabled: bool,
    /// The channel of its permission requests.
    pub channel: Channel,
    /// The permission mode it starts in.
    #[serde(default)]
    pub permission_mode: PermissionMode,
    /// The named policy of the gate.
    #[serde(default)]
    pub policy: PolicyName,
    /// Whether live listeners get token deltas.
    #[serde(default)]
    pub deltas: bool,
    /// Additional environment variables.
    pub env: BTreeMap<String, String>,
    /// Its MCP servers by name, with their secrets. Deleted with the session.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// The project files that the operator trusts. Deleted with the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<TrustedProject>,
    /// The servers and agents that the operator imported. Deleted with the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedConfig>,
    /// Whether it may create sessions.
    pub hub_tools: bool,
    /// The scope in which it may allow calls of sessions below, as rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approve_scope: Vec<String>,
    /// After how long an unanswered approval expires.
    pub approval_timeout_secs: Option<u64>,
    /// After how long an unanswered approval is escalated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_after_secs: Option<u64>,
    /// Whether it gets a turn when an approval of a session below is addressed to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wake: bool,
    /// Data of its creator.
    pub metadata: Option<Object>,
    /// The point of the conversation that its first process resumes, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<ResumePoint>,
    /// The session of Claude Code whose conversation it continues, if the operator adopted one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<SessionId>,
    /// The commands of the operator that run before and after its tool calls. Deleted with the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
}

/// A session to be created.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: SessionName,
    /// The addressee of its approvals: who created it.
    pub answers_to: AskedOf,
    /// Its configuration.
    pub config: SessionConfig,
    /// Its conversation tree.
    pub tree: TreeId,
    /// Its head: the root of a new tree, a node of an existing one, or the last adopted message.
    pub head: NodeId,
    /// Which of these.
    pub start: ConversationStart,
    /// The host that runs it; `None` in the store of a single machine.
    pub host: Option<HostName>,
}

/// A stored session.
#[derive(Debug, Clone)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: SessionName,
    /// The addressee of its approvals: who created it.
    pub answers_to: AskedOf,
    /// Its configuration.
    pub config: SessionConfig,
    /// Its conversation tree.
    pub tree: TreeId,
    /// The node where its conversation started.
    pub beginning: NodeId,
    /// The head of its conversation.
    pub head: NodeId,
    /// Its latest turn; 0 before the first.
    pub latest_turn: u64,
    /// Its latest run; 0 before the first.
    pub latest_run: u32,
    /// When it was created.
    pub created_at: UnixSeconds,
    /// When it was deleted, if it was.
    pub deleted_at: Option<UnixSeconds>,
    /// The cost of its turns, in dollars.
    pub cost_usd: f64,
    /// The number of the feed entry up to which it was woken.
    pub woken_to: u64,
    /// What it is about; `None` before its first prompt.
    pub title: Option<String>,
    /// When it was archived, if it is.
    pub archived_at: Option<UnixSeconds>,
    /// The host that runs it; `None` in the store of a single machine.
    pub host: Option<HostName>,
}

/// A session that is not deleted, and its state.
#[derive(Debug, Clone)]
pub struct SessionWithState {
    /// The session.
    pub row: SessionRow,
    /// Its latest turn; `None` before the first.
    pub turn: Option<TurnState>,
    /// Its pending approvals, oldest first.
    pub open: Vec<OpenCall>,
    /// The latest calls of its running turn that passed the gate and have no `tool_result` yet, newest first, at most
    /// [`Self::MAX_CALLS`].
    pub calls: Vec<UnfinishedCall>,
    /// Its budgets.
    pub budget: Vec<BudgetRow>,
    /// When the last event of its latest turn was stored.
    pub last_event_at: Option<UnixSeconds>,
}

impl SessionWithState {
    /// How many calls are read at most.
    pub const MAX_CALLS: usize = 20;

    /// Whether it takes a slot of its host. `Change::CheckSlot` counts in the same way.
    pub fn takes_slot(&self) -> bool {
        match &self.turn {
            Some(turn) => turn.status == TurnStatus::Running,
            // A runner does not see the turns of other hosts.
            None => self.row.latest_turn == 0 && self.row.archived_at.is_none(),
        }
    }
}

/// A pending approval, without its input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    /// Its kind.
    pub kind: ApprovalKind,
    /// The tool.
    pub tool_name: String,
    /// The agent's id for the call.
    pub tool_use_id: String,
    /// Its addressee.
    pub asked_of: AskedOf,
}

/// A call that has no `tool_result` yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedCall {
    /// The agent's id for the call.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// The call in one line.
    pub summary: String,
}

/// The state of a turn.
#[derive(Debug, Clone)]
pub struct TurnState {
    /// Its status.
    pub status: TurnStatus,
    /// What the owner of the session remembers of it.
    pub progress: Value,
    /// When it started.
    pub started_at: UnixSeconds,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Stored, but its keeper is not known yet. A new hub gives it up.
    Starting,
    /// Its keeper is known.
    Running,
    /// Its stdin is closed, or is about to be. Prompts go to the next run.
    Ending,
    /// Its process was not started by the hub and requests approvals over MCP.
    External,
    /// It has ended.
    Ended,
}

/// The identity of the process that keeps a run. A pid alone is reused after a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProcess {
    /// Its process id.
    pub pid: i32,
    /// When it started, in clock ticks after boot.
    pub start_time: u64,
    /// The boot of the machine.
    pub boot_id: String,
}

/// A stored run.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// The run.
    pub key: RunKey,
    /// Its state.
    pub state: RunState,
    /// Its keeper, once that is known.
    pub process: Option<RunProcess>,
    /// The offset up to which its journal has been read and stored.
    pub journal_offset: u64,
    /// When it was created.
    pub created_at: UnixSeconds,
}

/// The status of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// It runs.
    Running,
    /// It succeeded.
    Complete,
    /// It failed.
    Failed,
    /// Somebody interrupted it.
    Interrupted,
}

/// A stored turn.
#[derive(Debug, Clone)]
pub struct TurnRow {
    /// The session.
    pub session: SessionId,
    /// Its number, from 1.
    pub turn: u64,
    /// Its status.
    pub status: TurnStatus,
    /// The run that got its prompt.
    pub run: Option<u32>,
    /// The prompt.
    pub prompt: String,
    /// The uuid of the prompt in that run.
    pub prompt_uuid: String,
    /// The progress of the turn, which the owner of the session stores with each batch of lines.
    pub progress: Value,
    /// When it started.
    pub started_at: UnixSeconds,
    /// When it ended.
    pub ended_at: Option<UnixSeconds>,
    /// Whether its events are complete.
    pub events: EventsOfTurn,
    /// The head of the conversation at its end.
    pub head: Option<NodeId>,
    /// Its cost in dollars; 0 until it has ended.
    pub cost_usd: f64,
}

/// Whether the events of a turn are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventsOfTurn {
    /// All are stored.
    Kept,
    /// They are being removed. The remaining events are not shown.
    Removing,
    /// All are removed.
    Removed,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: u64,
    /// Its number in the turn.
    pub seq: u64,
    /// The event.
    pub event: EventJson,
    /// When it was stored.
    pub at: UnixSeconds,
}

/// An event as JSON. It is serialized once: the store, and everyone who receives the event, share the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventJson(Arc<str>);

impl EventJson {
    /// Serializes an event.
    ///
    /// # Errors
    /// When it has no form in JSON.
    pub fn new(event: &Event) -> serde_json::Result<Self> {
        serde_json::to_string(event).map(|text| Self(text.into()))
    }

    /// A stored text.
    ///
    /// # Errors
    /// When it is not JSON.
    pub(crate) fn stored(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str::<&RawValue>(text).map(|_| Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The event as a value.
    pub fn value(&self) -> Value {
        let mut json = serde_json::Deserializer::from_str(&self.0);
        // Like the store, which has no limit of depth.
        json.disable_recursion_limit();
        // The text is JSON, so this does not fail.
        Value::deserialize(&mut json).unwrap_or_default()
    }
}
