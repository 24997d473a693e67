//! `GET /rpc`: many calls on one socket.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{LIMIT, TestHub};

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn open(hub: &TestHub) -> Self {
        let mut request = format!("ws://{}/rpc", hub.authority()).into_client_request().unwrap();
        request.headers_mut().insert("authorization", hub.bearer().parse().unwrap());
        Self(connect_async(request).await.unwrap().0)
    }

    async fn send(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn call(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    async fn next(&mut self) -> Value {
        loop {
            let message =
                tokio::time::timeout(LIMIT, self.0.next()).await.expect("an answer").unwrap().unwrap();
            if !message.is_ping() {
                return serde_json::from_str(message.to_text().unwrap()).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_socket_without_the_token_is_rejected() {
    let hub = TestHub::start().await;
    let refused = connect_async(format!("ws://{}/rpc", hub.authority())).await.unwrap_err();
    assert!(refused.to_string().contains("401"), "{refused}");
}

#[tokio::test]
async fn responses_arrive_as_they_are_ready() {
    let hub = TestHub::start().await;
    let mut socket = Socket::open(&hub).await;
    let cursor = hub.call("loopback.wait", json!({})).await.unwrap()["cursor"].clone();
    socket.call(1, "loopback.wait", json!({"cursor": cursor, "timeout_ms": 700})).await;
    socket.call(2, "claudecode.list", json!({})).await;
    socket.send(json!("rubbish")).await;
    let mut ids: Vec<Value> = Vec::new();
    for _ in 0..3 {
        ids.push(socket.next().await["id"].clone());
    }
    assert_eq!(ids.last(), Some(&json!(1)), "the slow call did not hold the others up");
    assert!(ids.contains(&json!(2)) && ids.contains(&Value::Null));
}

#[tokio::test]
async fn calls_over_the_limit_of_a_socket_are_queued() {
    let hub = TestHub::start().await;
    let mut socket = Socket::open(&hub).await;
    let cursor = hub.call("loopback.wait", json!({})).await.unwrap()["cursor"].clone();
    for id in 0..300 {
        socket.call(id, "loopback.wait", json!({"cursor": cursor, "timeout_ms": 300})).await;
    }
    let mut ids: Vec<u64> = Vec::new();
    for _ in 0..300 {
        ids.push(socket.next().await["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..300).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_chat_sends_its_events_before_its_result() {
    let hub = TestHub::start().await;
    let create = json!({"name": "a", "working_dir": hub.work()});
    let session = hub.call("claudecode.create", create).await.unwrap()["id"].clone();
    let mut socket = Socket::open(&hub).await;
    let prompt = json!([{"say": "hello"}, {"tool": "Bash", "input": {"command": "touch made"}}]).to_string();
    socket.call(7, "claudecode.chat", json!({"session_id": session, "prompt": prompt})).await;
    let mut seqs = Vec::new();
    let mut types = Vec::new();
    let result = loop {
        let message = socket.next().await;
        if message["method"] == "claudecode.chat.event" {
            assert_eq!(message["params"]["id"], 7);
            let event = &message["params"]["event"];
            if event["type"] == "approval_requested" {
                let answer = json!({"approval_id": event["approval_id"], "approve": true});
                socket.call(8, "loopback.respond", answer).await;
            }
            types.push(event["type"].as_str().unwrap().to_owned());
            seqs.push(message["params"]["seq"].as_u64().unwrap());
        } else if message["id"] == 7 {
            break message["result"].clone();
        }
    };
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>(), "each event once and in order");
    for kind in ["start", "content", "tool_use", "approval_resolved", "tool_result", "complete"] {
        assert!(types.iter().any(|seen| seen == kind), "{kind} is not among {types:?}");
    }
    assert_eq!(result["status"], "complete");
}

#[tokio::test]
async fn a_message_over_the_limit_is_rejected_and_the_socket_stays_open() {
    let hub = TestHub::start().await;
    let mut socket = Socket::open(&hub).await;
    socket.0.send(Message::text(" ".repeat(16 * 1024 * 1024 + 1))).await.unwrap();
    assert_eq!(socket.next().await["error"]["data"]["type"], "too_large");
    socket.call(1, "claudecode.list", json!({})).await;
    assert_eq!(socket.next().await["id"], 1);
}
