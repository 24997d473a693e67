//! `loopback`: approvals, asked and answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claudecode::{PermissionMode, Status};
use crate::policy::Remember;
use crate::{
    Approval, ApprovalId, ApprovalStatus, AskedOf, Decider, Decision, Object, SessionId, SessionName,
    UnixSeconds,
};

/// Parameters of `loopback.permit`, as Claude Code sends them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PermitParams {
    /// The tool the agent wants to use.
    pub tool_name: String,
    /// What it wants to give it.
    pub input: Object,
    /// The agent's id for the call.
    pub tool_use_id: String,
}

/// Declares a type with the fields of an answer, so that one answer and each of several have the same. `serde(flatten)` is no
/// alternative: its error messages do not name the field.
macro_rules! with_answer_fields {
    (
        $(#[$attribute:meta])*
        $name:ident { approval_id: $approval_id:ty, approve: $approve:ty, $($more:tt)* }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Which approval.
            pub approval_id: $approval_id,
            /// true allows the call.
            pub approve: $approve,
            /// Why not; the agent reads it.
            #[serde(default)]
            pub message: Option<String>,
            /// Run with this input instead (whole); for a budget `{"more": N}`.
            #[serde(default)]
            pub updated_input: Option<Object>,
            /// Deny and end the turn.
            #[serde(default)]
            pub interrupt: Option<bool>,
            /// For a question: its text → the answer.
            #[serde(default)]
            pub answers: Option<Object>,
            /// From loopback_get, needed where the input was shown cut.
            #[serde(default)]
            pub digest: Option<String>,
            $($more)*
            /// For a plan: the mode that follows; `default` unless said.
            #[serde(default)]
            pub mode: Option<PermissionMode>,
            /// Make a rule of it.
            #[serde(default)]
            pub remember: Option<Remember>,
        }
    };
}

with_answer_fields! {
    /// One answer to one approval.
    Answer { approval_id: ApprovalId, approve: bool, }
}

with_answer_fields! {
    /// Parameters of `loopback.respond`: one answer, or several in `decisions`.
    RespondParams {
        approval_id: Option<ApprovalId>,
        approve: Option<bool>,
        /// Several answers at once, each with the fields above.
        #[serde(default)]
        #[schemars(with = "Option<Vec<Object>>")]
        pub decisions: Option<Vec<Answer>>,
        /// Then go straight on into wait, for so long.
        #[serde(default)]
        pub wait_ms: Option<u64>,
        /// The cursor of that wait.
        #[serde(default)]
        pub cursor: Option<u64>,
    }
}

/// What became of one answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answered {
    /// It counts.
    Ok {
        /// The approval.
        approval_id: ApprovalId,
        /// Other open approvals that the rule made with it has settled.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        settled: Vec<ApprovalId>,
    },
    /// Someone, or something, was first.
    AlreadyResolved {
        /// The approval.
        approval_id: ApprovalId,
        /// How it ended.
        status: ApprovalStatus,
        /// The answer that counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision: Option<Decision>,
        /// When it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolved_at: Option<UnixSeconds>,
    },
    /// This one of several could not be taken; the others were.
    Error {
        /// The approval.
        approval_id: ApprovalId,
        /// The stable word for what went wrong.
        error: String,
        /// For people.
        message: String,
    },
}

/// Parameters of `loopback.pending`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PendingParams {
    /// Only this session's, by id…
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// …or by name.
    #[serde(default)]
    pub name: Option<String>,
}

/// Result of `loopback.pending`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PendingResult {
    /// What is open and the caller may decide.
    Ok {
        /// Oldest first.
        approvals: Vec<Approval>,
    },
}

/// Parameters of `loopback.get`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetParams {
    /// Which approval.
    pub approval_id: ApprovalId,
    /// true: with `purpose`, `like` and `file`.
    #[serde(default)]
    pub context: Option<bool>,
}

/// A session on the way to the one that asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PurposeStep {
    /// Which.
    pub id: SessionId,
    /// Its name.
    pub name: SessionName,
}

