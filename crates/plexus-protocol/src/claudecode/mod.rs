//! `claudecode`: sessions and their turns. `view` has the types that show them.

mod create;
mod diff;
mod fork;
mod hooks;
mod import;
mod output;
mod project;
mod resumable;
mod review;
mod servers;
mod timeline;
mod transcript;
mod turn;
mod update;
mod view;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

pub use create::{CreateParams, CreateResult};
pub use diff::{DiffParams, DiffResult};
pub use fork::{ForkAt, ForkParams, ForkResult};
pub use hooks::{HookCommand, HookGroup, HookKind, Hooks};
pub use import::{
    ImportItem, ImportKind, ImportParams, ImportRef, ImportResult, ImportState, ImportTake, ImportedConfig,
    ImportedView, ImportsResult,
};
pub use output::{OutputLine, OutputParams, OutputResult, OutputStream};
pub use project::{
    ProjectView, TrustProjectParams, TrustProjectResult, TrustedProject, UserSettingsParams,
    UserSettingsResult,
};
pub use resumable::{ResumableParams, ResumableResult, ResumableSession};
pub use review::{
    AuthorSource, BranchCommit, CommitParams, CommitProposal, CommitResult, ConflictFile, ConflictSides,
    KeepBranchParams, KeepBranchResult, MergeHow, MergeParams, MergeResult, Person, PushCommand,
};
pub use servers::{McpEndpoint, McpServer, McpServerGiven, McpServerKind};
pub use timeline::{AnsweredBy, Asked, Lane, LaneMark, LaneSpan, LaneState, TimelineParams, TimelineResult};
pub use transcript::{TranscriptFormat, TranscriptParams, TranscriptResult};
pub use turn::{
    ChatAsyncResult, ChatParams, CompactParams, EventParams, EventResult, PollNews, PollParams, PollResult,
    SendResult,
};
pub use update::{UpdateParams, UpdateResult, Updated};
pub use view::{CurrentAction, LoadsView, ProjectRef, RunningCall, SessionView, StreamView, TreeView};

use crate::budget::{Budget, BudgetView};
use crate::worktree::{LeftBelow, LeftWorktree};
use crate::{SessionId, SessionName, UnixSeconds};

/// How a child requests approvals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// On its stdin and stdout.
    #[default]
    Control,
    /// Through the MCP tool `loopback_permit`.
    Mcp,
}

/// What a child may do without an approval, named as in Claude Code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Reads in the working directory run; other calls need approval.
    #[default]
    Default,
    /// Edits and simple file commands in the working directory, such as `touch` and `rm`, also run.
    AcceptEdits,
    /// The agent plans, and needs approval to leave plan mode.
    Plan,
}

impl PermissionMode {
    /// How much a child may do without an approval; more is higher.
    pub fn looseness(self) -> u8 {
        match self {
            Self::Plan => 0,
            Self::Default => 1,
            Self::AcceptEdits => 2,
        }
    }

    /// The name on Claude Code's wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
        }
    }

    /// The mode with this name; newer versions call the default mode `manual`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "default" | "manual" => Some(Self::Default),
            "acceptEdits" => Some(Self::AcceptEdits),
            "plan" => Some(Self::Plan),
            _ => None,
        }
    }
}

/// Not derived, so that the error for Claude Code's `bypassPermissions` can name the alternatives.
impl<'de> Deserialize<'de> for PermissionMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let modes = [Self::Default, Self::AcceptEdits, Self::Plan];
        modes.into_iter().find(|mode| mode.as_str() == name).ok_or_else(|| match name.as_str() {
            "bypassPermissions" => D::Error::custom(
                "`bypassPermissions` is not supported, because no call would be checked or logged. To let \
                 every call run, create the session with `policy: \"allow_all\"` (operator only). To let \
                 similar calls run, add a rule with `remember` in an answer, such as `\"remember\": \
                 {\"rule\": \"Bash(npm test:*)\"}`",
            ),
            _ => D::Error::custom(format!(
                "unknown mode `{name}`, expected `default`, `acceptEdits` or `plan`"
            )),
        })
    }
}

