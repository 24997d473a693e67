//! A permit over streamable HTTP: a stream that the client can resume after a restart of the hub.

use http::Request;
use serde_json::{Value, json};

use crate::support::{Events, TestHub, read};

fn permit(tool_use_id: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 42, "method": "tools/call", "params": {
        "name": "loopback_permit",
        "arguments": {"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": tool_use_id},
        "_meta": {"progressToken": "p"},
    }})
    .to_string()
}

fn post(token: &str) -> http::request::Builder {
    Request::post("/mcp")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
}

fn resume(token: &str, event_id: &str) -> http::request::Builder {
    Request::get("/mcp")
        .header("authorization", format!("Bearer {token}"))
        .header("accept", "text/event-stream")
        .header("last-event-id", event_id)
}

/// The first event id of a stream.
async fn opening(events: &mut Events, retry: &str) -> String {
    let first = events.next().await.unwrap();
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines[1..], [format!("retry: {retry}").as_str(), "data: "], "{first}");
    lines[0].strip_prefix("id: ").unwrap().to_owned()
}

async fn decision(events: &mut Events) -> Value {
    loop {
        let message = events.message().await.expect("a decision");
        if message["id"] == 42 {
            let content = message["result"]["content"].as_array().unwrap();
            assert_eq!(content.len(), 1);
            return serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
        }
        assert_eq!(message["method"], "notifications/progress");
    }
}

#[tokio::test]
async fn a_permit_waits_on_a_stream_with_heartbeats_until_it_is_decided() {
    let hub = TestHub::with_settings("progress_secs = 0.05\nsse_retry_ms = 1000\n").await;
    let (session, token) = hub.outside_session("outside").await;
    let mut events = Events::of(hub.send(post(&token), permit("t1")).await);
    assert_eq!(events.headers["content-type"], "text/event-stream");
    assert_eq!(events.headers["cache-control"], "no-cache");
    opening(&mut events, "1000").await;
    for count in 1..=3 {
        let alive = events.message().await.unwrap();
        assert_eq!(
            alive["params"],
            json!({
                "progressToken": "p", "progress": count, "message": "waiting for a decision",
            })
        );
    }
    let approval = hub.first_approval(&session).await;
    let answer = json!({"approval_id": approval, "approve": false, "message": "not now"});
    hub.call("loopback.respond", answer).await.unwrap();
    assert_eq!(decision(&mut events).await, json!({"behavior": "deny", "message": "not now"}));
    assert_eq!(events.next().await, None, "and that was all");
}

#[tokio::test]
async fn a_permit_survives_two_kills_of_the_hub() {
    let mut hub = TestHub::start().await;
    let (session, token) = hub.outside_session("outside").await;
    let mut events = Events::of(hub.send(post(&token), permit("t1")).await);
    let mut id = opening(&mut events, "5000").await;
    let mut seen = vec![id.clone()];
    for _ in 0..2 {
        hub.process.kill9().await.unwrap();
        assert_eq!(events.next().await, None, "it broke off");
        hub.process.restart().await.unwrap();
        events = Events::of(hub.send(resume(&token, &id), "").await);
        id = opening(&mut events, "5000").await;
        assert!(!seen.contains(&id), "each stream has an id of its own");
        seen.push(id.clone());
    }
    let approval = hub.first_approval(&session).await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    let allowed = json!({"behavior": "allow", "updatedInput": {"command": "ls"}});
    assert_eq!(decision(&mut events).await, allowed);
    // A client that resumes after the answer gets it, too.
    let mut late = Events::of(hub.send(resume(&token, &id), "").await);
    assert_eq!(decision(&mut late).await, allowed);
}

#[tokio::test]
async fn a_stopping_hub_closes_the_stream_without_an_answer() {
    let mut hub = TestHub::start().await;
    let (session, token) = hub.outside_session("outside").await;
    let mut events = Events::of(hub.send(post(&token), permit("t1")).await);
    let id = opening(&mut events, "5000").await;
    hub.process.terminate().await.unwrap();
    assert_eq!(events.message().await, None);
    hub.process.restart().await.unwrap();
    let mut events = Events::of(hub.send(resume(&token, &id), "").await);
    let approval = hub.first_approval(&session).await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    assert_eq!(decision(&mut events).await["behavior"], "allow");
}

#[tokio::test]
async fn a_caller_cannot_resume_the_stream_of_another() {
    let hub = TestHub::start().await;
    let (_, token) = hub.outside_session("one").await;
    let (_, other) = hub.outside_session("two").await;
    let mut events = Events::of(hub.send(post(&token), permit("t1")).await);
    let id = opening(&mut events, "5000").await;
    let operator = hub.process.token().unwrap();
    for (who, event_id) in [(&other, id.as_str()), (&operator, id.as_str()), (&token, "made-up")] {
        let (status, body) = read(hub.send(resume(who, event_id), "").await).await;
        assert_eq!((status.as_u16(), &body["error"]["data"]["type"]), (404, &json!("stream_not_found")));
    }
}

#[tokio::test]
async fn a_permit_is_always_answered_with_a_decision() {
    let hub = TestHub::start().await;
    let (_, token) = hub.outside_session("outside").await;
    let broken = permit("t1").replace(r#""tool_name":"Bash","#, "");
    for (who, body) in [(hub.process.token().unwrap(), permit("t1")), (token.clone(), broken)] {
        let mut events = Events::of(hub.send(post(&who), body).await);
        assert_eq!(decision(&mut events).await["behavior"], "deny");
    }
    let batch = format!("[{}]", permit("t1"));
    assert_eq!(hub.send(post(&token), batch).await.status(), 400);
}

#[tokio::test]
async fn headers_that_name_another_call_are_rejected() {
    let hub = TestHub::start().await;
    let (session, token) = hub.outside_session("outside").await;
    let mut body: Value = serde_json::from_str(&permit("t1")).unwrap();
    body["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let modern =
        || post(&token).header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
    for request in [modern(), modern().header("mcp-name", "claudecode_list")] {
        let (status, answer) = read(hub.send(request, body.to_string()).await).await;
        assert_eq!((status.as_u16(), &answer["error"]["code"]), (400, &json!(-32020)), "{answer}");
    }
    let pending = hub.call("loopback.pending", json!({})).await.unwrap();
    assert_eq!(pending["approvals"], json!([]), "no approval was created");

    let request = modern().header("mcp-name", "loopback_permit");
    let mut events = Events::of(hub.send(request, body.to_string()).await);
    let approval = hub.first_approval(&session).await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    assert_eq!(decision(&mut events).await["behavior"], "allow");
}
