//! `POST /rpc`: authentication and error codes.

use http::Request;
use serde_json::{Value, json};

use crate::support::{TestHub, read};

const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}"#;

#[tokio::test]
async fn health_needs_no_token_and_returns_the_version() {
    let hub = TestHub::start().await;
    let (status, body) = read(hub.send(Request::get("/health"), "").await).await;
    assert_eq!((status.as_u16(), &body["status"]), (200, &json!("ok")));
    assert_eq!(body["version"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn only_a_valid_token_is_accepted() {
    let hub = TestHub::start().await;
    let token = hub.process.token().unwrap();
    for path in ["/rpc", "/mcp"] {
        for header in ["", "Bearer wrong", "Basic abc"] {
            let mut request = Request::post(path);
            if !header.is_empty() {
                request = request.header("authorization", header);
            }
            let response = hub.send(request, DISCOVER).await;
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
            let (status, body) = read(response).await;
            assert_eq!(
                (status.as_u16(), &body["error"]["data"]["type"]),
                (401, &json!("unauthorized")),
                "{path}"
            );
        }
        let cookie = Request::post(path).header("cookie", format!("token={token}"));
        assert_eq!(hub.send(cookie, DISCOVER).await.status(), 401);
        let in_url = Request::post(format!("{path}?token={token}"));
        assert_eq!(hub.send(in_url, DISCOVER).await.status(), 401);
    }
}

#[tokio::test]
async fn requests_of_other_sites_are_rejected_even_with_the_token() {
    let hub = TestHub::start().await;
    let port = hub.authority().rsplit_once(':').unwrap().1.to_owned();
    let with = |name: &'static str, value: String| {
        Request::post("/rpc").header("authorization", hub.bearer()).header(name, value)
    };
    for request in [
        with("host", format!("evil.example:{port}")),
        with("host", "127.0.0.1".to_owned()),
        with("origin", "http://evil.example".to_owned()),
        with("origin", "http://127.0.0.1:1".to_owned()),
        with("origin", "null".to_owned()),
    ] {
        assert_eq!(hub.send(request, DISCOVER).await.status(), 403);
    }
    for request in
        [with("host", format!("localhost:{port}")), with("origin", format!("http://127.0.0.1:{port}"))]
    {
        assert_eq!(hub.send(request, DISCOVER).await.status(), 200);
    }
}

#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let hub = TestHub::start().await;
    for path in ["/nowhere", "/assets/nothing.js", "/down"] {
        let request = Request::get(path).header("authorization", hub.bearer());
        assert_eq!(hub.send(request, "").await.status(), 404, "{path}");
    }
    let down = Request::post("/down").header("authorization", hub.bearer());
    assert_eq!(hub.send(down, "").await.status(), 404, "only the socket has it");
}

#[tokio::test]
async fn the_schema_lists_every_method_with_its_parameters() {
    let hub = TestHub::start().await;
    let schema = hub.call("rpc.discover", json!({})).await.unwrap();
    assert!(schema["openrpc"].as_str().unwrap().starts_with("1."));
    let methods = schema["methods"].as_array().unwrap();
    let create = methods.iter().find(|method| method["name"] == "claudecode.create").unwrap();
    let dir =
        create["params"].as_array().unwrap().iter().find(|param| param["name"] == "working_dir").unwrap();
    assert_eq!((&dir["required"], &dir["schema"]["type"]), (&json!(true), &json!("string")));
    for name in ["claudecode.poll", "loopback.respond", "loopback.wait", "loopback.configure"] {
        assert!(methods.iter().any(|method| method["name"] == name), "{name}");
    }
}

#[tokio::test]
async fn each_invalid_request_gets_its_code_and_the_invalid_field() {
    let hub = TestHub::start().await;
    let code = |answer: &Value| answer["error"]["code"].as_i64().unwrap();
    assert_eq!(code(&hub.post_rpc("{").await.1), -32700);
    assert_eq!(code(&hub.post_rpc(r#"{"id":1}"#).await.1), -32600);

    let failed = async |method: &str, params: Value| hub.call(method, params).await.unwrap_err();
    let unknown = failed("nobody.knows", json!({})).await;
    assert_eq!((&unknown["code"], &unknown["data"]["type"]), (&json!(-32601), &json!("method_not_found")));
    let field = failed("claudecode.create", json!({"name": "a", "working_dir": "/", "colour": 1})).await;
    assert_eq!((&field["code"], &field["data"]["type"]), (&json!(-32602), &json!("unknown_field")));
    assert_eq!(field["data"]["field"], "colour");
    let typed = failed("claudecode.create", json!({"name": "a", "working_dir": 7})).await;
    assert_eq!((&typed["code"], &typed["data"]["field"]), (&json!(-32602), &json!("working_dir")));
    let session = failed("claudecode.get", json!({"name": "nobody"})).await;
    assert_eq!((&session["code"], &session["data"]["type"]), (&json!(-32000), &json!("session_not_found")));
    let array = failed("claudecode.get", json!([1])).await;
    assert_eq!(array["code"], -32602);
}

#[tokio::test]
async fn a_body_over_the_limit_is_too_large() {
    let hub = TestHub::start().await;
    for path in ["/rpc", "/mcp"] {
        let request = Request::post(path)
            .header("authorization", hub.bearer())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let (status, body) = read(hub.send(request, vec![b' '; 16 * 1024 * 1024 + 1]).await).await;
        assert_eq!((status.as_u16(), &body["error"]["data"]["type"]), (413, &json!("too_large")), "{path}");
    }
    let fits = format!("{DISCOVER}{}", " ".repeat(16 * 1024 * 1024 - DISCOVER.len()));
    assert_eq!(hub.post_rpc(fits).await.0, 200);
}

#[tokio::test]
async fn a_body_with_too_many_values_is_too_large() {
    let hub = TestHub::start().await;
    let params = format!("[{}]", vec!["[]"; 1_000_000].join(","));
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"claudecode.list","params":{params}}}"#);
    let (status, body) = hub.post_rpc(call).await;
    assert_eq!((status.as_u16(), &body["error"]["data"]["type"]), (413, &json!("too_large")), "{body}");
}

#[tokio::test]
async fn a_batch_gets_one_response_and_notifications_get_none() {
    let hub = TestHub::start().await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "claudecode.list"},
        {"jsonrpc": "2.0", "method": "claudecode.list"},
        {"jsonrpc": "2.0", "id": "b", "method": "nobody.knows"},
        7,
    ]);
    let (_, answers) = hub.post_rpc(batch.to_string()).await;
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 3);
    assert_eq!((&answers[0]["id"], &answers[0]["result"]["type"]), (&json!("a"), &json!("ok")));
    assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&json!("b"), &json!(-32601)));
    assert_eq!(answers[2]["error"]["code"], -32600);
    let (status, _) = hub.post_rpc(r#"{"jsonrpc":"2.0","method":"claudecode.list"}"#).await;
    assert_eq!(status, 204);
}

#[tokio::test]
async fn a_session_token_can_only_request_permits() {
    let hub = TestHub::start().await;
    let (_, token) = hub.outside_session("outside").await;
    let bearer = format!("Bearer {token}");
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"claudecode.list"}"#;
    let (_, answer) =
        read(hub.send(Request::post("/rpc").header("authorization", &bearer), list).await).await;
    assert_eq!(answer["error"]["data"]["type"], "forbidden");
    let tools = hub.tools(&bearer).await;
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["loopback_permit"]);
}
