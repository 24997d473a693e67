//! The behaviour of the scripted agent that tests of the hub depend on.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod support;

use std::path::PathBuf;

use serde_json::{Value, json};
use support::{Dirs, Driver, ONE_ALLOWED_CALL, Reply, approve, outline};

const FIRST: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const SECOND: &str = "aaaaaaaa-0000-4000-8000-000000000002";

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_plexus-scripted-agent").into()
}

/// An initialized agent in its own directory.
async fn agent(dirs: &Dirs) -> Driver {
    let mut agent = Driver::start(&program(), &dirs.work, &dirs.env(""), "stdio");
    agent.initialize().await;
    agent
}

/// The calls in the log: id, tool and input.
fn log(dirs: &Dirs) -> Vec<(String, String, Value)> {
    let text = std::fs::read_to_string(&dirs.log).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|l| {
            (
                l["tool_use_id"].as_str().unwrap().into(),
                l["tool"].as_str().unwrap().into(),
                l["input"].clone(),
            )
        })
        .collect()
}

fn one_bash(command: &str) -> String {
    json!({"steps":[{"tool":"Bash","input":{"command":command},"id":"t1"},{"say":"done"}]}).to_string()
}

/// The gate's decision in Claude Code's format.
fn gate(decision: &str) -> Reply {
    Reply::Success(json!({"hookSpecificOutput":
        {"hookEventName":"PreToolUse","permissionDecision":decision,"permissionDecisionReason":"because"}}))
}

fn is_question(request: &Value) -> bool {
    request["subtype"] == "can_use_tool"
}

fn say(text: &str) -> impl Fn(&Value) -> bool + '_ {
    move |line| line["message"]["content"][0]["text"] == text
}

#[tokio::test]
async fn a_turn_has_the_messages_of_the_real_cli_in_order() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, &one_bash("touch made; echo ran")).await;
    let result = agent.turn(approve).await;
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["result"], "done");
    assert_eq!(result["usage"]["input_tokens"], 20);
    assert!(dirs.work.join("made").exists());
    assert_eq!(outline(&agent.seen[1..]), ONE_ALLOWED_CALL);
    assert_eq!(agent.finish().await, Some(0));
}

#[tokio::test]
async fn a_denied_call_never_runs() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, &one_bash("touch made")).await;
    let result = agent
        .turn(|request| {
            if is_question(request) {
                Reply::Success(json!({"behavior":"deny","message":"not now"}))
            } else {
                Reply::Success(json!({}))
            }
        })
        .await;
    assert_eq!(result["permission_denials"][0]["tool_use_id"], "t1");
    agent.prompt(SECOND, &one_bash("touch made")).await;
    agent.turn(|_| gate("deny")).await;
    assert_eq!(
        agent.tool_results(),
        [("t1".into(), "not now".into(), true), ("t1".into(), "because".into(), true)]
    );
    assert!(!dirs.work.join("made").exists());
    assert!(log(&dirs).is_empty());
}

#[tokio::test]
async fn the_edited_input_is_the_one_that_runs() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, &one_bash("echo first")).await;
    let edited = json!({"behavior":"allow","updatedInput":{"command":"echo second"}});
    agent.turn(|request| Reply::Success(if is_question(request) { edited.clone() } else { json!({}) })).await;
    assert_eq!(agent.tool_results(), [("t1".into(), "second".into(), false)]);
    assert_eq!(log(&dirs), [("t1".into(), "Bash".into(), json!({"command":"echo second"}))]);
}

#[tokio::test]
async fn an_error_of_the_gate_runs_the_tool_without_permission() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    for (uuid, broken) in [(FIRST, None), (SECOND, Some("rubbish"))] {
        agent.prompt(uuid, &one_bash("echo ran")).await;
        agent
            .turn(|request| {
                assert!(!is_question(request));
                broken.map_or(Reply::Error("boom"), gate)
            })
            .await;
    }
    assert_eq!(log(&dirs).len(), 2);
}

