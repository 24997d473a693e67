//! What a child writes on its stdout, one message per line.
//!
//! The types here are what the hub works with; how they are read stands in `read` (messages), `request` (what the
//! child asks) and `oversized` (lines that are not held in memory). Reading never fails: see [`parse`].

mod oversized;
mod read;
mod request;

use serde_json::Value;

use crate::Object;
use crate::tame::{HEAD, Tamed};

pub use oversized::parse_oversized;
pub use request::{CanUseTool, PreToolUse, Request, RequestBody};

/// One line of a child's stdout.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// The child asks, and waits for exactly one reply.
    Request(Request),
    /// The answer to a request of ours. With `--replay-user-messages` the CLI also repeats the replies it was given:
    /// those carry the request id of the child's own request.
    Response(Response),
    /// The child withdraws a request it made.
    Cancel {
        /// The request that needs no answer any more.
        request_id: String,
    },
    /// `system` messages of all subtypes.
    System(System),
    /// What the model said or wants done, one message per content block.
    Assistant(Assistant),
    /// Tool results, and prompts that are repeated as a receipt.
    User(User),
    /// A model loop has ended.
    Result(TurnResult),
    /// A `stream_event`, whole.
    Delta(Object),
    /// Sent so that the line is not idle.
    KeepAlive,
    /// A message of a type that is not known here, or of a known one in a form that is not.
    Other {
        /// Its `type`, empty if there is none that can be read.
        kind: String,
        /// The whole message.
        data: Object,
    },
    /// A line that is not a JSON object.
    Rubbish {
        /// The line, cut at 4 KiB, what is not UTF-8 replaced.
        text: String,
    },
    /// A line of nothing but white space.
    Blank,
}

/// The answer to a request of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The request that is answered.
    pub request_id: String,
    /// The payload of a success (empty if there is none), or the text of an error.
    pub outcome: Result<Object, String>,
}

/// A `system` message.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// What kind of notice it is, empty if it cannot be read.
    pub subtype: String,
    /// The whole message.
    pub data: Object,
}

/// What the model said or wants done.
#[derive(Debug, Clone, PartialEq)]
pub struct Assistant {
    /// Where Claude Code's transcript has it.
    pub uuid: Option<String>,
    /// The model's message, of which this may be one block of several.
    pub message_id: Option<String>,
    /// Its content.
    pub blocks: Vec<Block>,
    /// The call of the sub-agent that this comes from.
    pub parent_tool_use_id: Option<String>,
    /// The sub-agent that this comes from, where the CLI tells.
    pub agent_id: Option<String>,
    /// Why the model could not be asked.
    pub error: Option<String>,
}

/// A message in the user's place.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    /// Its id: for a repeated prompt the one it was sent with.
    pub uuid: Option<String>,
    /// Its content; plain text is one text block.
    pub blocks: Vec<Block>,
    /// The call of the sub-agent that this comes from.
    pub parent_tool_use_id: Option<String>,
    /// Whether this repeats a prompt as a receipt.
    pub is_replay: bool,
    /// Whether the CLI made it up.
    pub is_synthetic: bool,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// The model's thoughts.
    Thinking {
        /// The thoughts.
        text: String,
    },
    /// A tool call.
    ToolUse {
        /// The id of the call.
        id: String,
        /// The tool.
        name: String,
        /// What it is called with; empty when it came in an oversized line.
        input: Object,
    },
    /// What came of a tool call.
    ToolResult {
        /// The id of the call.
        tool_use_id: String,
        /// Text or content blocks; null if there is none.
        content: Value,
        /// Whether the call failed or was refused. A result that does not say so counts as having run.
        is_error: bool,
    },
    /// A block of a kind that is not known here, or of a known one in a form that is not.
    Other {
        /// Its `type`, empty if there is none that can be read.
        kind: String,
        /// The whole block; what is no object stands under `value`.
        data: Object,
    },
}

/// The end of a model loop.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    /// `success` or a kind of error; empty if it cannot be read.
    pub subtype: String,
    /// Whether it failed; an API failure has the subtype `success`. Where the CLI does not say, all but `success` is
    /// an error.
    pub is_error: bool,
    /// The final text.
    pub result: Option<String>,
    /// What went wrong.
    pub errors: Vec<String>,
    /// Tokens of this loop.
    pub usage: Object,
    /// What the process has cost so far.
    pub total_cost_usd: Option<f64>,
    /// Model calls of this loop.
    pub num_turns: Option<u64>,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// Why the loop stopped.
    pub terminal_reason: Option<String>,
    /// What started the loop when it was not a prompt: `task-notification`.
    pub origin_kind: Option<String>,
    /// The calls that were refused.
    pub permission_denials: Vec<Value>,
    /// The prompt that this answers, where the CLI tells.
    pub user_message_uuid: Option<String>,
}

/// Reads one line. Never fails: what cannot be read is [`Incoming::Rubbish`], what is not known [`Incoming::Other`].
///
/// A line that is JSON but that serde_json cannot build (nested too deeply, a number out of range), or that would take
/// many times its size in memory (more than 100,000 values), is read as if it were oversized, so that a question in it
/// is still seen and can be refused.
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
    let mended = serde_json::from_reader(Tamed::new(text.as_bytes(), usize::MAX));
    match mended {
        Ok(message) => read::message(message),
        Err(_) => oversized::parse_slim(text.as_bytes(), line.len() as u64),
    }
}

/// A value takes some hundred bytes once it is built, however short it is written.
const MAX_VALUES: usize = 100_000;

fn has_too_many_values(line: &[u8]) -> bool {
    // A value that is not the first is two bytes long with its comma.
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
    // A character that the cut went through has grown to a replacement of three bytes.
    text.truncate(text.floor_char_boundary(HEAD));
    Incoming::Rubbish { text }
}
