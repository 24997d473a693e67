//! Trees of real CLIs: a parent escalates a call of a grandchild and the grandparent decides it, another call escalates to the operator
//! by timeout, and an idle parent is woken. The scripted models act on the result of the last tool call.

use plexus_e2e::{Channel, World, events, over};
use plexus_testkit::model::{ScriptedModel, Step, tool_results};
use serde_json::{Value, json};

over!(channels: an_approval_of_a_grandchild_escalates);

over!(channels: an_idle_parent_is_woken_and_answers);

/// What an agent does with an approval of a descendant.
type Decide = fn(&Value) -> Option<Step>;

fn call(tool: &str, input: Value) -> Step {
    Step::tool(format!("mcp__plexus__{tool}"), input)
}

/// The tool results of a conversation that are JSON.
fn json_results(request: &Value) -> Vec<Value> {
    let results = tool_results(request);
    results.iter().filter_map(|result| serde_json::from_str(&result.text).ok()).collect()
}

/// Creates an agent when the hub's tools are available.
fn create_agent(request: &Value, create: &Value) -> Step {
    let offered = |name: &str| {
        request["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
    };
    // The older CLI continues without a server that connects slowly, and offers a tool that waits for it.
    if offered("WaitForMcpServers") && !offered("mcp__plexus__claudecode_create") {
        return Step::tool("WaitForMcpServers", json!({}));
    }
    call("claudecode_create", create.clone())
}

/// Scripts an agent that creates another one and supervises it until the end of its turn.
fn script(model: &ScriptedModel, marker: &str, create: Value, decide: Decide) {
    let next = move |request: &Value| {
        let results = json_results(request);
        let Some(last) = results.last() else { return create_agent(request, &create) };
        if last["finished"].get(0).is_some() {
            return Step::text("All is done below me.");
        }
        if let Some(step) = last["approvals"].as_array().into_iter().flatten().find_map(decide) {
            return step;
        }
        match results.iter().rev().find_map(|result| result["cursor"].as_u64()) {
            Some(cursor) => call("loopback_wait", json!({"cursor": cursor, "timeout_ms": 50_000})),
            None => call("loopback_wait", json!({})),
        }
    };
    model.script(marker, vec![Step::from_fn(next); 60]);
}

fn is_first(approval: &Value) -> bool {
    approval["input"]["command"] == "touch first.txt"
}

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "make a file"}))
}

/// The parameters with which an agent creates a child.
fn below(world: &World, name: &str, more: Value) -> Value {
    let channel = if world.setup.channel == Channel::Control { "control" } else { "mcp" };
    let mut params = json!({"name": name, "working_dir": world.work, "channel": channel});
    for (field, value) in more.as_object().into_iter().flatten() {
        params[field] = value.clone();
    }
    params
}

async fn an_idle_parent_is_woken_and_answers(world: World) -> anyhow::Result<()> {
    world.model.script("LOWEST", vec![bash("touch first.txt"), Step::text("Made.")]);
    let child = below(&world, "child", json!({"prompt": "LOWEST"}));
    let next = move |request: &Value| match json_results(request).last() {
        None => create_agent(request, &child),
        Some(last) if last["approvals"].get(0).is_some() => {
            call("loopback_respond", json!({"approval_id": last["approvals"][0]["id"], "approve": true}))
        }
        Some(last)
            if last["type"] == "created"
                && request["messages"].to_string().contains("Plexus: 1 approval") =>
        {
            call("loopback_wait", json!({}))
        }
        Some(_) => Step::text("I rest."),
    };
    world.model.script("HIGHEST", vec![Step::from_fn(next); 20]);
    let scope = json!(["Bash(touch:*)"]);
    let more = json!({"prompt": "HIGHEST", "hub_tools": true, "approve_scope": scope, "wake": true});
    let parent = world.create("parent", more).await?;

    // The parent creates the child in its first turn, so the child exists now and can be polled.
    world.ended(&parent).await?;
    let child = loop {
        let poll = json!({"name": "child", "from_seq": 0, "limit": 1000, "wait_ms": 1000});
        let poll = world.door.call("claudecode.poll", poll).await?;
        if poll["status"] == "complete" {
            break poll;
        }
    };
    assert_eq!(
        events(&child, "approval_resolved")[0]["by"],
        json!({"kind": "session", "id": parent}),
        "{child}"
    );
    assert!(world.file("first.txt").exists());
    let woken = world.ended(&parent).await?;
    assert_eq!(
        (&woken["turn"], &events(&woken, "start")[0]["origin"]),
        (&json!(2), &json!("hub")),
        "{woken}"
    );
    Ok(())
}

async fn an_approval_of_a_grandchild_escalates(world: World) -> anyhow::Result<()> {
    world
        .model
        .script("LOWEST", vec![bash("touch first.txt"), bash("touch second.txt"), Step::text("Made.")]);
    let child = below(&world, "child", json!({"prompt": "LOWEST", "escalate_after_secs": 2}));
    script(&world.model, "MIDDLE", child, |approval| {
        let opinion = "it only makes a file";
        is_first(approval)
            .then(|| call("loopback_escalate", json!({"approval_id": approval["id"], "opinion": opinion})))
    });
    let scope = json!(["Bash(touch:*)"]);
    let parent =
        below(&world, "parent", json!({"prompt": "MIDDLE", "hub_tools": true, "approve_scope": scope}));
    script(&world.model, "HIGHEST", parent, |approval| {
        is_first(approval)
            .then(|| call("loopback_respond", json!({"approval_id": approval["id"], "approve": true})))
    });
    let before = world.call("loopback.wait", json!({})).await?["cursor"].clone();
    let grandparent = world
        .create("grandparent", json!({"prompt": "HIGHEST", "hub_tools": true, "approve_scope": scope}))
        .await?;

    // The operator is notified only of the second approval, after nobody else has answered it.
    let news = world.call("loopback.wait", json!({"cursor": before, "timeout_ms": 60_000})).await?;
    let asked = &news["approvals"][0];
    assert_eq!(asked["input"]["command"], "touch second.txt", "{news}");
    let whys: Vec<&Value> =
        asked["passed"].as_array().into_iter().flatten().map(|passed| &passed["why"]).collect();
    assert_eq!(whys, ["unanswered", "unanswered"], "{news}");
    assert!(world.file("first.txt").exists() && !world.file("second.txt").exists());
    world.call("loopback.respond", json!({"approval_id": asked["id"], "approve": true})).await?;

    let poll = world.ended(&grandparent).await?;
    assert_eq!(poll["status"], "complete", "{poll}");
    assert!(world.file("second.txt").exists());
    let child = world.call("claudecode.poll", json!({"name": "child", "from_seq": 0, "limit": 1000})).await?;
    let resolved = events(&child, "approval_resolved");
    assert_eq!(resolved[0]["by"], json!({"kind": "session", "id": grandparent}), "{child}");
    assert_eq!(resolved[1]["by"], json!({"kind": "operator"}), "{child}");
    let record = world.call("audit.list", json!({"kind": "decision"})).await?;
    let first = &record["rows"][0]["entry"];
    assert_eq!(first["passed"][0]["opinion"], "it only makes a file", "{record}");
    Ok(())
}