#[tokio::test]
async fn reading_needs_permission_only_if_the_gate_answers_ask() {
    let dirs = Dirs::new();
    std::fs::write(dirs.work.join("note"), "text").unwrap();
    let mut agent = agent(&dirs).await;
    let mut questions = Vec::new();
    for (turn, decision) in ["allow", "none", "ask"].into_iter().enumerate() {
        let read = json!([{"tool":"Read","input":{"file_path":"note"}}]).to_string();
        agent.prompt(&format!("aaaaaaaa-0000-4000-8000-00000000001{turn}"), &read).await;
        agent
            .turn(|request| {
                if is_question(request) {
                    questions.push(decision);
                    approve(request)
                } else if decision == "none" {
                    approve(request)
                } else {
                    gate(decision)
                }
            })
            .await;
    }
    assert_eq!(questions, ["ask"]);
    assert_eq!(log(&dirs).len(), 3);
}

#[tokio::test]
async fn an_interrupt_withdraws_the_permission_request_and_ends_the_turn() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    let two = json!([{"tools":[{"tool":"Bash","input":{"command":"touch made"}},{"tool":"Bash","input":{"command":"touch made"}}]}]);
    agent.prompt(FIRST, &two.to_string()).await;
    let hook = agent.until(|line| line["request"]["subtype"] == "hook_callback").await;
    agent.reply(&hook["request_id"], Reply::Success(json!({}))).await;
    let question = agent.until(|line| is_question(&line["request"])).await;
    agent.request("stop", json!({"subtype":"interrupt"})).await;
    let cancelled = agent.until(|line| line["type"] == "control_cancel_request").await;
    assert_eq!(cancelled["request_id"], question["request_id"]);
    let result = agent.turn(approve).await;
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("error_during_execution"), &json!(true)));
    assert_eq!(agent.tool_results().len(), 2);
    assert!(log(&dirs).is_empty());

    // The same process accepts the next prompt.
    agent.prompt(SECOND, &one_bash("echo ran")).await;
    assert_eq!(agent.turn(approve).await["is_error"], false);
}

#[tokio::test]
async fn an_interrupt_ends_a_running_command() {
    let dirs = Dirs::new();
    let mut started = dirs.signal("started");
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, &one_bash("echo x > started; while :; do sleep 1; done")).await;
    for _ in 0..2 {
        let request = agent.until(|line| line["type"] == "control_request").await;
        agent.reply(&request["request_id"], approve(&request["request"])).await;
    }
    agent.until(|line| line["state"] == "running").await;
    started.given().await;
    agent.request("stop", json!({"subtype":"interrupt"})).await;
    assert_eq!(agent.turn(approve).await["subtype"], "error_during_execution");
}

#[tokio::test]
async fn an_interrupting_denial_ends_the_turn() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, &one_bash("touch made")).await;
    let deny = json!({"behavior":"deny","message":"stop it","interrupt":true});
    let result = agent
        .turn(|request| Reply::Success(if is_question(request) { deny.clone() } else { json!({}) }))
        .await;
    assert_eq!(result["subtype"], "error_during_execution");
    assert!(!agent.seen.iter().any(say("done")));
}

#[tokio::test]
async fn a_prompt_sent_twice_is_acknowledged_twice_and_served_once() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, &one_bash("echo ran")).await;
    agent.until(|line| line["type"] == "control_request").await;
    agent.prompt(FIRST, &one_bash("echo ran")).await;
    agent.until(|line| line["isReplay"] == true).await;
    let hook = agent.seen.iter().rev().find(|line| line["type"] == "control_request").cloned().unwrap();
    agent.reply(&hook["request_id"], Reply::Success(json!({}))).await;
    agent.turn(approve).await;
    agent.prompt(FIRST, &one_bash("echo ran")).await;
    agent.until(|line| line["isReplay"] == true).await;
    agent.until(|line| line["state"] == "idle").await;
    agent.prompt(SECOND, "[{\"say\":\"next\"}]").await;
    agent.turn(approve).await;
    assert_eq!(log(&dirs).len(), 1);
    assert_eq!(agent.seen.iter().filter(|line| line["type"] == "result").count(), 2);
}

#[tokio::test]
async fn a_second_answer_changes_nothing() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, &one_bash("echo ran")).await;
    let hook = agent.until(|line| line["type"] == "control_request").await;
    agent.reply(&hook["request_id"], Reply::Success(json!({}))).await;
    agent.reply(&hook["request_id"], gate("deny")).await;
    agent.turn(approve).await;
    assert_eq!(log(&dirs).len(), 1);
}

