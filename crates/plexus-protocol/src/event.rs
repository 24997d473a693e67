//! Events of a turn: one per content block, durable and numbered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arbor::Position;
use crate::{ApprovalId, ApprovalStatus, AttachmentView, Decider, Object, SessionId, UnixSeconds};

/// The position of a line that a child wrote: bytes of `sessions/<id>/runs/<run>/journal.jsonl`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalRange {
    /// The run.
    pub run: u32,
    /// Its first byte.
    pub start: u64,
    /// The first byte after it.
    pub end: u64,
}

/// A part of a file that a call has changed, with a few lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    /// The number of its first line before the change.
    pub old_start: u64,
    /// The number of its first line after the change.
    pub new_start: u64,
    /// Its lines, each after a space, `-` or `+`.
    pub lines: Vec<String>,
}

/// One event of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The turn started.
    Start {
        /// The session.
        id: SessionId,
        /// The node of the prompt in the conversation tree.
        user_position: Position,
        /// What started the turn, if it was not a prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<String>,
        /// The files of the prompt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<AttachmentView>,
    },
    /// The agent wrote text.
    Content {
        /// The text.
        text: String,
        /// The call of the sub-agent that wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_use_id: Option<String>,
        /// The position of the whole text, if it was too large to store.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<JournalRange>,
    },
    /// The agent's thinking.
    Thinking {
        /// The text.
        text: String,
        /// The call of the sub-agent that wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_use_id: Option<String>,
        /// The position of the whole text, if it was too large to store.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<JournalRange>,
    },
    /// The agent wants to use a tool.
    ToolUse {
        /// The tool.
        tool_name: String,
        /// Claude Code's id of the call.
        tool_use_id: String,
        /// The input.
        input: Object,
        /// The call of the sub-agent that wants it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_use_id: Option<String>,
        /// The position of the whole call, if it was too large to store.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<JournalRange>,
    },
    /// The call needs an approval, which was requested.
    ApprovalRequested {
        /// The approval.
        approval_id: ApprovalId,
        /// The call.
        tool_use_id: String,
    },
    /// An approval was resolved.
    ApprovalResolved {
        /// The approval.
        approval_id: ApprovalId,
        /// The call.
        tool_use_id: String,
        /// The final status.
        status: ApprovalStatus,
        /// Who resolved it.
        by: Decider,
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The input that the tool ran with, if the decision replaced the requested one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_input: Option<Object>,
    },
    /// A tool call has a result.
    ToolResult {
        /// The call.
        tool_use_id: String,
        /// The result: text, or content blocks of Claude Code.
        #[schemars(with = "String")]
        output: Value,
        /// Whether the call failed or was denied.
        is_error: bool,
        /// The call of the sub-agent that made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_use_id: Option<String>,
        /// The position of the whole result, if it was too large to store.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<JournalRange>,
        /// The change of a file by the call, as Claude Code reports it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        patch: Vec<Hunk>,
    },
    /// The turn is complete.
    Complete {
        /// The last node of the conversation now.
        new_head: Position,
        /// The agent's last text.
        result: String,
        /// The token counts of this turn, as Claude Code reports them.
        usage: Object,
        /// The cost of this turn.
        cost_usd: f64,
        /// The number of model calls in this turn.
        num_turns: u64,
    },
    /// The turn failed, or an error occurred in it.
    Error {
        /// The message for people.
        message: String,
        /// The stable name of the error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The last lines of the child's stderr.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stderr: Vec<String>,
    },
    /// Any other message of the child.
    System {
        /// Claude Code's name for it.
        subtype: String,
        /// The message, unchanged.
        data: Object,
    },
}

/// An event with its number in the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NumberedEvent {
    /// Its number in the turn, from 0.
    pub seq: u64,
    /// The event.
    #[schemars(with = "Object")]
    pub event: Value,
    /// When it was stored.
    pub at: UnixSeconds,
    /// Whether long texts in it were truncated; `claudecode.event` returns it in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// An event in a [`PollNews`](crate::claudecode::PollNews).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NewEvent {
    /// Its number in the turn, from 0.
    pub seq: u64,
    /// The event. A call that waits for approval has its input in the approval, and the result of a call has no `patch`.
    #[schemars(with = "Object")]
    pub event: Value,
    /// Whether long texts in it were truncated; `claudecode.event` returns it in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}
