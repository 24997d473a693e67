//! `claudecode`: sessions and their turns. How both are shown is in `view`.

mod diff;
mod fork;
mod project;
mod servers;
mod transcript;
mod view;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use diff::{DiffParams, DiffResult};
pub use fork::{ForkAt, ForkParams, ForkResult};
pub use project::{
    ProjectView, TrustProjectParams, TrustProjectResult, TrustedProject, UserSettingsParams,
    UserSettingsResult,
};
pub use servers::{McpEndpoint, McpServer, McpServerGiven, McpServerKind};
pub use transcript::{TranscriptFormat, TranscriptParams, TranscriptResult};
pub use view::{LoadsView, SessionView, StreamView, TreeView};

use crate::arbor::Position;
use crate::budget::{Budget, BudgetView};
use crate::policy::RuleGiven;
use crate::worktree::{Isolation, LeftBelow, LeftWorktree};
use crate::{Approval, Attention, NumberedEvent, Object, SessionId, SessionName, UnixSeconds};

/// How a child asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// On its own stdin and stdout.
    #[default]
    Control,
    /// Through the MCP tool `loopback_permit`.
    Mcp,
}

/// What a child may do by itself, in Claude Code's own words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Reading in the working directory runs, the rest asks.
    #[default]
    Default,
    /// Edits in the working directory run as well, and so do simple file commands there, such as `touch` and `rm`.
    AcceptEdits,
    /// It plans, and asks before it leaves planning.
    Plan,
}

impl PermissionMode {
    /// The more an agent may do by itself, the higher.
    pub fn looseness(self) -> u8 {
        match self {
            Self::Plan => 0,
            Self::Default => 1,
            Self::AcceptEdits => 2,
        }
    }

    /// The word on Claude Code's wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
        }
    }

    /// The mode of this name; newer versions call the default one `manual`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "default" | "manual" => Some(Self::Default),
            "acceptEdits" => Some(Self::AcceptEdits),
            "plan" => Some(Self::Plan),
            _ => None,
        }
    }
}

/// What is said at the gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyName {
    /// Nothing: every call takes Claude Code's own course.
    #[default]
    OwnCourse,
    /// Every call asks.
    AskAll,
    /// Reading tools run freely, the rest asks.
    Approvals,
    /// Starts in plan mode; reading runs freely, leaving plan mode asks.
    Plan,
    /// Every call runs, and is recorded (operator only).
    AllowAll,
}

impl PolicyName {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OwnCourse => "own_course",
            Self::AskAll => "ask_all",
            Self::Approvals => "approvals",
            Self::Plan => "plan",
            Self::AllowAll => "allow_all",
        }
    }
}

/// What keeps an agent's processes from the hub's own files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wall {
    /// They live where the data directory is empty, and cannot change that.
    Namespaces,
    /// Nothing: they are the same user's.
    None,
}

/// Where a session, or one of its turns, stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing was ever asked of it.
    Idle,
    /// It works.
    Running,
    /// It waits for an answer to an approval.
    AwaitingPermission,
    /// The last turn ended well.
    Complete,
    /// The last turn ended badly.
    Failed,
    /// The last turn was ended by someone.
    Interrupted,
}

/// Parameters of `claudecode.create`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateParams {
    /// 1 to 64 of letters, digits, `-`, `_`, `.`; unique among living sessions.
    pub name: SessionName,
    /// Absolute path of an existing directory: where the agent works.
    pub working_dir: String,
    /// Model for the agent.
    #[serde(default)]
    pub model: Option<String>,
    /// Replaces Claude Code's own system prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// false: no gate, nobody is asked (operator only).
    #[serde(default)]
    pub loopback_enabled: Option<bool>,
    /// How the agent asks; `control` unless said.
    #[serde(default)]
    pub channel: Option<Channel>,
    /// What it may do by itself; `default` unless said.
    #[serde(default)]
    pub permission_mode: Option<PermissionMode>,
    /// What is said at the gate; `own_course` unless said.
    #[serde(default)]
    pub policy: Option<PolicyName>,
    /// Rules for its tool calls and for those of all below it; what none of them mentions is for `policy`.
    #[serde(default)]
    pub rules: Option<Vec<RuleGiven>>,
    /// Starts the first turn at once.
    #[serde(default)]
    pub prompt: Option<String>,
    /// Environment of the agent, on top of what it inherits.
    #[serde(default)]
    pub env: Option<BTreeMap<String, String>>,
    /// Whether the agent may start agents of its own.
    #[serde(default)]
    pub hub_tools: Option<bool>,
    /// An approval not answered within this time expires.
    #[serde(default)]
    pub approval_timeout_secs: Option<u64>,
    /// An approval goes on to the next above when whoever is asked has not answered it for so long (120 unless said), for
    /// all below it as well.
    #[serde(default)]
    pub escalate_after_secs: Option<u64>,
    /// With `hub_tools`: when those below it ask while it has no turn, it is given one.
    #[serde(default)]
    pub wake: Option<bool>,
    /// Kept with the session, for the caller.
    #[serde(default)]
    pub metadata: Option<Object>,
    /// Live listeners get token deltas as well.
    #[serde(default)]
    pub deltas: Option<bool>,
    /// A git worktree and branch of its own, made from `working_dir`.
    #[serde(default)]
    pub isolation: Option<Isolation>,
    /// Limits for it and all below it, taken from what you have left.
    #[serde(default)]
    pub budget: Option<Budget>,
    /// With `hub_tools`: what it may allow for those below it, as rules such as `Edit(src/**)`; left out, nothing: it can
    /// deny, and the rest is asked further up.
    #[serde(default)]
    pub approve_scope: Option<Vec<String>>,
    /// MCP servers for the agent, by name, in Claude Code's own shape. Their tools stop at the gate as
    /// `mcp__<name>__<tool>`. A session passes on its own: `{"type":"inherited"}`.
    #[serde(default)]
    pub mcp_servers: Option<BTreeMap<String, McpServerGiven>>,
    /// Loads the project's own settings, MCP servers and agents, as they are now (operator only).
    #[serde(default)]
    pub trust_project: Option<bool>,
}

