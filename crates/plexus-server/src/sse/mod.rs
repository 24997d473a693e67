//! Server-sent events: `GET /sessions/{id}/events`, `GET /sessions/events`, `GET /approvals/events`, and `GET /events`,
//! which combines them on one connection. Each client has its own follower in the core and reads at its own pace. This
//! module only serializes the follower's output.

pub(crate) mod all;
pub(crate) mod approvals;
pub(crate) mod changes;
pub(crate) mod sessions;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{StatusCode, header};
use plexus_core::FollowedEvent;
use plexus_protocol::{Error, ErrorKind};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::routes::Doors;

/// The heartbeat of a silent stream.
const HEARTBEAT: Bytes = Bytes::from_static(b": alive\n\n");

/// One event of a stream.
#[derive(Debug)]
pub(crate) struct Block {
    id: Option<String>,
    name: Option<&'static str>,
    data: Data,
}

/// The data of an event. All followers of a session share the serialized event.
#[derive(Debug)]
enum Data {
    Own(String),
    Shared(Arc<FollowedEvent>),
}

impl Data {
    fn as_str(&self) -> &str {
        match self {
            Self::Own(data) => data,
            Self::Shared(followed) => &followed.data,
        }
    }
}

impl Block {
    fn unnamed(id: Option<String>, data: String) -> Self {
        Self { id, name: None, data: Data::Own(data) }
    }

    fn named(name: &'static str, data: &Value) -> Self {
        Self { id: None, name: Some(name), data: Data::Own(data.to_string()) }
    }

    fn write(&self, out: &mut String) {
        let line = |out: &mut String, name: &str, value: &str| {
            for part in [name, ": ", value, "\n"] {
                out.push_str(part);
            }
        };
        if let Some(id) = &self.id {
            line(out, "id", id);
        }
        if let Some(name) = self.name {
            line(out, "event", name);
        }
        line(out, "data", self.data.as_str());
        out.push('\n');
    }
}

/// A source of events.
pub(crate) trait EventSource: Send + 'static {
    fn next(&mut self) -> impl Future<Output = Result<Vec<Block>, Error>> + Send;
}

/// A streaming response. It ends when its reader disconnects or the hub stops serving.
pub(crate) fn response(source: impl EventSource, doors: &Doors) -> Response {
    // The first bytes are sent immediately, so that a client knows it is connected.
    let opening = stream::iter([Ok(Bytes::from_static(b": connected\n\n"))]);
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    let events = event_stream(source, doors.limits.heartbeat, doors.stop.clone());
    (headers, Body::from_stream(opening.chain(events))).into_response()
}

/// The events of the source, and a comment after each heartbeat interval without events. A client that receives nothing
/// for longer knows that the hub or the connection is gone.
fn event_stream(
    source: impl EventSource,
    heartbeat: Duration,
    stop: CancellationToken,
) -> impl Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold(Some((source, stop)), move |state| async move {
        let (mut source, stop) = state?;
        let silence = Instant::now() + heartbeat;
        loop {
            let bytes = tokio::select! {
                next = source.next() => match next {
                    // A source may return without events. The client still needs its heartbeat.
                    Ok(blocks) if blocks.is_empty() && Instant::now() < silence => continue,
                    Ok(blocks) if blocks.is_empty() => HEARTBEAT,
                    Ok(blocks) => encode(&blocks),
                    // The stream sends the error and ends; the client reconnects and resumes.
                    Err(error) => {
                        let error = Block::named("error", &Value::Object(error.to_object()));
                        return Some((Ok(encode(&[error])), None));
                    }
                },
                () = tokio::time::sleep_until(silence) => HEARTBEAT,
                () = stop.cancelled() => return None,
            };
            return Some((Ok(bytes), Some((source, stop))));
        }
    })
}

fn encode(blocks: &[Block]) -> Bytes {
    let mut text = String::with_capacity(blocks.iter().map(|block| block.data.as_str().len() + 64).sum());
    blocks.iter().for_each(|block| block.write(&mut text));
    Bytes::from(text)
}

/// The response for a stream that cannot start.
pub(crate) fn error_response(error: &Error) -> Response {
    let status = match error.kind {
        ErrorKind::SessionNotFound => StatusCode::NOT_FOUND,
        ErrorKind::Gone => StatusCode::GONE,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    (status, axum::Json(json!({"error": error.to_object()}))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never has an event.
    struct Nothing;

    impl EventSource for Nothing {
        async fn next(&mut self) -> Result<Vec<Block>, Error> {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn a_stream_without_events_sends_heartbeats() {
        let mut events = Box::pin(event_stream(Nothing, Duration::from_millis(50), CancellationToken::new()));
        for _ in 0..3 {
            assert_eq!(events.next().await.unwrap().unwrap(), HEARTBEAT, "and not an empty piece");
        }
    }

    #[test]
    fn a_block_is_written_line_by_line() {
        let blocks = [
            Block::unnamed(Some("1-2".to_owned()), "{}".to_owned()),
            Block::named("delta", &json!({"a": 1})),
        ];
        assert_eq!(encode(&blocks), "id: 1-2\ndata: {}\n\nevent: delta\ndata: {\"a\":1}\n\n");
    }
}
