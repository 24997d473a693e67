//! The HTTP side of the scripted model: the routes that Claude Code calls, and nothing else.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::{DefaultBodyLimit, Json, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::step::{Block, Kind};
use super::{Shared, answer};

pub(super) async fn start(shared: Arc<Shared>) -> anyhow::Result<(SocketAddr, JoinHandle<()>)> {
    let app = axum::Router::new()
        .route("/", get(|| async { StatusCode::OK }))
        .route("/v1/messages", post(messages))
        .route(
            "/v1/messages/count_tokens",
            post(|| async { Json(json!({"input_tokens":answer::INPUT_TOKENS})) }),
        )
        .fallback(|| async { error(404, "not_found_error", "the scripted model has no such route") })
        // Prompts may have 16 MiB.
        .layer(DefaultBodyLimit::disable())
        .with_state(shared);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    // Without this, Nagle's algorithm adds 40 ms to every streamed answer.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let server = tokio::spawn(async move {
        // It returns only when the task is aborted. Accept errors are retried.
        drop(axum::serve(listener, app).await);
    });
    Ok((address, server))
}

async fn messages(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let headers: HashMap<_, _> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let (mut step, ids) = shared.record(&body, headers);
    loop {
        step = match step.0 {
            Kind::Message(blocks) => return message(&body, &ids, &blocks),
            Kind::Error { status, kind, message } => return error(status, &kind, &message),
            Kind::Computed(answer) => answer(&body),
            Kind::Failing { left, status, retry_after, then } => {
                let tries = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                if tries.is_ok() {
                    return retryable(status, retry_after);
                }
                *then
            }
            Kind::Held { mut released, then } => {
                // An error means that the handle was dropped, which also releases.
                drop(released.wait_for(|released| *released).await);
                *then
            }
        };
    }
}

fn message(body: &Value, ids: &str, blocks: &[Block]) -> Response {
    if body["stream"] != true {
        return Json(answer::message(&body["model"], ids, blocks)).into_response();
    }
    let events = answer::events(&body["model"], ids, blocks).into_iter().map(|event| {
        let name = event["type"].as_str().unwrap_or_default();
        Ok::<_, Infallible>(Event::default().event(name).data(event.to_string()))
    });
    Sse::new(futures::stream::iter(events)).into_response()
}

fn retryable(status: u16, retry_after: u64) -> Response {
    let kind = if status == 429 { "rate_limit_error" } else { "overloaded_error" };
    let mut response = error(status, kind, "try again");
    response.headers_mut().remove("x-should-retry");
    response.headers_mut().insert("retry-after", retry_after.into());
    response
}

fn error(status: u16, kind: &str, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = json!({"type":"error","error":{"type":kind,"message":message}});
    // Claude Code's client obeys this header. Without it, it would retry a scripted 500 ten times.
    (status, [("x-should-retry", "false")], Json(body)).into_response()
}
