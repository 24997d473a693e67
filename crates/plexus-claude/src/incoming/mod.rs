//! The messages that a child writes to its stdout, one per line.
//!
//! This module defines the types that the hub uses. `read` reads messages, `request` reads requests of the child, and
//! `oversized` reads lines that are not loaded into memory. Reading never fails: see [`parse`].

mod oversized;
mod read;
mod request;

use serde_json::Value;

use crate::Object;
use crate::bounded_json::{BoundedJson, HEAD};

pub use oversized::parse_oversized;
pub use request::{CanUseTool, HookCallback, PreToolUse, Request, RequestBody};

/// One line of a child's stdout.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// The child sends a request and waits for exactly one reply.
    Request(Request),
    /// The response to a request of the hub. With `--replay-user-messages` the CLI also repeats the replies it
    /// received; those carry the request id of the child's own request.
    Response(Response),
    /// The child cancels one of its requests.
    Cancel {
        /// The request that no longer needs a reply.
        request_id: String,
    },
    /// `system` messages of all subtypes.
    System(System),
    /// Text, thinking and tool calls of the model, one message per content block.
    Assistant(Assistant),
    /// Tool results, and prompts repeated as an acknowledgement.
    User(User),
    /// A model loop has ended.
    Result(TurnResult),
    /// A `stream_event`, whole.
    Delta(Object),
    /// Keeps the connection from being idle.
    KeepAlive,
    /// A message of an unknown type, or of a known type in an unknown form.
    Other {
        /// Its `type`; empty if it is missing or unreadable.
        kind: String,
        /// The whole message.
        data: Object,
    },
    /// A line that is not a JSON object.
    Rubbish {
        /// The line, truncated to 4 KiB, with invalid UTF-8 replaced.
        text: String,
    },
    /// A line of white space only.
    Blank,
}

/// The response to a request of the hub.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The request that it responds to.
    pub request_id: String,
    /// The payload of a success (empty if there is none), or the text of an error.
    pub outcome: Result<Object, String>,
}

/// A `system` message.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// The kind of notice; empty if it cannot be read.
    pub subtype: String,
    /// The whole message.
    pub data: Object,
}

/// Output of the model: text, thinking or tool calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Assistant {
    /// Its id in Claude Code's transcript.
    pub uuid: Option<String>,
    /// The id of the model's message, of which this may be one block of several.
    pub message_id: Option<String>,
    /// Its content.
    pub blocks: Vec<Block>,
    /// The sub-agent's tool call that this message comes from.
    pub parent_tool_use_id: Option<String>,
    /// The sub-agent that this message comes from, if the CLI reports it.
    pub agent_id: Option<String>,
    /// Why the request to the model failed.
    pub error: Option<String>,
}

/// A message with the role `user`.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    /// Its id. A repeated prompt has the id it was sent with.
    pub uuid: Option<String>,
    /// Its content; plain text is one text block.
    pub blocks: Vec<Block>,
    /// The sub-agent's tool call that this message comes from.
    pub parent_tool_use_id: Option<String>,
    /// Whether this message repeats a prompt as an acknowledgement.
    pub is_replay: bool,
    /// Whether the CLI generated it.
    pub is_synthetic: bool,
    /// The change of a file by the call whose result this is, as the CLI reports it.
    pub patch: Vec<Hunk>,
}

/// A part of a file that a call has changed, with a few lines around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The number of its first line before the change.
    pub old_start: u64,
    /// The number of its first line after the change.
    pub new_start: u64,
    /// Its lines, each after a space, `-` or `+`.
    pub lines: Vec<String>,
}

/// One content block of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's thinking.
    Thinking {
        /// The text of the thinking.
        text: String,
    },
    /// A tool call.
    ToolUse {
        /// The id of the call.
        id: String,
        /// The tool.
        name: String,
        /// The input; empty if it came in an oversized line.
        input: Object,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        tool_use_id: String,
        /// Text or content blocks; null if there is none.
        content: Value,
        /// Whether the call failed or was denied. If the field is missing, the call counts as having run.
        is_error: bool,
    },
    /// A block of an unknown type, or of a known type in an unknown form.
    Other {
        /// Its `type`; empty if it is missing or unreadable.
        kind: String,
        /// The whole block. A block that is not an object is stored under `value`.
        data: Object,
    },
}

/// The end of a model loop.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    /// `success` or a kind of error; empty if it cannot be read.
    pub subtype: String,
    /// Whether it failed. An API failure has the subtype `success`. If the CLI omits the field, every subtype except
    /// `success` is an error.
    pub is_error: bool,
    /// The final text.
    pub result: Option<String>,
    /// The error messages.
    pub errors: Vec<String>,
    /// The token usage of this loop.
    pub usage: Object,
    /// The cost of the process so far.
    pub total_cost_usd: Option<f64>,
    /// The number of model calls in this loop.
    pub num_turns: Option<u64>,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// Why the loop stopped.
    pub terminal_reason: Option<String>,
    /// The origin of a loop that no prompt started: `task-notification`.
    pub origin_kind: Option<String>,
    /// The denied tool calls.
    pub permission_denials: Vec<Value>,
    /// The prompt that this result belongs to, if the CLI reports it.
    pub user_message_uuid: Option<String>,
}

/// Parses one line. Never fails: an unreadable line becomes [`Incoming::Rubbish`], an unknown message
/// [`Incoming::Other`].
///
/// Some JSON lines cannot be built by serde_json (nested too deeply, a number out of range) or would take many times
/// their size in memory (more than 100,000 values). These are read like oversized lines, so that a request in them is
/// still recognised and can be denied.
pub fn parse(line: &[u8]) -> Incoming {
    if line.trim_ascii().is_empty() {
        return Incoming::Blank;
    }
    if has_too_many_values(line) {
        return oversized::parse_slim(line, line.len() as u64);
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return read::message(message);
    }
    let text = String::from_utf8_lossy(line);
    let repaired = serde_json::from_reader(BoundedJson::new(text.as_bytes(), usize::MAX));
    match repaired {
        Ok(message) => read::message(message),
        Err(_) => oversized::parse_slim(text.as_bytes(), line.len() as u64),
    }
}

/// A value takes about a hundred bytes in memory, however short its text is.
const MAX_VALUES: usize = 100_000;

fn has_too_many_values(line: &[u8]) -> bool {
    // Every value except the first takes at least two bytes including its comma.
    if line.len() < 2 * MAX_VALUES {
        return false;
    }
    let (mut values, mut in_text, mut escaped) = (0, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values > MAX_VALUES
}

fn rubbish(bytes: &[u8]) -> Incoming {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]).into_owned();
    // A truncated character became a replacement character of three bytes.
    text.truncate(text.floor_char_boundary(HEAD));
    Incoming::Rubbish { text }
}