#[tokio::test]
async fn parallel_calls_request_permission_before_any_is_answered() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    let calls: Vec<_> = (0..3)
        .map(|i| json!({"tool":"Bash","input":{"command":format!("echo {i}")},"id":format!("t{i}")}))
        .collect();
    agent.prompt(FIRST, &json!([{"tools":calls,"parallel":true}]).to_string()).await;
    let mut hooks = Vec::new();
    for _ in 0..3 {
        hooks.push(agent.until(|line| line["type"] == "control_request").await);
    }
    for hook in hooks.iter().rev() {
        agent.reply(&hook["request_id"], gate("allow")).await;
    }
    agent.turn(approve).await;
    let mut results = agent.tool_results();
    results.sort();
    assert_eq!(results, [0, 1, 2].map(|i| (format!("t{i}"), i.to_string(), false)));
    let ids: std::collections::HashSet<_> = agent
        .seen
        .iter()
        .filter(|line| line["type"] == "assistant")
        .map(|line| line["message"]["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 1, "calls of one message share its id");
}

#[tokio::test]
async fn a_script_can_violate_the_protocol() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    let script = json!([
        {"raw":"not json"},
        {"raw_partial":"{\"type\":\"system\",\"subtype\":\"sp"}, {"raw_partial":[195]}, {"raw_partial":[188]}, {"raw":"\"}"},
        {"flood":{"events":1000,"bytes":100}},
        {"big_line":100_000},
        {"unknown_request":"make_coffee"},
        {"cancel_open":true},
        {"tool":"Bash","skip_gate":true,"id":"unseen"},
        {"tool":"Bash","ignore_denial":true,"id":"denied"},
        {"tool":"Bash","ignore_question":true,"id":"open"},
        {"result_error":"out of luck"},
        {"say":"never"}
    ]);
    agent.prompt(FIRST, &script.to_string()).await;
    let result = agent
        .turn(|request| match request["subtype"].as_str() {
            Some("make_coffee") => Reply::Error("unknown"),
            Some("hook_callback") if request["tool_use_id"] == "denied" => gate("deny"),
            Some("can_use_tool") => Reply::Silence,
            _ => Reply::Success(json!({})),
        })
        .await;
    assert_eq!(
        (&result["subtype"], &result["is_error"], &result["result"]),
        (&json!("success"), &json!(true), &json!("out of luck"))
    );
    assert!(agent.seen.contains(&json!("not json")));
    assert!(agent.seen.iter().any(|line| line["subtype"] == "spü"));
    let floods = agent
        .seen
        .iter()
        .filter(|line| line["message"]["content"][0]["text"].as_str().is_some_and(|t| t.len() == 100));
    assert_eq!(floods.count(), 1000);
    assert!(
        agent
            .seen
            .iter()
            .any(|line| line["message"]["content"][0]["text"].as_str().is_some_and(|t| t.len() == 100_000))
    );
    assert!(agent.seen.iter().any(say("make_coffee was answered with error: unknown")));
    assert_eq!(agent.seen.iter().filter(|line| line["type"] == "control_cancel_request").count(), 1);
    let results = agent.tool_results();
    assert!(results[0].2, "a withdrawn request gives an error result");
    for (id, _, is_error) in &results[1..] {
        assert!(!is_error, "{id} claims to have run");
    }
    assert_eq!(results.len(), 4);
    assert!(log(&dirs).is_empty());
    assert_eq!(agent.finish().await, Some(1));
}

#[tokio::test]
async fn a_clock_writes_its_times_at_its_pace() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, &json!([{"clock":{"events":3,"every_ms":20}}]).to_string()).await;
    agent.turn(|_| Reply::Success(json!({}))).await;
    let texts = agent.seen.iter().filter_map(|line| line["message"]["content"][0]["text"].as_str());
    let times: Vec<u64> = texts.filter_map(|text| text.parse().ok()).collect();
    assert_eq!(times.len(), 3);
    assert!(times[2] - times[0] >= 20_000_000, "{times:?}");
    assert_eq!(agent.finish().await, Some(0));
}