/// Result of `claudecode.create`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CreateResult {
    /// The session is there.
    Created {
        /// Its id.
        id: SessionId,
        /// Where its conversation begins.
        head: Position,
        /// The first turn, when a prompt was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
        /// For loopback_wait: all that comes of that turn is newer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<u64>,
        /// With `hub_tools`: what it may allow for those below it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        may_decide: Option<Vec<String>>,
        /// What to know about that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}

/// Parameters that name a session and nothing else.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
}

/// Parameters of `claudecode.list` and others that take none.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// Parameters of `claudecode.rename`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// What it is called from now on.
    pub new_name: SessionName,
}

/// Parameters of `claudecode.chat` and `claudecode.chat_async`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// What the agent is to do; at most 16 MiB.
    pub prompt: String,
    /// Has Claude Code read the files that are named as `@path` in it, unasked (operator only).
    #[serde(default)]
    pub expand: Option<bool>,
}

/// Parameters of `claudecode.set_permission_mode`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPermissionModeParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// The mode from now on.
    pub mode: PermissionMode,
}

/// Parameters of `claudecode.set_model`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetModelParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// The model from now on; Claude Code's own choice when left out.
    #[serde(default)]
    pub model: Option<String>,
}

/// Parameters of `claudecode.set_budget`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBudgetParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// The limits from now on, each the whole of it; those left out stay as they are.
    pub budget: Budget,
}

/// Result of `claudecode.set_budget`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SetBudgetResult {
    /// It was done.
    Ok {
        /// To which session.
        session_id: SessionId,
        /// How all its limits stand now.
        budget: BudgetView,
    },
}

/// Result of `claudecode.chat_async`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChatAsyncResult {
    /// The turn began.
    Started {
        /// The session.
        session_id: SessionId,
        /// The turn's number.
        turn: u64,
        /// For loopback_wait: all that comes of this turn is newer.
        cursor: u64,
    },
}

/// Result of `claudecode.send`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SendResult {
    /// The message is part of the turn.
    Sent {
        /// The session.
        session_id: SessionId,
        /// The turn it was added to.
        turn: u64,
    },
}

/// Parameters of `claudecode.poll`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// First event wanted; else on from this caller's last position.
    #[serde(default)]
    pub from_seq: Option<u64>,
    /// At most so many events; 100 unless said.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Which turn; the latest unless said.
    #[serde(default)]
    pub turn: Option<u64>,
    /// Wait up to so long for something new.
    #[serde(default)]
    pub wait_ms: Option<u64>,
    /// Cut texts longer than this; 8192 unless said.
    #[serde(default)]
    pub max_bytes: Option<u64>,
}

/// Result of `claudecode.poll` and `claudecode.chat`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PollResult {
    /// What there is.
    Ok {
        /// Where the turn stands.
        status: Status,
        /// Which turn; 0 before the first.
        turn: u64,
        /// Its events from the position asked for.
        events: Vec<NumberedEvent>,
        /// What keeps the agent from going on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attention: Vec<Attention>,
        /// What of this session waits for an answer now.
        pending_approvals: Vec<Approval>,
        /// The first event the next poll returns.
        read_position: u64,
        /// How many events the turn has.
        total_events: u64,
        /// Whether there are more than were returned.
        has_more: bool,
    },
}

/// Parameters of `claudecode.event`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventParams {
    /// The session, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
    /// Which turn; the latest unless said.
    #[serde(default)]
    pub turn: Option<u64>,
    /// Which event.
    pub seq: u64,
}

/// Result of `claudecode.event`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventResult {
    /// The event in full.
    Ok {
        /// Its turn.
        turn: u64,
        /// Its number.
        seq: u64,
        /// The event.
        #[schemars(with = "Object")]
        event: Value,
        /// When it was stored.
        at: UnixSeconds,
    },
}

/// Result of `claudecode.get`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GetResult {
    /// The session.
    Ok {
        /// As it is now.
        session: SessionView,
    },
}

/// Result of `claudecode.list`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ListResult {
    /// The sessions the caller may see.
    Ok {
        /// A parent before its children, siblings as they were made.
        sessions: Vec<SessionView>,
    },
}

/// Result of methods that only say it was done.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DoneResult {
    /// It was done.
    Ok {
        /// To which session.
        session_id: SessionId,
    },
}

/// Result of `claudecode.delete`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DeleteResult {
    /// It is deleted.
    Ok {
        /// Which session.
        session_id: SessionId,
        /// What became of its worktree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree: Option<LeftWorktree>,
        /// What became of the worktrees of sessions below it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        below: Vec<LeftBelow>,
    },
}

/// Result of `claudecode.streams`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamsResult {
    /// The turns in progress.
    Ok {
        /// Oldest first.
        streams: Vec<StreamView>,
    },
}
