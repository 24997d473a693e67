//! Supervision of a real child: its tool call runs, runs with an edited input, or does not run. Each test runs on both
//! pinned CLIs and over every channel, and the basic decisions also through both doors.

use plexus_e2e::{World, events, over, text};
use plexus_testkit::model::{Step, Tool};
use serde_json::{Value, json};

over!(everything:
    an_allowed_call_runs,
    a_denied_call_never_runs,
    an_edited_call_runs_as_edited,
    a_question_is_answered_with_the_chosen_option,
);
over!(every_channel:
    an_interrupting_denial_ends_the_turn,
    approvals_of_two_children_are_never_mixed_up,
    each_call_of_a_turn_needs_its_own_approval,
    a_call_of_a_foreground_subagent_needs_approval,
    a_call_of_a_background_subagent_needs_approval,
);

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "a step"}))
}

async fn an_allowed_call_runs(world: World) -> anyhow::Result<()> {
    world.model.script("MAKE-IT", vec![bash("touch made.txt && echo it-is-made"), Step::text("All done.")]);
    let session = world.create("maker", json!({})).await?;
    assert_eq!(world.chat(&session, "MAKE-IT please").await?, 1);

    let (poll, approval) = world.asked(&session).await?;
    let tool_use = &events(&poll, "tool_use")[0];
    assert_eq!(tool_use["tool_name"], "Bash");
    assert_eq!(tool_use["tool_use_id"], approval["tool_use_id"]);
    assert_eq!(approval["input"]["command"], "touch made.txt && echo it-is-made");
    assert_eq!((&approval["kind"], &approval["status"]), (&json!("tool"), &json!("pending")));
    assert_eq!(approval["asked_of"], json!({"kind": "operator"}));
    assert!(!world.file("made.txt").exists(), "it ran before it was allowed");

    world.allow(&approval).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(world.file("made.txt").exists());
    assert!(poll["pending_approvals"].as_array().is_some_and(Vec::is_empty));
    let result = &events(&poll, "tool_result")[0];
    assert_eq!(result["is_error"], false);
    assert!(result["output"].to_string().contains("it-is-made"), "{result}");
    let complete = &events(&poll, "complete")[0];
    assert_eq!(complete["result"], "All done.");
    assert!(complete["usage"]["input_tokens"].as_u64().is_some(), "{complete}");
    assert!(complete["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{complete}");
    // The events are in order and their numbers have no gaps.
    let kinds: Vec<String> =
        poll["events"].as_array().into_iter().flatten().map(|e| text(&e["event"]["type"])).collect();
    let order = ["start", "tool_use", "approval_requested", "approval_resolved", "tool_result", "complete"];
    let places: Vec<Option<usize>> = order.iter().map(|kind| kinds.iter().position(|k| k == kind)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{kinds:?}");
    let seqs: Vec<u64> =
        poll["events"].as_array().into_iter().flatten().filter_map(|e| e["seq"].as_u64()).collect();
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
    Ok(())
}

async fn a_denied_call_never_runs(world: World) -> anyhow::Result<()> {
    world.model.script("DENY-IT", vec![bash("touch never.txt"), Step::text("Understood.")]);
    let session = world.create("denied", json!({})).await?;
    world.chat(&session, "DENY-IT").await?;
    let (_, approval) = world.asked(&session).await?;
    world.respond(&approval, json!({"approve": false, "message": "not on a sunday"})).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(!world.file("never.txt").exists());
    let last = world.model.requests_for("DENY-IT").pop().unwrap_or_default();
    assert!(last.to_string().contains("not on a sunday"), "the model receives the reason");
    assert_eq!(events(&poll, "approval_resolved")[0]["status"], "denied");
    assert_eq!(events(&poll, "tool_result")[0]["is_error"], true);
    Ok(())
}

async fn an_edited_call_runs_as_edited(world: World) -> anyhow::Result<()> {
    world.model.script("EDIT-IT", vec![bash("touch first.txt"), Step::text("Done.")]);
    let session = world.create("edited", json!({})).await?;
    world.chat(&session, "EDIT-IT").await?;
    let (_, approval) = world.asked(&session).await?;
    let updated = json!({"command": "touch second.txt", "description": "a step"});
    world.respond(&approval, json!({"approve": true, "updated_input": updated})).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(world.file("second.txt").exists() && !world.file("first.txt").exists());
    Ok(())
}

async fn an_interrupting_denial_ends_the_turn(world: World) -> anyhow::Result<()> {
    world.model.script("HALT-IT", vec![bash("touch halted.txt"), Step::text("Never said.")]);
    world.model.script("GO-ON", vec![Step::text("Here again.")]);
    let session = world.create("halted", json!({})).await?;
    world.chat(&session, "HALT-IT").await?;
    let (_, approval) = world.asked(&session).await?;
    world.respond(&approval, json!({"approve": false, "message": "stop it", "interrupt": true})).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "interrupted", "{poll:#}");
    assert!(!world.file("halted.txt").exists());
    assert!(events(&poll, "complete").is_empty());
    // The session accepts the next prompt.
    assert_eq!(world.chat(&session, "GO-ON").await?, 2);
    let poll = world.ended(&session).await?;
    assert_eq!((&poll["status"], &poll["turn"]), (&json!("complete"), &json!(2)), "{poll:#}");
    Ok(())
}

async fn a_question_is_answered_with_the_chosen_option(world: World) -> anyhow::Result<()> {
    let questions = json!([{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
    }]);
    let ask = Step::tool("AskUserQuestion", json!({"questions": questions}));
    world.model.script("ASK-ME", vec![ask, Step::text("Blue it is.")]);
    let session = world.create("asker", json!({})).await?;
    world.chat(&session, "ASK-ME").await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(approval["kind"], "question");
    let refused =
        world.refused("loopback.respond", json!({"approval_id": approval["id"], "approve": true})).await?;
    assert_eq!(refused.kind.as_deref(), Some("answers_required"));
    world.respond(&approval, json!({"approve": true, "answers": {"Which colour?": "Blue"}})).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    let last = world.model.requests_for("ASK-ME").pop().unwrap_or_default();
    assert!(last["messages"].to_string().contains("Blue"), "the model receives the answer");
    Ok(())
}

async fn approvals_of_two_children_are_never_mixed_up(world: World) -> anyhow::Result<()> {
    for name in ["alpha", "beta"] {
        world.model.script(
            &format!("WORK-{name}"),
            vec![bash(&format!("echo of-{name} > {name}.txt")), Step::text(name)],
        );
    }
    let alpha = world.create("alpha", json!({})).await?;
    let beta = world.create("beta", json!({})).await?;
    world.chat(&alpha, "WORK-alpha").await?;
    world.chat(&beta, "WORK-beta").await?;
    let (_, of_alpha) = world.asked(&alpha).await?;
    let (_, of_beta) = world.asked(&beta).await?;
    assert_eq!((&of_alpha["session_id"], &of_beta["session_id"]), (&json!(alpha), &json!(beta)));
    let pending = world.call("loopback.pending", json!({"name": "alpha"})).await?;
    assert_eq!(pending["approvals"].as_array().map(Vec::len), Some(1));
    world.allow(&of_beta).await?;
    let poll = world.ended(&beta).await?;
    assert_eq!(events(&poll, "complete")[0]["result"], "beta");
    assert!(world.file("beta.txt").exists() && !world.file("alpha.txt").exists());
    world.allow(&of_alpha).await?;
    let poll = world.ended(&alpha).await?;
    assert_eq!(events(&poll, "complete")[0]["result"], "alpha");
    assert!(world.file("alpha.txt").exists());
    Ok(())
}

async fn each_call_of_a_turn_needs_its_own_approval(world: World) -> anyhow::Result<()> {
    let both = ["one", "two"]
        .map(|n| Tool::new("Bash", json!({"command": format!("touch {n}.txt"), "description": n})));
    world
        .model
        .script("SEVERAL", vec![Step::tools(both.to_vec()), bash("touch three.txt"), Step::text("ok")]);
    let session = world.create("several", json!({})).await?;
    world.chat(&session, "SEVERAL").await?;
    for _ in 0..3 {
        let (_, approval) = world.asked(&session).await?;
        let deny = approval["input"]["command"] == "touch two.txt";
        world.respond(&approval, json!({"approve": !deny})).await?;
    }
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    let made = ["one", "two", "three"].map(|n| world.file(&format!("{n}.txt")).exists());
    assert_eq!(made, [true, false, true]);
    Ok(())
}

#[derive(PartialEq)]
enum Subagent {
    InForeground,
    InBackground,
}

async fn subagent(world: World, runs: Subagent) -> anyhow::Result<()> {
    let task = json!({
        "description": "helper", "prompt": "SUB-TASK: make it", "subagent_type": "general-purpose",
        "run_in_background": runs == Subagent::InBackground,
    });
    world.model.script("LEAD", vec![Step::tool("Agent", task), Step::text("Led."), Step::text("Led on.")]);
    world.model.script("SUB-TASK", vec![bash("touch sub.txt"), Step::text("Sub done.")]);
    let session = world.create("lead", json!({})).await?;
    world.chat(&session, "LEAD the way").await?;
    let mut asked: Vec<Value> = Vec::new();
    loop {
        let poll = world
            .poll_until(&session, |poll| {
                poll["status"] == "awaiting_permission"
                    || poll["status"] == "complete"
                    || poll["status"] == "failed"
            })
            .await?;
        if poll["status"] != "awaiting_permission" {
            assert_eq!(poll["status"], "complete", "{poll:#}");
            break;
        }
        for approval in poll["pending_approvals"].as_array().into_iter().flatten() {
            if !asked.contains(&approval["id"]) {
                asked.push(approval["id"].clone());
                assert!(!world.file("sub.txt").exists(), "it ran before it was allowed");
                world.allow(approval).await?;
            }
        }
    }
    assert!(world.file("sub.txt").exists(), "the sub-agent's call ran once allowed");
    assert!(!asked.is_empty(), "the sub-agent's call needed approval");
    Ok(())
}

async fn a_call_of_a_foreground_subagent_needs_approval(world: World) -> anyhow::Result<()> {
    subagent(world, Subagent::InForeground).await
}

async fn a_call_of_a_background_subagent_needs_approval(world: World) -> anyhow::Result<()> {
    subagent(world, Subagent::InBackground).await
}
