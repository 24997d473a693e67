//! Attacks on the gate by a working directory, a prompt, an allowed command, a lying child, or the token of a session. Each
//! test repeats an attack that works against a Claude Code with default options. In each test the call still needs
//! approval, and does not run before it is allowed.

use std::path::PathBuf;

use plexus_e2e::{World, events};
use plexus_testkit::model::Step;
use serde_json::{Value, json};

mod commands;
mod prompts;
mod requests;
mod tokens;
mod working_dir;

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "a step"}))
}

/// Marks the working directory as trusted by the user, so that Claude Code would load more of its files.
fn trust(world: &World) -> anyhow::Result<()> {
    let project = json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    let known = json!({"projects": {world.work.display().to_string(): project}});
    Ok(std::fs::write(world.home.join(".claude.json"), known.to_string())?)
}

/// A file outside the working directory, and its content.
fn secret_outside(world: &World) -> anyhow::Result<(PathBuf, &'static str)> {
    let path = world.home.join("secret-outside.txt");
    let text = "THE-SECRET-OUTSIDE";
    std::fs::write(&path, text)?;
    Ok((path, text))
}

/// Waits for the approval of the next call, checks that `file` does not exist, denies the call, and checks that the turn
/// ends without `file`.
async fn asked_then_denied(world: &World, session: &str, file: &str) -> anyhow::Result<Value> {
    let (_, approval) = world.asked(session).await?;
    assert!(!world.file(file).exists(), "it ran before it was allowed");
    world.respond(&approval, json!({"approve": false, "message": "no"})).await?;
    let poll = world.ended(session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(!world.file(file).exists(), "it ran though it was denied");
    Ok(poll)
}

/// Lets another child run a complete turn, which takes far longer than the attack would.
async fn another_turn(world: &World, name: &str) -> anyhow::Result<()> {
    let prompt = format!("MEANWHILE-{name}");
    world.model.script(&prompt, vec![Step::text("Done.")]);
    let session = world.create(name, json!({})).await?;
    world.chat(&session, &prompt).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(())
}

/// The bodies of all requests to the model.
fn bodies_sent_to_the_model(world: &World) -> String {
    world.model.requests().iter().map(|request| request.body.to_string()).collect()
}

/// The lines of a run's journal or outbox.
fn lines(world: &World, session: &str, file: &str) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read(world.run_dir(session, 1).join(file))?;
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    Ok(lines.collect())
}

/// The hub's replies to the request `id` of the first run.
fn replies(outbox: &[Value], id: &Value) -> Vec<Value> {
    let to_this = |line: &&Value| line["type"] == "control_response" && line["response"]["request_id"] == *id;
    outbox.iter().filter(to_this).map(|line| line["response"].clone()).collect()
}

/// Checks that every call of the turn reached the gate once and got one answer.
fn assert_every_call_passed_the_gate(world: &World, session: &str, poll: &Value) -> anyhow::Result<()> {
    let (journal, outbox) = (lines(world, session, "journal.jsonl")?, lines(world, session, "outbox.jsonl")?);
    for call in events(poll, "tool_use") {
        let at_the_gate = |line: &&Value| {
            line["request"]["subtype"] == "hook_callback"
                && line["request"]["tool_use_id"] == call["tool_use_id"]
        };
        let seen: Vec<&Value> = journal.iter().filter(at_the_gate).collect();
        assert_eq!(seen.len(), 1, "{call}");
        let answers = replies(&outbox, &seen[0]["request_id"]);
        assert_eq!(answers.len(), 1, "{call}");
        assert_eq!(answers[0]["subtype"], "success", "{call}");
    }
    Ok(())
}