/// What the asking agent was to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Purpose {
    /// From the root of the tree to the session that asks, as far as the caller may see it.
    pub path: Vec<PurposeStep>,
    /// The turn in which it is asked.
    pub turn: u64,
    /// The prompt of that turn; left out where the hub gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Whether the prompt is shown cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// What a like call got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Like {
    /// When it was decided.
    pub at: UnixSeconds,
    /// How.
    pub status: ApprovalStatus,
    /// By whom; the hub goes by rules.
    pub by: Decider,
    /// What was said with it, or which rule it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether tool, input and directory are the same.
    pub same: bool,
    /// Whether it ran with another input than it was asked with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// What it was about, in a line. Written by the child: not to be trusted.
    pub summary: String,
}

/// The file that a call is about to change, as it is on disk now. A client computes the diff from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TargetFile {
    /// A text file.
    Text {
        /// Its absolute path, as the call names it.
        path: String,
        /// All of its text.
        text: String,
    },
    /// There is no file at this path.
    Missing {
        /// The absolute path, as the call names it.
        path: String,
    },
    /// Its text cannot be shown.
    Unavailable {
        /// The absolute path, as the call names it.
        path: String,
        /// Why, for a person.
        reason: String,
    },
}

/// Result of `loopback.get`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GetResult {
    /// The approval in full.
    Ok {
        /// As it is now.
        approval: Box<Approval>,
        /// What the asking agent was to do; with `context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purpose: Option<Purpose>,
        /// What like calls got before, newest first; with `context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        like: Option<Vec<Like>>,
        /// The file that the call is about to change; with `context`, for the operator and for tokens only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<TargetFile>,
    },
}

/// Parameters of `loopback.wait`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitParams {
    /// From the last wait, 0 for the first; without it, all that is open is returned at once.
    #[serde(default)]
    pub cursor: Option<u64>,
    /// How long to wait; 30000 unless said.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// A turn that ended, as `wait` tells it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Finished {
    /// The session.
    pub session_id: SessionId,
    /// Its name.
    pub session_name: SessionName,
    /// The turn.
    pub turn: u64,
    /// How it ended.
    pub status: Status,
    /// The agent's last words, or what went wrong. Written by the child: not to be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// Result of `loopback.wait`; with nothing new it stays under 100 bytes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WaitResult {
    /// What is newer than the cursor.
    Ok {
        /// For the next wait.
        cursor: u64,
        /// Asked since.
        approvals: Vec<Approval>,
        /// Turns ended since.
        finished: Vec<Finished>,
        /// What else the caller should know: approvals that ended without it.
        notices: Vec<Object>,
        /// What was asked before and is still open.
        still_open: Vec<ApprovalId>,
    },
}

/// Result of `loopback.configure`: what a child needs that the hub did not start.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ConfigureResult {
    /// Hand these to `claude`.
    Ok {
        /// The session whose approvals it asks for.
        session_id: SessionId,
        /// For a file given to `--mcp-config`; it holds the token.
        mcp_config: Object,
        /// For `--permission-prompt-tool`.
        permission_prompt_tool: String,
        /// The flags in one line, less `--mcp-config`.
        args: Vec<String>,
    },
}

/// Parameters of `loopback.escalate`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscalateParams {
    /// Which.
    pub approval_id: ApprovalId,
    /// What you think of it, for whoever is asked next.
    #[serde(default)]
    pub opinion: Option<String>,
}

/// Result of `loopback.escalate`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EscalateResult {
    /// It was passed on.
    Ok {
        /// Which.
        approval_id: ApprovalId,
        /// Whom it is asked of now.
        asked_of: AskedOf,
    },
    /// It has come to its end already.
    AlreadyResolved {
        /// Which.
        approval_id: ApprovalId,
        /// How it ended.
        status: ApprovalStatus,
    },
}

/// Parameters of `loopback.extend`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendParams {
    /// Which.
    pub approval_id: ApprovalId,
    /// In how many seconds from now it expires.
    pub secs: u64,
}

/// Result of `loopback.extend`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ExtendResult {
    /// It expires then.
    Ok {
        /// Which.
        approval_id: ApprovalId,
        /// When.
        expires_at: UnixSeconds,
    },
    /// It has come to its end already.
    AlreadyResolved {
        /// Which.
        approval_id: ApprovalId,
        /// How it ended.
        status: ApprovalStatus,
    },
}
