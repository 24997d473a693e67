//! Events: what happens in a turn, one per content block, durable and numbered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arbor::Position;
use crate::{ApprovalId, ApprovalStatus, Decider, Object, SessionId, UnixSeconds};

/// Where a line of a child stands: bytes of `sessions/<id>/runs/<run>/journal.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalRange {
    /// The run.
    pub run: u32,
    /// Its first byte.
    pub start: u64,
    /// The first byte after it.
    pub end: u64,
}

/// One thing that happened in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The turn began.
    Start {
        /// The session.
        id: SessionId,
        /// Where the prompt stands in the conversation tree.
        user_position: Position,
        /// What began it, when it was not a prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<String>,
    },
    /// The agent said something.
    Content {
        /// What it said.
        text: String,
        /// The call of the sub-agent that said it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_use_id: Option<String>,
        /// Where the whole of it stands, if it was too large to be kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<JournalRange>,
    },
    /// The agent thought something.
    Thinking {
        /// What it thought.
        text: String,
        /// The call of the sub-agent that thought it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_use_id: Option<String>,
        /// Where the whole of it stands, if it was too large to be kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<JournalRange>,
    },
    /// The agent wants to use a tool.
    ToolUse {
        /// Which.
        tool_name: String,
        /// The agent's id for this call.
        tool_use_id: String,
        /// With what input.
        input: Object,
        /// The call of the sub-agent that wants it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_use_id: Option<String>,
        /// Where the whole of it stands, if it was too large to be kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<JournalRange>,
    },
    /// The call stopped at the gate and someone was asked.
    ApprovalRequested {
        /// The approval.
        approval_id: ApprovalId,
        /// The call it is about.
        tool_use_id: String,
    },
    /// An approval came to its end.
    ApprovalResolved {
        /// The approval.
        approval_id: ApprovalId,
        /// The call it is about.
        tool_use_id: String,
        /// How it ended.
        status: ApprovalStatus,
        /// Who ended it.
        by: Decider,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The input the tool ran with, when the decision replaced the one that was requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_input: Option<Object>,
    },
    /// A tool ran, or was refused.
    ToolResult {
        /// The call.
        tool_use_id: String,
        /// What came of it: a text or Claude Code's content blocks.
        #[schemars(with = "String")]
        output: Value,
        /// Whether it failed or was refused.
        is_error: bool,
        /// The call of the sub-agent that used it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_use_id: Option<String>,
        /// Where the whole of it stands, if it was too large to be kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncated: Option<JournalRange>,
    },
    /// The turn ended well.
    Complete {
        /// Where the conversation stands now.
        new_head: Position,
        /// The agent's last words.
        result: String,
        /// This turn's own token counts, as Claude Code reports them.
        usage: Object,
        /// This turn's own cost.
        cost_usd: f64,
        /// How many model calls it took.
        num_turns: u64,
    },
    /// The turn ended badly, or something went wrong in it.
    Error {
        /// What a person should know.
        message: String,
        /// A stable word for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The last lines of the child's stderr.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stderr: Vec<String>,
    },
    /// Anything else the child sent; kept, never dropped.
    System {
        /// Claude Code's name for it.
        subtype: String,
        /// As it came.
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
    /// Whether long texts in it were cut; `claudecode.event` reads it in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}
