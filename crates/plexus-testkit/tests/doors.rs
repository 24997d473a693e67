//! Both clients with a fake hub: the same calls have the same results and the same errors.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::convert::Infallible;

use axum::extract::{Json, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use plexus_testkit::rpc::{CallError, Door, McpClient, Rpc};
use serde_json::{Value, json};

/// How the fake hub responds over MCP.
#[derive(Clone, Copy)]
enum Mode {
    Plain,
    Streamed,
}

/// A fake hub that echoes `a.echo`, fails `a.fail` and has no other method.
async fn hub(mode: Mode) -> String {
    let app = axum::Router::new().route("/rpc", post(rpc)).route("/mcp", post(mcp)).with_state(mode);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

fn failure() -> Value {
    json!({"type":"session_not_found","message":"no session of that name","name":"x"})
}

fn authorized(headers: &HeaderMap) -> bool {
    headers.get("authorization").is_some_and(|value| value == "Bearer good")
}

async fn rpc(headers: HeaderMap, Json(request): Json<Value>) -> Response {
    if !authorized(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let (name, outcome) = match request["method"].as_str() {
        Some("a.echo") => ("result", request["params"].clone()),
        Some("a.fail") => {
            ("error", json!({"code":-32000,"message":"no session of that name","data":failure()}))
        }
        _ => ("error", json!({"code":-32601,"message":"no such method"})),
    };
    Json(json!({"jsonrpc":"2.0","id":request["id"],name:outcome})).into_response()
}

async fn mcp(State(mode): State<Mode>, headers: HeaderMap, Json(request): Json<Value>) -> Response {
    if !authorized(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let method = request["method"].as_str().unwrap();
    if method != "initialize" {
        assert_eq!(headers["mcp-session-id"], "s1");
        assert_eq!(headers["mcp-protocol-version"], "2025-06-18");
    }
    let text = |value: Value, is_error: bool| json!({"content":[{"type":"text","text":value.to_string()}],"isError":is_error});
    let params = &request["params"];
    let (name, outcome) = match (method, params["name"].as_str()) {
        ("notifications/initialized", _) => return StatusCode::ACCEPTED.into_response(),
        ("initialize", _) => ("result", json!({"protocolVersion":"2025-06-18","capabilities":{}})),
        ("tools/list", _) => ("result", json!({"tools":[{"name":"a_echo"}]})),
        ("tools/call", Some("a_echo")) => ("result", text(params["arguments"].clone(), false)),
        ("tools/call", Some("a_fail")) => ("result", text(failure(), true)),
        _ => ("error", json!({"code":-32601,"message":"no such method"})),
    };
    let answer = json!({"jsonrpc":"2.0","id":request["id"],name:outcome});
    let session = [("mcp-session-id", "s1")];
    match mode {
        Mode::Plain => (session, Json(answer)).into_response(),
        Mode::Streamed => {
            let progress = json!({"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,
                                  "progressToken":params["_meta"]["progressToken"]}});
            let events = [
                Event::default().id("1").data(""),
                Event::default().data(progress.to_string()),
                Event::default().data(answer.to_string()),
            ];
            (session, Sse::new(futures::stream::iter(events.map(Ok::<_, Infallible>)))).into_response()
        }
    }
}

async fn doors() -> Vec<Box<dyn Door>> {
    vec![
        Box::new(Rpc::new(&hub(Mode::Plain).await, "good")),
        Box::new(McpClient::connect(&hub(Mode::Plain).await, "good").await.unwrap()),
        Box::new(McpClient::connect(&hub(Mode::Streamed).await, "good").await.unwrap()),
    ]
}

#[tokio::test]
async fn a_result_is_the_same_through_every_door() {
    for door in doors().await {
        assert_eq!(door.call("a.echo", json!({"x":[1,"ü"]})).await, Ok(json!({"x":[1,"ü"]})));
    }
}

#[tokio::test]
async fn a_failure_is_the_same_through_every_door() {
    for door in doors().await {
        let error = door.call("a.fail", json!({})).await.unwrap_err();
        let message = "no session of that name".to_owned();
        assert_eq!(error, CallError { kind: Some("session_not_found".into()), message, data: failure() });
        let error = door.call("a.nothing", json!({})).await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (None, "no such method"));
    }
}

#[tokio::test]
async fn an_invalid_token_and_a_missing_hub_have_error_names() {
    let url = hub(Mode::Plain).await;
    assert_eq!(Rpc::new(&url, "bad").call("a.echo", json!({})).await.unwrap_err().code, 401);
    let unauthorized = Door::call(&Rpc::new(&url, ""), "a.echo", json!({})).await.unwrap_err();
    assert_eq!(unauthorized.kind.as_deref(), Some("http_401"));
    let unauthorized = McpClient::connect(&url, "bad").await.unwrap_err();
    assert_eq!(unauthorized.kind.as_deref(), Some("http_401"));

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let missing = Door::call(&Rpc::new(&nobody, "good"), "a.echo", json!({})).await.unwrap_err();
    assert_eq!(missing.kind.as_deref(), Some("transport"));
}

#[tokio::test]
async fn a_parents_calls_and_bytes_are_counted() {
    let client = McpClient::connect(&hub(Mode::Streamed).await, "good").await.unwrap();
    assert_eq!(client.tools().await.unwrap(), [json!({"name":"a_echo"})]);
    let before = client.traffic();
    client.call("a.echo", json!({"x":"y".repeat(1000)})).await.unwrap();
    let after = client.traffic();
    assert_eq!(after.calls, 1);
    assert!(
        after.sent_bytes - before.sent_bytes > 1000 && after.received_bytes - before.received_bytes > 1000
    );
}
