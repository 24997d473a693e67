//! `loopback`: requesting and answering approvals.

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
    /// The tool that the agent wants to use.
    pub tool_name: String,
    /// The input of the call.
    pub input: Object,
    /// Claude Code's id of the call.
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
        #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The approval.
            pub approval_id: $approval_id,
            /// true: allow; false: deny.
            pub approve: $approve,
            /// The reason for a denial; the agent reads it.
            #[serde(default)]
            pub message: Option<String>,
            /// Replaces the whole input; for a budget `{"more": N}`.
            #[serde(default)]
            pub updated_input: Option<Object>,
            /// Deny and interrupt the turn.
            #[serde(default)]
            pub interrupt: Option<bool>,
            /// For a question: question text → answer.
            #[serde(default)]
            pub answers: Option<Object>,
            /// From loopback_get; required if the input was shown truncated.
            #[serde(default)]
            pub digest: Option<String>,
            $($more)*
            /// The next mode of the session; after a plan, default `default`.
            #[serde(default)]
            pub mode: Option<PermissionMode>,
            /// Adds a rule.
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
        /// Several answers, each with the fields above.
        #[serde(default)]
        #[schemars(with = "Option<Vec<Object>>")]
        pub decisions: Option<Vec<Answer>>,
        /// Then waits up to this long, like loopback_wait.
        #[serde(default)]
        pub wait_ms: Option<u64>,
        /// The cursor of that wait.
        #[serde(default)]
        pub cursor: Option<u64>,
    }
}

/// The outcome of one answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answered {
    /// The approval is resolved with this answer.
    Ok {
        /// The approval.
        approval_id: ApprovalId,
        /// Other open approvals that the new rule resolved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        settled: Vec<ApprovalId>,
    },
    /// The approval was already resolved.
    AlreadyResolved {
        /// The approval.
        approval_id: ApprovalId,
        /// The final status.
        status: ApprovalStatus,
        /// The decision in effect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision: Option<Decision>,
        /// When it was resolved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolved_at: Option<UnixSeconds>,
    },
    /// This answer of several was rejected; the others were accepted.
    Error {
        /// The approval.
        approval_id: ApprovalId,
        /// The stable name of the error.
        error: String,
        /// The message for people.
        message: String,
    },
}

impl Answered {
    /// The outcome of an answer that was not the first.
    pub fn already_resolved(approval: &Approval) -> Self {
        Self::AlreadyResolved {
            approval_id: approval.id,
            status: approval.status,
            decision: approval.decision.clone(),
            resolved_at: approval.resolved_at,
        }
    }
}

/// Parameters of `loopback.pending`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PendingParams {
    /// Only approvals of this session, by id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Only approvals of this session, by name.
    #[serde(default)]
    pub name: Option<String>,
}

/// Result of `loopback.pending`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PendingResult {
    /// The open approvals that the caller may decide.
    Ok {
        /// Oldest first.
        approvals: Vec<Approval>,
    },
}

/// Parameters of `loopback.get`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetParams {
    /// The approval.
    pub approval_id: ApprovalId,
    /// true: also returns `purpose`, `like` and `file`.
    #[serde(default)]
    pub context: Option<bool>,
}

/// A session on the path to the requesting one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PurposeStep {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: SessionName,
}

/// The task of the requesting agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Purpose {
    /// The path from the root of the tree to the requesting session, as far as the caller may see it.
    pub path: Vec<PurposeStep>,
    /// The turn of the request.
    pub turn: u64,
    /// The prompt of that turn; omitted if the hub sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Whether the prompt is truncated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// The decision on a similar call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Like {
    /// When it was decided.
    pub at: UnixSeconds,
    /// The final status.
    pub status: ApprovalStatus,
    /// Who decided; the hub decides by rules.
    pub by: Decider,
    /// The message of the decider, or the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether tool, input and directory are identical.
    pub same: bool,
    /// Whether it ran with an edited input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// A one-line summary of the call. Written by the child: do not trust it.
    pub summary: String,
}

/// The file that a call would change, as it is on disk now. A client computes the diff from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TargetFile {
    /// A text file.
    Text {
        /// Its absolute path, as the call names it.
        path: String,
        /// Its whole text.
        text: String,
    },
    /// The file does not exist.
    Missing {
        /// The absolute path, as the call names it.
        path: String,
    },
    /// Its text cannot be shown.
    Unavailable {
        /// The absolute path, as the call names it.
        path: String,
        /// The reason, for people.
        reason: String,
    },
}

/// Result of `loopback.get`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GetResult {
    /// The approval in full.
    Ok {
        /// Its current state.
        approval: Box<Approval>,
        /// The task of the requesting agent; with `context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purpose: Option<Purpose>,
        /// Decisions on similar calls, newest first; with `context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        like: Option<Vec<Like>>,
        /// The file that the call would change; with `context`, for the operator and for tokens only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<TargetFile>,
    },
}

/// Parameters of `loopback.wait`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitParams {
    /// From the last wait, 0 at first; without it, all open approvals are returned at once.
    #[serde(default)]
    pub cursor: Option<u64>,
    /// How long to wait; default 30000.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// A finished turn, as `wait` returns it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Finished {
    /// The session.
    pub session_id: SessionId,
    /// Its name.
    pub session_name: SessionName,
    /// The turn.
    pub turn: u64,
    /// The final status.
    pub status: Status,
    /// The agent's last text, or the error. Written by the child: do not trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// Result of `loopback.wait`; if empty, under 100 bytes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WaitResult {
    /// Everything newer than the cursor.
    Ok {
        /// For the next wait.
        cursor: u64,
        /// New approvals.
        approvals: Vec<Approval>,
        /// Finished turns.
        finished: Vec<Finished>,
        /// Other news: approvals that were resolved without the caller.
        notices: Vec<Object>,
        /// Earlier approvals that are still open.
        still_open: Vec<ApprovalId>,
    },
}

/// Result of `loopback.configure`: what a `claude` outside the hub needs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ConfigureResult {
    /// Pass these to `claude`.
    Ok {
        /// The session that its approvals belong to.
        session_id: SessionId,
        /// The content of a file for `--mcp-config`; it contains the token.
        mcp_config: Object,
        /// For `--permission-prompt-tool`.
        permission_prompt_tool: String,
        /// All flags except `--mcp-config`.
        args: Vec<String>,
    },
}

/// Parameters of `loopback.escalate`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscalateParams {
    /// The approval.
    pub approval_id: ApprovalId,
    /// Your opinion, for the next decider.
    #[serde(default)]
    pub opinion: Option<String>,
}

/// Result of `loopback.escalate`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EscalateResult {
    /// The approval escalated.
    Ok {
        /// The approval.
        approval_id: ApprovalId,
        /// Its new decider.
        asked_of: AskedOf,
    },
    /// The approval was already resolved.
    AlreadyResolved {
        /// The approval.
        approval_id: ApprovalId,
        /// The final status.
        status: ApprovalStatus,
    },
}

/// Parameters of `loopback.extend`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendParams {
    /// The approval.
    pub approval_id: ApprovalId,
    /// The approval expires in this many seconds from now.
    pub secs: u64,
}

/// Result of `loopback.extend`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ExtendResult {
    /// The deadline was changed.
    Ok {
        /// The approval.
        approval_id: ApprovalId,
        /// The new deadline.
        expires_at: UnixSeconds,
    },
    /// The approval was already resolved.
    AlreadyResolved {
        /// The approval.
        approval_id: ApprovalId,
        /// The final status.
        status: ApprovalStatus,
    },
}
