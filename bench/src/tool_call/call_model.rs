//! The model of this benchmark. It holds every request until the benchmark releases it, so that only the children of one contender work at a
//! time, and contenders alternate call by call. Each answer is one Bash call, until a conversation has enough of them. The model records
//! when each request arrives and when its answer is ready. It never parses a request, because that time would be added to every contender
//! and hide the differences between them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// The prompt of a child is this and its number.
const MARKER: &str = "plexus-bench-child-";

/// The time limit for a request to arrive.
const LIMIT: Duration = Duration::from_secs(60);

/// The prompt of the child with this number.
pub(super) fn prompt(child: usize) -> String {
    format!("{MARKER}{child}.")
}

/// The name of the file that a call of a child creates.
pub(super) fn created_file(child: usize, call: usize) -> String {
    format!("created-{child}-{call}")
}

/// A model. Dropping it stops it.
pub(super) struct CallModel {
    pub(super) url: String,
    held: mpsc::UnboundedReceiver<Held>,
    server: JoinHandle<()>,
}

/// A request that waits for its answer.
pub(super) struct Held {
    pub(super) child: usize,
    /// The number of earlier answers in its conversation.
    pub(super) step: usize,
    pub(super) arrived: Instant,
    release: oneshot::Sender<oneshot::Sender<Instant>>,
}

impl Held {
    /// Lets the model answer. Returns when the answer is ready.
    pub(super) async fn release(self) -> anyhow::Result<Instant> {
        let (answered, when) = oneshot::channel();
        self.release.send(answered).ok().context("a child has disconnected from the model")?;
        when.await.context("a child has disconnected from the model")
    }
}

#[derive(Clone)]
struct Shared {
    calls: usize,
    held: mpsc::UnboundedSender<Held>,
}

impl CallModel {
    pub(super) async fn start(calls: usize) -> anyhow::Result<Self> {
        let (sender, held) = mpsc::unbounded_channel();
        let app = axum::Router::new()
            .route("/", get(|| async { StatusCode::OK }))
            .route("/v1/messages", post(messages))
            .fallback(|| async { StatusCode::NOT_FOUND })
            .with_state(Arc::new(Shared { calls, held: sender }));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        // Without this, Nagle's algorithm delays every answer by 40 ms.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let server = tokio::spawn(async move { drop(axum::serve(listener, app).await) });
        Ok(Self { url, held, server })
    }

    /// The next request that arrives.
    pub(super) async fn next(&mut self) -> anyhow::Result<Held> {
        let next = tokio::time::timeout(LIMIT, self.held.recv()).await;
        next.context("no child has called the model for a minute")?.context("the model has ended")
    }
}

impl Drop for CallModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn messages(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let arrived = Instant::now();
    let Ok(body) = to_bytes(request.into_body(), usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let body = String::from_utf8_lossy(&body);
    let Some(child) = child_of(&body) else {
        return stream("msg_other", &json!({"type": "text", "text": "ok"}));
    };
    // Quotes inside of strings are escaped, so this counts the model's own earlier answers.
    let step = body.matches(r#""role":"assistant""#).count();
    let (release, released) = oneshot::channel();
    let sent = shared.held.send(Held { child, step, arrived, release });
    let (Ok(()), Ok(answered)) = (sent, released.await) else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let answer = if step < shared.calls {
        let input = json!({"command": format!("touch {}", created_file(child, step)), "description": "Create a file"});
        json!({"type": "tool_use", "id": format!("toolu_{child}_{step}"), "name": "Bash", "input": input})
    } else {
        json!({"type": "text", "text": "All calls are done."})
    };
    // Claude Code merges messages with the same id.
    let response = stream(&format!("msg_{child}_{step}"), &answer);
    // The benchmark waits for this time.
    let _ = answered.send(Instant::now());
    response
}

/// The number of the child whose prompt is in this request.
fn child_of(body: &str) -> Option<usize> {
    let (_, after) = body.split_once(MARKER)?;
    after.split_once('.')?.0.parse().ok()
}

/// A message with this content block as server-sent events, in one piece.
fn stream(id: &str, block: &Value) -> Response {
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let mut start = block.clone();
    let (delta, stop_reason) = if block["type"] == "tool_use" {
        start["input"] = json!({});
        (json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}), "tool_use")
    } else {
        start["text"] = json!("");
        (json!({"type": "text_delta", "text": block["text"]}), "end_turn")
    };
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let lines = events.iter().map(|event| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], lines.collect::<String>()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_child() {
        assert_eq!(child_of(&format!("{{\"content\":\"{}\"}}", prompt(12))), Some(12));
        assert_eq!(child_of("a title, please"), None);
    }
}
