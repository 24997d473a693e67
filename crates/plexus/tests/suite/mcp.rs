//! `/mcp`: tools, their results and their failures, in both lifecycles of the protocol.

use http::Request;
use serde_json::{Value, json};

use crate::support::{Events, TestHub};

fn post(hub: &TestHub) -> http::request::Builder {
    Request::post("/mcp")
        .header("authorization", hub.bearer())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
}

async fn ask(hub: &TestHub, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut events = Events::of(hub.send(post(hub).header("mcp-protocol-version", "2025-11-25"), body).await);
    loop {
        let message = events.message().await.expect("an answer");
        if message["id"] == 1 {
            return message;
        }
    }
}

#[tokio::test]
async fn a_parent_finds_its_tools_without_a_session() {
    let hub = TestHub::start().await;
    let client = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = ask(&hub, "initialize", client).await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(hello["result"]["serverInfo"]["name"], "plexus");
    let listed = ask(&hub, "tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"claudecode_create") && names.contains(&"loopback_wait"), "{names:?}");
    assert!(!names.contains(&"loopback_permit"), "that tool is for children");
}

#[tokio::test]
async fn an_agent_reads_at_most_20_tools_and_16_kib() {
    let hub = TestHub::start().await;
    let lead = json!({"name": "lead", "working_dir": hub.work(), "hub_tools": true});
    let lead = hub.call("claudecode.create", lead).await.unwrap()["id"].clone();
    let session = format!("Bearer {}", hub.token_of_outside_run(lead.as_str().unwrap()).await);
    for agent in [hub.bearer(), session] {
        let tools = hub.tools(&agent).await;
        let size = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string().len();
        let names: Vec<&str> =
            tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.len() <= 20, "{} tools: {names:?}", names.len());
        assert!(size <= 16 * 1024, "{size} bytes");
        for managing in ["claudecode_update", "claudecode_interrupt", "claudecode_stop", "claudecode_delete"]
        {
            assert!(names.contains(&managing), "{managing}: {names:?}");
        }
    }
}

#[tokio::test]
async fn a_call_of_the_sessionless_lifecycle_is_served_too() {
    let hub = TestHub::start().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "progressToken": "p",
    });
    let cursor = hub.call("loopback.wait", json!({})).await.unwrap()["cursor"].clone();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "loopback_wait", "arguments": {"cursor": cursor, "timeout_ms": 300}, "_meta": meta,
    }});
    let request = post(&hub)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "loopback_wait");
    let mut events = Events::of(hub.send(request, body.to_string()).await);
    let first = events.message().await.unwrap();
    assert_eq!(first["method"], "notifications/progress", "progress before the answer: {first}");
    assert_eq!(first["params"]["progressToken"], "p");
    let answer = events.message().await.unwrap();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(false)));
}

#[tokio::test]
async fn results_and_failures_are_one_compact_text_block() {
    let hub = TestHub::start().await;
    let listed = ask(&hub, "tools/call", json!({"name": "claudecode_list", "arguments": {}})).await;
    let content = listed["result"]["content"].as_array().unwrap();
    assert_eq!(content.len(), 1);
    assert_eq!(content[0]["text"], r#"{"type":"ok","sessions":[]}"#);
    assert!(listed["result"].get("structuredContent").is_none());
    let arguments = json!({"name": "nobody"});
    let failed = ask(&hub, "tools/call", json!({"name": "claudecode_get", "arguments": arguments})).await;
    assert_eq!(failed["result"]["isError"], true);
    let said: Value = serde_json::from_str(failed["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(said["type"], "session_not_found");
    let unknown = ask(&hub, "tools/call", json!({"name": "claudecode_explode", "arguments": {}})).await;
    assert_eq!(unknown["result"]["isError"], true);
}

#[tokio::test]
async fn a_waiting_call_sends_progress() {
    let hub = TestHub::with_settings("progress_secs = 0.1\n").await;
    let cursor = hub.call("loopback.wait", json!({})).await.unwrap()["cursor"].clone();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "loopback_wait", "arguments": {"cursor": cursor, "timeout_ms": 1000}, "_meta": {"progressToken": 9},
    }});
    let mut events = Events::of(hub.send(post(&hub), body.to_string()).await);
    let mut progress = Vec::new();
    loop {
        let message = events.message().await.unwrap();
        if message["id"] == 1 {
            break;
        }
        assert_eq!(message["params"]["progressToken"], 9);
        progress.push(message["params"]["progress"].as_f64().unwrap());
    }
    assert!(progress.len() >= 3, "{progress:?}");
    assert!(progress.is_sorted_by(|a, b| a < b), "{progress:?}");
}

#[tokio::test]
async fn a_get_request_for_a_stream_is_refused() {
    let hub = TestHub::start().await;
    let request =
        Request::get("/mcp").header("authorization", hub.bearer()).header("accept", "text/event-stream");
    assert_eq!(hub.send(request, "").await.status(), 405);
}

#[tokio::test]
async fn an_undeclared_tool_does_not_exist() {
    let hub = TestHub::start().await;
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        assert_eq!(ask(&hub, method, json!({})).await["error"]["code"], -32601, "{method}");
    }
    let params = json!({"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "b", "value": "c"}});
    assert_eq!(ask(&hub, "completion/complete", params).await["error"]["code"], -32601);
}
