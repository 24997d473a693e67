//! Server-sent events: `GET /sessions/{id}/events`, `GET /sessions/events` and `GET /approvals/events`. Each listener has a follower of its own
//! in the core and reads at its own pace; what is here only writes down what the follower tells.

pub(crate) mod approvals;
pub(crate) mod changes;
pub(crate) mod sessions;

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{StatusCode, header};
use plexus_protocol::{Error, ErrorKind};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// How often a silent stream shows that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Something that tells what comes next, as bytes of a stream.
pub(crate) trait Teller: Send + 'static {
    fn next(&mut self) -> impl Future<Output = Result<Bytes, Error>> + Send;
}

/// A response that goes on for as long as its reader wants, or the hub serves.
pub(crate) fn response(teller: impl Teller, stop: CancellationToken) -> Response {
    // The first bytes go out at once: a client knows that it is connected.
    let opening = stream::iter([Ok(Bytes::from_static(b": connected\n\n"))]);
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(opening.chain(told(teller, stop)))).into_response()
}

fn told(teller: impl Teller, stop: CancellationToken) -> impl Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold(Some((teller, stop)), |state| async move {
        let (mut teller, stop) = state?;
        let bytes = tokio::select! {
            told = teller.next() => match told {
                Ok(bytes) => bytes,
                // Told and then broken off: the client comes back and goes on where it was.
                Err(error) => {
                    let data = Value::Object(error.to_object());
                    return Some((Ok(Bytes::from(format!("event: error\ndata: {data}\n\n"))), None));
                }
            },
            () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b": alive\n\n"),
            () = stop.cancelled() => return None,
        };
        Some((Ok(bytes), Some((teller, stop))))
    })
}

/// A stream that cannot begin.
pub(crate) fn refused(error: &Error) -> Response {
    let status = match error.kind {
        ErrorKind::SessionNotFound => StatusCode::NOT_FOUND,
        ErrorKind::Gone => StatusCode::GONE,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    (status, axum::Json(json!({"error": error.to_object()}))).into_response()
}