#[tokio::test]
async fn a_replay_writes_the_lines_of_a_file_and_logs_its_start() {
    let dirs = Dirs::new();
    let lines = "{\"type\":\"system\",\"subtype\":\"recorded\"}\n".repeat(5000);
    std::fs::write(dirs.work.join("recording.jsonl"), lines).unwrap();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, r#"[{"replay":"recording.jsonl"}]"#).await;
    let result = agent.turn(approve).await;
    assert_eq!(result["is_error"], false, "{result}");
    assert_eq!(agent.seen.iter().filter(|line| line["subtype"] == "recorded").count(), 5000);
    let entry: Value = serde_json::from_str(&std::fs::read_to_string(&dirs.log).unwrap()).unwrap();
    assert_eq!(entry["replay"], "recording.jsonl");
    assert!(entry["at_ns"].is_i64());
}

#[tokio::test]
async fn a_script_can_wait_for_a_file_and_exit_during_a_turn() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent
        .prompt(FIRST, &json!([{"say":"waiting"},{"wait_file":"go"},{"say":"went"},{"exit":3}]).to_string())
        .await;
    agent.until(say("waiting")).await;
    std::fs::write(dirs.work.join("go"), "").unwrap();
    agent.until(say("went")).await;
    assert_eq!(agent.finish().await, Some(3));
}

#[tokio::test]
async fn control_requests_are_answered_at_once() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.request("s", json!({"subtype":"mcp_status"})).await;
    let status = agent.until(|line| line["response"]["request_id"] == "s").await;
    assert_eq!(status["response"]["response"], json!({"mcpServers":[]}));
    agent.request("u", json!({"subtype":"no_such"})).await;
    let unknown = agent.until(|line| line["response"]["request_id"] == "u").await;
    assert_eq!(unknown["response"]["subtype"], "error");
    agent.request("m", json!({"subtype":"set_permission_mode","mode":"plan"})).await;
    agent.until(|line| line["subtype"] == "status" && line["permissionMode"] == "plan").await;
    agent.prompt(FIRST, "[{\"say\":\"hi\"}]").await;
    agent.until(|line| line["subtype"] == "init" && line["permissionMode"] == "plan").await;
}

#[tokio::test]
async fn an_invalid_script_ends_the_turn_with_its_reason() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, "[{\"sya\":\"hi\"}]").await;
    let result = agent.turn(approve).await;
    assert_eq!(result["is_error"], true);
    assert!(result["result"].as_str().unwrap().contains("unknown field `sya`"));
}

#[tokio::test]
async fn plain_text_runs_the_demo() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, "please help").await;
    agent.turn(approve).await;
    assert!(dirs.work.join("hello-from-plexus.txt").exists());
    assert_eq!(log(&dirs).iter().map(|(_, tool, _)| tool.as_str()).collect::<Vec<_>>(), ["Bash", "Write"]);
}

#[tokio::test]
async fn an_invalid_line_ends_the_agent_and_a_blank_line_does_not() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.write(b"\n").await;
    agent.request("s", json!({"subtype":"mcp_status"})).await;
    agent.until(|line| line["response"]["request_id"] == "s").await;
    agent.write(b"{half\n").await;
    while agent.next().await.is_some() {}
    assert_eq!(agent.child.wait().await.unwrap().code(), Some(1));
}

#[tokio::test]
async fn an_open_permission_request_is_denied_when_stdin_is_closed() {
    let dirs = Dirs::new();
    let mut agent = agent(&dirs).await;
    agent.prompt(FIRST, &one_bash("touch made")).await;
    agent.until(|line| line["type"] == "control_request").await;
    assert_eq!(agent.finish().await, Some(0));
    assert!(log(&dirs).is_empty());
}

#[tokio::test]
async fn a_call_on_the_mcp_channel_fails_with_a_reason() {
    let dirs = Dirs::new();
    let mut agent = Driver::start(&program(), &dirs.work, &dirs.env(""), "mcp__plexus__loopback_permit");
    agent.initialize().await;
    agent.prompt(FIRST, &one_bash("touch made")).await;
    let result = agent.turn(approve).await;
    assert_eq!(result["is_error"], true);
    assert!(result["result"].as_str().unwrap().contains("does not speak MCP"));
    assert!(log(&dirs).is_empty());
}
