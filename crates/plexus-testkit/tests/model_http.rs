//! The scripted model as an HTTP server.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use plexus_testkit::model::{INPUT_TOKENS, ScriptedModel, Step, Tool};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One request on its own connection. Returns the status and the body.
async fn http(model: &ScriptedModel, method: &str, path: &str, body: &str) -> (u16, String) {
    let address = model.url().replace("http://", "");
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn request(text: &str) -> Value {
    json!({"model":"m","messages":[{"role":"user","content":text}]})
}

#[tokio::test]
async fn the_model_serves_only_the_paths_of_claude_code() {
    let model = ScriptedModel::start().await.unwrap();
    assert_eq!(http(&model, "HEAD", "/", "").await.0, 200);
    let (status, tokens) = http(&model, "POST", "/v1/messages/count_tokens", "{}").await;
    assert_eq!((status, tokens), (200, json!({"input_tokens":INPUT_TOKENS}).to_string()));
    let (status, error) = http(&model, "GET", "/v1/models", "").await;
    assert_eq!(status, 404);
    assert_eq!(serde_json::from_str::<Value>(&error).unwrap()["error"]["type"], "not_found_error");
}

#[tokio::test]
async fn a_message_is_sent_whole_or_as_a_stream() {
    let model = ScriptedModel::start().await.unwrap();
    let call = Tool::new("Bash", json!({"command":"ls"}));
    model.script("my mark", vec![Step::text_and_tools("hello", vec![call])]);
    let mut request = request("my mark");
    let (status, whole) = http(&model, "POST", "/v1/messages?beta=true", &request.to_string()).await;
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!((status, &whole["content"][1]["id"]), (200, &json!("toolu_my_mark_0_0")));

    request["stream"] = json!(true);
    let (_, stream) = http(&model, "POST", "/v1/messages?beta=true", &request.to_string()).await;
    let mut names: Vec<_> = stream.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    names.dedup();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let wanted = [&["message_start"][..], &block, &block, &["message_delta", "message_stop"]].concat();
    assert_eq!(names, wanted);
}

#[tokio::test]
async fn a_conversation_without_a_script_gets_a_harmless_text() {
    let model = ScriptedModel::start().await.unwrap();
    model.script("mark", vec![]);
    for text in ["something else", "mark"] {
        let (status, answer) = http(&model, "POST", "/v1/messages", &request(text).to_string()).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &answer["stop_reason"]), (200, &json!("end_turn")));
    }
    let markers: Vec<_> = model.requests().into_iter().map(|request| request.marker).collect();
    assert_eq!(markers, [None, Some("mark".to_owned())]);
}

#[tokio::test]
async fn a_prompt_of_16_mib_is_accepted() {
    let model = ScriptedModel::start().await.unwrap();
    let prompt = "x".repeat(16 << 20);
    assert_eq!(http(&model, "POST", "/v1/messages", &request(&prompt).to_string()).await.0, 200);
}
