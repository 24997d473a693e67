//! The permit over streamable HTTP, which may wait for days and across restarts of the hub (`docs/design/3-permits-over-mcp.md`).
//! This module
//! handles `tools/call loopback_permit`, and `GET /mcp` with `Last-Event-ID`; it passes all other requests to rmcp.
//! Before the first byte of a stream is sent, the hub has stored everything it needs to resume.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, stream};
use http::{HeaderMap, StatusCode, header};
use http_body_util::Full;
use plexus_core::{Hub, PermitTicket};
use plexus_protocol::Principal;
use plexus_store::CallIds;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, Interval};
use tokio_util::sync::CancellationToken;

use super::stream as sse;
use crate::body::ReadBody;
use crate::callers;
use crate::refusal::Refusal;
use crate::response_body::holding;
use crate::routes::Doors;

/// `POST /mcp`.
pub(crate) async fn post(
    State(doors): State<Doors>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Arc<callers::Call>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let ReadBody { bytes, charge } = match doors.reader().read(body, call.charge()).await {
        Ok(taken) => taken,
        Err(refusal) => return refusal.into_response(),
    };
    match Kind::of(&bytes) {
        Kind::Permit(call) if headers_agree(&parts.headers) => {
            drop(bytes);
            let Call { id, arguments, progress_token } = *call;
            let ticket = doors
                .hub
                .permit_open(&principal, arguments, CallIds { jsonrpc_id: id, progress_token })
                .await;
            // The request is stored by now, and may wait for days.
            drop(charge);
            stream_response(&doors, ticket)
        }
        Kind::Refused(answer) => (StatusCode::BAD_REQUEST, Json(answer)).into_response(),
        Kind::Permit(_) | Kind::Other => {
            let request = Request::from_parts(parts, Full::new(bytes));
            holding(doors.mcp.handle(request).await, charge)
        }
    }
}

/// `GET /mcp`: resumes an interrupted stream. This endpoint offers no other stream.
pub(crate) async fn get(
    State(doors): State<Doors>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Response {
    let Some(last_event_id) = headers.get("last-event-id") else {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response();
    };
    let Ok(last_event_id) = last_event_id.to_str() else {
        return Refusal::UnknownStream.into_response();
    };
    match doors.hub.permit_resume(&principal, last_event_id).await {
        Some(ticket) => stream_response(&doors, ticket),
        None => Refusal::UnknownStream.into_response(),
    }
}

/// Whether the headers of a permit match its body. From 2026-07-28 on they must, so that intermediaries can rely on
/// them. A permit with other headers goes to rmcp, which rejects it.
fn headers_agree(headers: &HeaderMap) -> bool {
    let has = |name: &str, value: &str| headers.get(name).is_some_and(|given| given == value);
    let has_to = headers.get("mcp-protocol-version").is_some_and(|version| version >= "2026-07-28");
    !has_to || (has("mcp-method", "tools/call") && has("mcp-name", "loopback_permit"))
}

/// The parts of a `tools/call loopback_permit` that the permit needs.
#[derive(Debug, PartialEq)]
struct Call {
    id: Value,
    arguments: Value,
    progress_token: Option<Value>,
}

/// The kind of request in a body.
#[derive(Debug, PartialEq)]
enum Kind {
    Permit(Box<Call>),
    Refused(Value),
    Other,
}

impl Kind {
    fn of(bytes: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Envelope {
            method: Option<String>,
            params: Option<Params>,
        }
        #[derive(Deserialize)]
        struct Params {
            name: Option<String>,
        }
        if bytes.trim_ascii_start().starts_with(b"[") {
            return Self::Refused(invalid(Value::Null, "MCP does not support batches"));
        }
        // First a partial parse: most bodies are not permits, and some are large.
        let is_permit = serde_json::from_slice::<Envelope>(bytes).is_ok_and(|envelope| {
            envelope.method.as_deref() == Some("tools/call")
                && envelope.params.is_some_and(|params| params.name.as_deref() == Some("loopback_permit"))
        });
        if !is_permit {
            return Self::Other;
        }
        let mut message: Value = match serde_json::from_slice(bytes) {
            Ok(message) => message,
            Err(_) => return Self::Other,
        };
        let id = message["id"].take();
        if !(id.is_string() || id.is_number()) {
            return Self::Refused(invalid(Value::Null, "`id` must be a string or a number"));
        }
        let params = &mut message["params"];
        let progress_token = Some(params["_meta"]["progressToken"].take()).filter(|token| !token.is_null());
        Self::Permit(Box::new(Call { id, arguments: params["arguments"].take(), progress_token }))
    }
}

fn invalid(id: Value, message: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": {"code": -32600, "message": message, "data": {"type": "invalid_request", "message": message}},
    })
}

