//! Background work that ends after the turn's main result, prompts that arrive at that time, and requests for finished calls. A
//! turn contains only its own work, and no prompt is lost.

use plexus_e2e::{Channel, DoorKind, Setup, World, events, over, until};
use plexus_testkit::model::{Step, Tool};
use plexus_testkit::rpc::Door as _;
use serde_json::{Value, json};

over!(channels:
    a_turn_ends_after_its_background_agent_and_accepts_messages_until_then,
    a_prompt_during_a_background_command_gets_its_own_turn,
);

async fn a_turn_ends_after_its_background_agent_and_accepts_messages_until_then(
    world: World,
) -> anyhow::Result<()> {
    let task = json!({
        "description": "helper", "prompt": "SUB-TASK: wait", "subagent_type": "general-purpose",
        "run_in_background": true,
    });
    let (held, hold) = Step::hold(Step::text("Sub done."));
    world.model.script("LEAD", vec![Step::tool("Agent", task), Step::text("Led."), Step::text("Led on.")]);
    world.model.script("SUB-TASK", vec![held]);
    world.model.script("NEXT", vec![Step::text("Next.")]);
    let session = world.create("lead", json!({})).await?;
    world.chat(&session, "LEAD the way").await?;
    // The main result has arrived, and the sub-agent still waits for its model.
    let led = |poll: &Value| events(poll, "content").iter().any(|event| event["text"] == "Led.");
    world.model.seen(|request| request.marker.as_deref() == Some("SUB-TASK")).await?;
    let poll = world.poll_until(&session, led).await?;
    assert_eq!(poll["status"], "running", "{poll:#}");

    let refused =
        world.refused("claudecode.chat_async", json!({"session_id": session, "prompt": "NEXT"})).await?;
    assert_eq!(refused.kind.as_deref(), Some("turn_in_progress"));
    world.call("claudecode.send", json!({"session_id": session, "prompt": "By the way: ADDED."})).await?;
    world.model.seen(|request| request.body["messages"].to_string().contains("ADDED")).await?;
    hold.release();
    let poll = world.ended(&session).await?;
    assert_eq!((&poll["status"], &poll["turn"]), (&json!("complete"), &json!(1)), "{poll:#}");
    assert_eq!(events(&poll, "complete").len(), 1);
    let notified = world.model.requests().iter().any(|request| {
        request.marker.as_deref() == Some("LEAD")
            && request.body["messages"].to_string().contains("task-notification")
    });
    assert!(notified, "the end of the sub-agent is part of the turn");

    world.chat(&session, "NEXT").await?;
    let poll = world.ended(&session).await?;
    assert_eq!((&poll["status"], &poll["turn"]), (&json!("complete"), &json!(2)), "{poll:#}");
    assert_eq!(events(&poll, "complete")[0]["result"], "Next.");
    Ok(())
}

async fn a_prompt_during_a_background_command_gets_its_own_turn(world: World) -> anyhow::Result<()> {
    let command = "touch begun; until [ -e go ]; do sleep 0.02; done";
    let call =
        Tool::new("Bash", json!({"command": command, "description": "wait", "run_in_background": true}));
    world.model.script("START", vec![Step::tools(vec![call]), Step::text("Started."), Step::text("Noted.")]);
    world.model.script("NEXT", vec![Step::text("Next.")]);
    let session = world.create("starter", json!({"policy": "allow_all"})).await?;
    world.chat(&session, "START it").await?;
    let poll = world.ended(&session).await?;
    assert_eq!(events(&poll, "complete")[0]["result"], "Started.", "{poll:#}");
    until("the command", || world.file("begun").exists()).await?;

    std::fs::write(world.file("go"), "")?;
    // The child may start a turn of its own first. Then the prompt is refused, and sent again after that turn.
    let mut turn = None;
    while turn.is_none() {
        let prompt = json!({"session_id": session, "prompt": "NEXT"});
        match world.door.call("claudecode.chat_async", prompt).await {
            Ok(started) => turn = started["turn"].as_u64(),
            Err(error) => {
                assert_eq!(error.kind.as_deref(), Some("turn_in_progress"));
                world.ended(&session).await?;
            }
        }
    }
    let of_turn = json!({"session_id": session, "turn": turn, "from_seq": 0});
    let poll = loop {
        let poll = world.call("claudecode.poll", of_turn.clone()).await?;
        if poll["status"] != "running" {
            break poll;
        }
        world.poll_until(&session, |poll| poll["status"] != "running").await?;
    };
    assert_eq!(poll["status"], "complete", "{poll:#}");
    let said: Vec<Value> = events(&poll, "content").into_iter().map(|event| event["text"].clone()).collect();
    assert!(said.contains(&json!("Next.")), "its prompt was answered in it: {poll:#}");
    assert_eq!(events(&poll, "complete").len(), 1, "{poll:#}");
    let last = world.model.requests().pop().map(|request| request.body["messages"].to_string());
    assert_eq!(last.unwrap_or_default().matches("\"NEXT\"").count(), 1, "it was received once");
    Ok(())
}

/// The request of a killed relay may arrive after the call has its result.
async fn permit_after_the_result(version: &'static str, test: &str) -> anyhow::Result<()> {
    let setup = Setup::cli(version, Channel::Relay, DoorKind::Rpc);
    let Some(world) = setup.world(test).await? else { return Ok(()) };
    world
        .model
        .script("ONCE", vec![Step::tool("Bash", json!({"command": "touch once"})), Step::text("Done.")]);
    let session = world.create("echo", json!({})).await?;
    world.chat(&session, "ONCE").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");

    let relay = world.door_of(&session).await?;
    for id in [approval["tool_use_id"].clone(), json!("toolu_never")] {
        let again = json!({"tool_name": "Bash", "input": {"command": "touch twice"}, "tool_use_id": id});
        assert_eq!(relay.call("loopback.permit", again).await?["behavior"], "deny");
    }
    assert_eq!(world.call("loopback.pending", json!({})).await?["approvals"], json!([]));
    Ok(())
}

#[tokio::test]
async fn a_permit_for_a_finished_call_creates_no_approval_197() -> anyhow::Result<()> {
    permit_after_the_result("2.1.197", "a_permit_for_a_finished_call_creates_no_approval_197").await
}

#[tokio::test]
async fn a_permit_for_a_finished_call_creates_no_approval_325() -> anyhow::Result<()> {
    permit_after_the_result("2.1.325", "a_permit_for_a_finished_call_creates_no_approval_325").await
}