/// What the gate decides about calls that no rule matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyName {
    /// Nothing: Claude Code's permission rules decide.
    #[default]
    OwnCourse,
    /// Every call needs approval.
    AskAll,
    /// Reading tools run; other calls need approval.
    Approvals,
    /// Plan mode: reading tools run; leaving it needs approval.
    Plan,
    /// Every call runs, with an audit entry (operator only).
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

/// What protects the hub's files from an agent's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxKind {
    /// Namespaces: the processes see an empty data directory and cannot undo that.
    Namespaces,
    /// Nothing: the processes have the rights of the hub's user.
    None,
}

/// What an agent's sandbox protects besides the hub's files.
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
    /// Protected.
    Held {
        /// The mechanism.
        by: String,
    },
    /// Not protected.
    Open {
        /// The reason.
        why: String,
    },
}

/// The status of a session or of one of its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The session has had no turn yet.
    Idle,
    /// The turn is running.
    Running,
    /// The turn waits for an approval.
    AwaitingPermission,
    /// The last turn is complete.
    Complete,
    /// The last turn failed.
    Failed,
    /// The last turn was interrupted.
    Interrupted,
}

/// Parameters that only identify a session.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name or path (`lead/worker`) instead of the id.
    #[serde(default)]
    pub name: Option<String>,
}

/// Parameters of `claudecode.list`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// true: also the sessions that the operator archived.
    #[serde(default)]
    pub archived: Option<bool>,
}

/// Parameters of methods without parameters.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// Parameters of `claudecode.rename`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The new name.
    pub new_name: SessionName,
}

/// Parameters of `claudecode.set_permission_mode`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPermissionModeParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The new mode.
    pub mode: PermissionMode,
}

/// Parameters of `claudecode.set_model`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetModelParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The new model; by default Claude Code's own choice.
    #[serde(default)]
    pub model: Option<String>,
}

/// Parameters of `claudecode.set_budget`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBudgetParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The new amounts, each in total; omitted ones stay unchanged.
    pub budget: Budget,
}

/// Result of `claudecode.set_budget`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SetBudgetResult {
    /// The budget was set.
    Ok {
        /// The session.
        session_id: SessionId,
        /// All its budgets now.
        budget: BudgetView,
    },
}

/// Result of `claudecode.get`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GetResult {
    /// The session.
    Ok {
        /// Its current state.
        session: SessionView,
    },
}

/// Result of `claudecode.list`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ListResult {
    /// The sessions that the caller may see.
    Ok {
        /// A parent before its children; siblings in the order of creation.
        sessions: Vec<SessionView>,
    },
}

/// A directory in which a session was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecentDir {
    /// Its path.
    pub path: String,
    /// When the last session was started in it.
    pub used_at: UnixSeconds,
}

/// Result of `claudecode.recent_dirs`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RecentDirsResult {
    /// The directories; some may no longer exist.
    Ok {
        /// The latest first, at most 20.
        dirs: Vec<RecentDir>,
    },
}

/// Result of methods that only confirm success.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DoneResult {
    /// Success.
    Ok {
        /// The session.
        session_id: SessionId,
    },
}

/// Result of `claudecode.delete`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DeleteResult {
    /// The session was deleted.
    Ok {
        /// The session.
        session_id: SessionId,
        /// The outcome for its worktree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree: Option<LeftWorktree>,
        /// The outcome for the worktrees of sessions below it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        below: Vec<LeftBelow>,
    },
}

/// Parameters of `claudecode.streams`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamsParams {
    /// Only the turns of this session, by id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Only the turns of this session, by name.
    #[serde(default)]
    pub name: Option<String>,
    /// Also turns that have ended, at most the last 20 of each session.
    #[serde(default)]
    pub finished: Option<bool>,
}

/// Result of `claudecode.streams`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamsResult {
    /// The turns.
    Ok {
        /// By session, oldest first; in a session, the latest turn first.
        streams: Vec<StreamView>,
    },
}
