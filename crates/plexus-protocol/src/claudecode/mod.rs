//! `claudecode`: sessions and their turns. How both are shown is in `view`.

mod create;
mod diff;
mod fork;
mod project;
mod servers;
mod transcript;
mod turn;
mod view;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use create::{CreateParams, CreateResult};
pub use diff::{DiffParams, DiffResult};
pub use fork::{ForkAt, ForkParams, ForkResult};
pub use project::{
    ProjectView, TrustProjectParams, TrustProjectResult, TrustedProject, UserSettingsParams,
    UserSettingsResult,
};
pub use servers::{McpEndpoint, McpServer, McpServerGiven, McpServerKind};
pub use transcript::{TranscriptFormat, TranscriptParams, TranscriptResult};
pub use turn::{ChatAsyncResult, ChatParams, EventParams, EventResult, PollParams, PollResult, SendResult};
pub use view::{LoadsView, SessionView, StreamView, TreeView};

use crate::budget::{Budget, BudgetView};
use crate::worktree::{LeftBelow, LeftWorktree};
use crate::{SessionId, SessionName};

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

/// What an agent's sandbox protects besides the hub's own files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxView {
    /// Processes outside the sandbox, against signals.
    pub signals: Protection,
    /// The user's terminals, against text and control sequences.
    pub terminals: Protection,
    /// The descriptors of Claude Code, against the commands that it runs.
    pub descriptors: Protection,
    /// The memory of Claude Code, against the commands that it runs.
    pub memory: Protection,
}

/// Whether something is protected on this system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Protection {
    /// It is.
    Held {
        /// The mechanism.
        by: String,
    },
    /// It is not.
    Open {
        /// The reason.
        why: String,
    },
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
