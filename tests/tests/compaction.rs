//! `claudecode.compact` with real CLIs: the conversation is replaced by a summary, nothing in the project or the user's files replaces the
//! command, and no tool runs meanwhile.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, over, script, text};
use plexus_testkit::model::Step;
use serde_json::{Value, json};

over!(
    versions: a_conversation_is_compacted_in_a_turn_of_its_own,
    no_tool_runs_while_a_conversation_is_compacted,
    a_session_with_hooks_can_be_compacted
);

/// The words with which Claude Code asks the model for a summary.
const ASKS_FOR_SUMMARY: &str = "Respond with TEXT ONLY";

fn is_compaction(request: &Value) -> bool {
    request["messages"].to_string().contains(ASKS_FOR_SUMMARY)
}

/// Answers every request; a compaction with `summary`. Only the first prompt has the marker: the messages of the model then have different
/// ids, and older versions compact only several messages.
fn script_with(world: &World, marker: &str, summary: fn() -> Step) {
    let answer = move || {
        Step::from_fn(move |request| if is_compaction(request) { summary() } else { Step::text("Noted.") })
    };
    world.model.script(marker, (0..8).map(|_| answer()).collect());
}

async fn turn(world: &World, session: &str, prompt: &str) -> anyhow::Result<()> {
    world.chat(session, prompt).await?;
    let ended = world.ended(session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    Ok(())
}

async fn a_conversation_is_compacted_in_a_turn_of_its_own(world: World) -> anyhow::Result<()> {
    let runs = format!("!`touch '{}'`", world.file("shadow-ran").display());
    let command = format!("---\nallowed-tools: Bash\n---\nSHADOWED {runs}\n");
    let skill = format!("---\nname: compact\ndescription: x\nallowed-tools: Bash\n---\nSHADOWED {runs}\n");
    world.plant(".claude/commands/compact.md", &command)?;
    world.plant(".claude/skills/compact/SKILL.md", &skill)?;
    for (path, contents) in [("commands/compact.md", &command), ("skills/compact/SKILL.md", &skill)] {
        let path = world.home.join(".claude").join(path);
        std::fs::create_dir_all(path.parent().context("a folder")?)?;
        std::fs::write(path, contents)?;
    }
    world.plant("inside.txt", "THE-SECRET-INSIDE")?;
    script_with(&world, "SQUEEZE", || Step::text("<summary>SHORT-VERSION</summary>"));
    for marker in ["AFTER-1", "AFTER-2"] {
        world.model.script(marker, vec![Step::text("Hm.")]);
    }
    let session = world.create("long", json!({"trust_project": true})).await?;
    for prompt in ["SQUEEZE one", "two", "three"] {
        turn(&world, &session, prompt).await?;
    }
    let before = world.model.requests().len();
    let compact = json!({"session_id": session, "instructions": "keep the ZEBRA of @inside.txt"});
    let started = world.call("claudecode.compact", compact).await?;
    assert_eq!((&started["type"], &started["turn"]), (&json!("started"), &json!(4)));
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    let systems = events(&ended, "system");
    assert!(systems.iter().any(|event| event["subtype"] == "compact_boundary"), "{systems:#?}");
    let cost = events(&ended, "complete")[0]["cost_usd"].as_f64().unwrap_or_default();
    assert!(cost > 0.0, "the cost of the summary counts: {ended:#}");
    let sent: Vec<String> =
        world.model.requests().split_off(before).iter().map(|sent| sent.body.to_string()).collect();
    assert_eq!(sent.len(), 1, "{sent:#?}");
    assert!(sent[0].contains("keep the ZEBRA of @inside.txt"), "{sent:#?}");
    let all = world.model.requests().iter().map(|request| request.body.to_string()).collect::<String>();
    assert!(!all.contains("SHADOWED") && !all.contains("THE-SECRET-INSIDE"));
    assert!(!world.file("shadow-ran").exists());

    turn(&world, &session, "AFTER-1 now").await?;
    let request = world.model.requests_for("AFTER-1").pop().context("a request")?;
    let received = request["messages"].to_string();
    assert!(received.contains("SHORT-VERSION") && !received.contains("SQUEEZE one"), "{received}");
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    assert!(!tools.iter().any(|tool| tool["name"] == "Skill"), "only the process for the command has skills");

    // A fork of the compacted conversation starts with the summary.
    let forked =
        world.call("claudecode.fork", json!({"name": "long", "new_name": "branch", "at": 4})).await?;
    let branch = text(&forked["id"]);
    turn(&world, &branch, "AFTER-2 there").await?;
    let received = world.model.requests_for("AFTER-2").pop().context("a request")?["messages"].to_string();
    assert!(received.contains("SHORT-VERSION") && !received.contains("AFTER-1"), "{received}");
    // Claude Code no longer finds the messages before the summary.
    let before = json!({"name": "long", "new_name": "old", "at": 3});
    let refused = world.refused("claudecode.fork", before).await?.to_string();
    assert!(refused.contains("pass 4 or a later turn"), "{refused}");
    let page = json!({"session_id": session, "format": "markdown"});
    let markdown = text(&world.call("claudecode.transcript", page).await?["text"]);
    assert!(markdown.contains("/compact keep the ZEBRA") && markdown.contains("SHORT-VERSION"), "{markdown}");
    Ok(())
}

async fn no_tool_runs_while_a_conversation_is_compacted(world: World) -> anyhow::Result<()> {
    script_with(&world, "SNEAKY", || {
        Step::tool("Bash", json!({"command": "touch sneaked", "description": "a step"}))
    });
    let session = world.create("sneaky", json!({"policy": "allow_all"})).await?;
    for prompt in ["SNEAKY one", "two", "three"] {
        turn(&world, &session, prompt).await?;
    }
    world.call("claudecode.compact", json!({"session_id": session})).await?;
    let ended = world.ended(&session).await?;
    assert!(!world.file("sneaked").exists(), "{ended:#}");
    assert!(world.model.requests().iter().any(|request| is_compaction(&request.body)), "the model was asked");
    Ok(())
}

/// The hub denies every request of the process that compacts. A hook on prompts must not deny the command itself.
async fn a_session_with_hooks_can_be_compacted(world: World) -> anyhow::Result<()> {
    script_with(&world, "HOOKED", || Step::text("<summary>SHORT-VERSION</summary>"));
    let hook = json!([{"hooks": [{"type": "command", "command": "echo . >> hook-ran"}]}]);
    let hooks = json!({"UserPromptSubmit": hook, "PreToolUse": hook, "Stop": hook});
    let session = world.create("hooked", json!({"hooks": hooks})).await?;
    for prompt in ["HOOKED one", "two", "three"] {
        turn(&world, &session, prompt).await?;
    }
    world.call("claudecode.compact", json!({"session_id": session})).await?;
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    turn(&world, &session, "four").await?;
    let last = world.model.requests().pop().context("a request")?.body["messages"].to_string();
    assert!(last.contains("SHORT-VERSION") && !last.contains("HOOKED one"), "{last}");
    Ok(())
}

#[tokio::test]
async fn a_conversation_that_does_not_exist_or_is_in_use_is_not_compacted() -> anyhow::Result<()> {
    let world = Setup::scripted().world("compaction").await?.context("the scripted agent")?;
    let session = world.create("fresh", json!({})).await?;
    world.call("claudecode.compact", json!({"session_id": session})).await?;
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "failed", "{ended:#}");
    assert_eq!(events(&ended, "error")[0]["reason"], "not_compacted");
    world.chat(&session, &script(&json!([{"wait_file": "go"}]))).await?;
    let refused = world.refused("claudecode.compact", json!({"session_id": session})).await?;
    assert_eq!(refused.kind.as_deref(), Some("turn_in_progress"));
    std::fs::write(world.file("go"), "")?;
    world.ended(&session).await?;
    Ok(())
}
