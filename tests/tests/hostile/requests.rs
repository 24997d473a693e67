//! A child that sends invalid requests. The gate's callback is never answered with an error, which would let the tool run,
//! and every request is answered once.

use plexus_e2e::{Setup, World, script};
use serde_json::{Value, json};

use super::{lines, replies};

async fn world(test: &str) -> anyhow::Result<World> {
    Setup::scripted()
        .world(test)
        .await?
        .ok_or_else(|| anyhow::anyhow!("the scripted agent is always available"))
}

/// A gate callback with a change.
fn callback(id: &str, change: impl FnOnce(&mut Value)) -> Value {
    let input = json!({
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": {"command": "ls"}, "cwd": "/", "permission_mode": "default",
    });
    let request = json!({
        "subtype": "hook_callback", "callback_id": "plexus_gate", "tool_use_id": "t1", "input": input,
    });
    let mut line = json!({"type": "control_request", "request_id": id, "request": request});
    change(&mut line["request"]);
    line
}

/// Requests that may be the gate's callback but are not valid as one.
fn unreadable_calls() -> Vec<(&'static str, String)> {
    let mut calls: Vec<(&'static str, Value)> = Vec::new();
    let mut add = |id: &'static str, change: &dyn Fn(&mut Value)| calls.push((id, callback(id, change)));
    add("no-tool-name", &|r| _ = r["input"].as_object_mut().and_then(|input| input.remove("tool_name")));
    add("tool-name-empty", &|r| r["input"]["tool_name"] = json!(""));
    add("tool-name-a-list", &|r| r["input"]["tool_name"] = json!(["Bash"]));
    add("no-input", &|r| _ = r.as_object_mut().and_then(|request| request.remove("input")));
    add("input-a-text", &|r| r["input"] = json!("PreToolUse"));
    add("tool-input-null", &|r| r["input"]["tool_input"] = Value::Null);
    add("tool-input-a-list", &|r| r["input"]["tool_input"] = json!(["ls"]));
    add("another-callback", &|r| r["callback_id"] = json!("hook_0"));
    add("no-callback", &|r| _ = r.as_object_mut().and_then(|request| request.remove("callback_id")));
    add("callback-a-number", &|r| r["callback_id"] = json!(7));
    add("another-event", &|r| r["input"]["hook_event_name"] = json!("PostToolUse"));
    add("two-ids", &|r| r["tool_use_id"] = json!("t2"));
    add("no-id", &|r| {
        r["tool_use_id"] = Value::Null;
        r["input"]["tool_use_id"] = json!(1);
    });
    add("no-subtype", &|r| _ = r.as_object_mut().and_then(|request| request.remove("subtype")));
    add("subtype-a-number", &|r| r["subtype"] = json!(1));
    add("request-a-text", &|r| *r = json!("hook_callback"));
    add("request-null", &|r| *r = Value::Null);
    add("ten-megabytes", &|r| r["input"]["tool_input"]["command"] = json!("x".repeat(10 << 20)));
    let mut lines: Vec<_> = calls.into_iter().map(|(id, line)| (id, line.to_string())).collect();
    let deep = callback("nested", |r| r["input"]["tool_input"] = json!({"deep": "HERE"})).to_string();
    let nested = [&"[".repeat(2000), "1", &"]".repeat(2000)].concat();
    lines.push(("nested", deep.replace("\"HERE\"", &nested)));
    lines
}

#[tokio::test]
async fn an_invalid_gate_callback_is_denied_and_never_answered_with_an_error() -> anyhow::Result<()> {
    let world = world("requests::unreadable_calls").await?;
    let calls = unreadable_calls();
    let raw = calls.iter().map(|(_, line)| json!({"raw": line}));
    let last = json!({"tool": "Bash", "input": {"command": "touch made.txt"}});
    let steps: Value = raw.chain([last]).collect();
    let session = world.create("rubbish", json!({})).await?;
    world.chat(&session, &script(&steps)).await?;
    // The child continues, and its valid request becomes an approval.
    super::asked_then_denied(&world, &session, "made.txt").await?;
    let outbox = lines(&world, &session, "outbox.jsonl")?;
    for (id, _) in calls {
        let answers = replies(&outbox, &json!(id));
        assert_eq!(answers.len(), 1, "{id}: {answers:#?}");
        assert_eq!(answers[0]["subtype"], "success", "{id}: {answers:#?}");
        let output = &answers[0]["response"]["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "PreToolUse", "{id}: {answers:#?}");
        assert_eq!(output["permissionDecision"], "deny", "{id}: {answers:#?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_invalid_permission_request_is_denied_and_an_unknown_request_gets_one_error() -> anyhow::Result<()>
{
    let world = world("requests::unreadable_questions").await?;
    let ask = |id: &str, change: &dyn Fn(&mut Value)| {
        let input = json!({"command": "touch made.txt"});
        let mut ask =
            json!({"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t1", "input": input});
        change(&mut ask);
        json!({"type": "control_request", "request_id": id, "request": ask}).to_string()
    };
    let questions = [
        ("ask-no-tool", ask("ask-no-tool", &|r| r["tool_name"] = Value::Null)),
        ("ask-input-a-list", ask("ask-input-a-list", &|r| r["input"] = json!([]))),
        ("ask-no-id", ask("ask-no-id", &|r| r["tool_use_id"] = json!({}))),
        ("ask-huge", ask("ask-huge", &|r| r["input"]["command"] = json!("x".repeat(10 << 20)))),
    ];
    let unknown = ["mcp_message", "elicitation", "Hook_Callback"].map(|subtype| {
        let id = format!("unknown-{subtype}");
        let request = json!({"subtype": subtype, "input": {}});
        (id.clone(), json!({"type": "control_request", "request_id": id, "request": request}).to_string())
    });
    let raw = questions.iter().map(|(_, line)| line).chain(unknown.iter().map(|(_, line)| line));
    let last = json!({"tool": "Bash", "input": {"command": "touch made.txt"}});
    let steps: Value = raw.map(|line| json!({"raw": line})).chain([last]).collect();
    let session = world.create("rubbish", json!({})).await?;
    world.chat(&session, &script(&steps)).await?;
    super::asked_then_denied(&world, &session, "made.txt").await?;
    let outbox = lines(&world, &session, "outbox.jsonl")?;
    for (id, _) in questions {
        let answers = replies(&outbox, &json!(id));
        assert_eq!(answers.len(), 1, "{id}: {answers:#?}");
        assert_eq!(answers[0]["subtype"], "success", "{id}: {answers:#?}");
        assert_eq!(answers[0]["response"]["behavior"], "deny", "{id}: {answers:#?}");
    }
    for (id, _) in unknown {
        let answers = replies(&outbox, &json!(id));
        assert_eq!(answers.len(), 1, "{id}: {answers:#?}");
        assert_eq!(answers[0]["subtype"], "error", "{id}: {answers:#?}");
    }
    Ok(())
}
