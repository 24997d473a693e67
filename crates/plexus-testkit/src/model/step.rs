//! The steps of a script, which tests write. A step is one answer of the model: a message with text and tool calls, an error, a delayed
//! answer, or an answer that is computed from the request.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use serde_json::Value;
use tokio::sync::watch;

/// One answer of the scripted model.
#[derive(Clone)]
pub struct Step(pub(super) Kind);

#[derive(Clone)]
pub(super) enum Kind {
    Message(Vec<Block>),
    Error { status: u16, kind: String, message: String },
    Failing { left: Arc<AtomicUsize>, status: u16, retry_after: u64, then: Box<Step> },
    Held { released: watch::Receiver<bool>, then: Box<Step> },
    Computed(Arc<dyn Fn(&Value) -> Step + Send + Sync>),
}

#[derive(Debug, Clone)]
pub(super) enum Block {
    Text(String),
    Tool(Tool),
}

/// A tool call of the scripted model.
#[derive(Debug, Clone)]
pub struct Tool {
    pub(super) name: String,
    pub(super) input: Value,
    pub(super) id: Option<String>,
}

impl Tool {
    /// A call with the id `toolu_<marker>_<step>_<i>`. `i` counts the tool calls of its message from 0.
    pub fn new(name: impl Into<String>, input: Value) -> Self {
        Self { name: name.into(), input, id: None }
    }

    /// The same call with this id.
    #[must_use]
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }
}

impl Step {
    /// A text, which ends the turn.
    pub fn text(text: impl Into<String>) -> Self {
        Self(Kind::Message(vec![Block::Text(text.into())]))
    }

    /// Tool calls in one message.
    #[must_use]
    pub fn tools(tools: Vec<Tool>) -> Self {
        Self(Kind::Message(tools.into_iter().map(Block::Tool).collect()))
    }

    /// One tool call.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::tools(vec![Tool::new(name, input)])
    }

    /// A text and tool calls in one message.
    pub fn text_and_tools(text: impl Into<String>, tools: Vec<Tool>) -> Self {
        let blocks = std::iter::once(Block::Text(text.into())).chain(tools.into_iter().map(Block::Tool));
        Self(Kind::Message(blocks.collect()))
    }

    /// An error of the API, such as `(400, "invalid_request_error", "…")`. The client must not retry.
    pub fn error(status: u16, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Kind::Error { status, kind: kind.into(), message: message.into() })
    }

    /// An error that the client may retry after this many seconds, for this many attempts; then `then`.
    #[must_use]
    pub fn failing(times: usize, status: u16, retry_after: u64, then: Step) -> Self {
        let left = Arc::new(AtomicUsize::new(times));
        Self(Kind::Failing { left, status, retry_after, then: Box::new(then) })
    }

    /// Keeps the model request open without sending a byte, until the handle is released or dropped; then `then`.
    #[must_use]
    pub fn hold(then: Step) -> (Self, Hold) {
        let (release, released) = watch::channel(false);
        (Self(Kind::Held { released, then: Box::new(then) }), Hold(release))
    }

    /// Computes the answer from the request body, for example from its tool results (see
    /// [`tool_results`](super::tool_results)).
    pub fn from_fn(answer: impl Fn(&Value) -> Step + Send + Sync + 'static) -> Self {
        Self(Kind::Computed(Arc::new(answer)))
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Message(blocks) => f.debug_tuple("Message").field(blocks).finish(),
            Kind::Error { status, message, .. } => write!(f, "Error({status}, {message:?})"),
            Kind::Failing { left, status, then, .. } => write!(f, "Failing({left:?}, {status}, {then:?})"),
            Kind::Held { then, .. } => f.debug_tuple("Held").field(then).finish(),
            Kind::Computed(_) => f.write_str("Computed"),
        }
    }
}

/// Keeps a model request open, see [`Step::hold`].
#[derive(Debug)]
pub struct Hold(watch::Sender<bool>);

impl Hold {
    /// Lets the model answer.
    pub fn release(self) {
        self.0.send_replace(true);
    }
}

/// Tool ids may contain only letters, digits, `_` and `-`.
pub(super) fn id_prefix(marker: &str, step: usize) -> String {
    let marker: String =
        marker.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    format!("toolu_{marker}_{step}")
}