fn stream_response(doors: &Doors, ticket: PermitTicket) -> Response {
    let settings = doors.hub.settings();
    let opening = ticket.stream_id.as_deref().map(|id| sse::opening(id, settings.sse_retry));
    let waiting = Waiting::new(Arc::clone(&doors.hub), ticket, settings.progress_every, doors.stop.clone());
    let events = stream::iter(opening.map(Ok)).chain(waiting.events());
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(events)).into_response()
}

/// A stream that waits for its decision.
struct Waiting {
    /// One future for the whole stream. While it exists, the hub knows that the child is listening.
    decision: BoxFuture<'static, Value>,
    jsonrpc_id: Value,
    progress_token: Option<Value>,
    ticks: Interval,
    signs: u64,
    stop: CancellationToken,
}

impl Waiting {
    fn new(hub: Arc<Hub>, ticket: PermitTicket, every: Duration, stop: CancellationToken) -> Self {
        let CallIds { jsonrpc_id, progress_token } = ticket.ids.clone();
        let decision = async move { hub.permit_answer(&ticket).await }.boxed();
        let ticks = tokio::time::interval_at(Instant::now() + every, every);
        Self { decision, jsonrpc_id, progress_token, ticks, signs: 0, stop }
    }

    /// Heartbeats until the decision arrives, then the decision.
    fn events(self) -> impl Stream<Item = Result<Bytes, io::Error>> {
        stream::unfold(Some(self), |waiting| async move {
            let mut waiting = waiting?;
            let (event, goes_on) = tokio::select! {
                decision = &mut waiting.decision => (Ok(sse::decision(&waiting.jsonrpc_id, &decision)), false),
                _ = waiting.ticks.tick() => {
                    waiting.signs += 1;
                    tracing::debug!(signs = waiting.signs, "sent progress for a waiting permit");
                    (Ok(sse::sign_of_life(waiting.progress_token.as_ref(), waiting.signs)), true)
                }
                // Aborted rather than ended: a client reconnects to an aborted stream.
                () = waiting.stop.cancelled() => (Err(io::ErrorKind::ConnectionAborted.into()), false),
            };
            Some((event, goes_on.then_some(waiting)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_distinguished_from_other_calls() {
        let permit = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {
            "name": "loopback_permit",
            "arguments": {"tool_name": "Bash", "input": {}, "tool_use_id": "t"},
            "_meta": {"progressToken": "p"},
        }});
        let call = Call {
            id: json!(4),
            arguments: json!({"tool_name": "Bash", "input": {}, "tool_use_id": "t"}),
            progress_token: Some(json!("p")),
        };
        assert_eq!(Kind::of(permit.to_string().as_bytes()), Kind::Permit(Box::new(call)));
        for other in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "loopback_wait"}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"name": "loopback_permit"}}),
            json!(7),
        ] {
            assert_eq!(Kind::of(other.to_string().as_bytes()), Kind::Other, "{other}");
        }
        assert_eq!(Kind::of(b"{"), Kind::Other);
    }

    #[test]
    fn a_permit_in_a_batch_or_without_an_id_is_refused() {
        let call = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "loopback_permit"}});
        assert!(matches!(Kind::of(call.to_string().as_bytes()), Kind::Refused(_)));
        assert!(matches!(Kind::of(format!(" [{call}]").as_bytes()), Kind::Refused(_)));
    }
}
