//! The decisions and the context of hooks, for each event.

use plexus_e2e::{World, events, over};
use plexus_testkit::model::Step;
use serde_json::{Value, json};

use super::{calling, hook_events, hooks, ran, sent_to_the_model};

over!(versions:
    a_hook_denies_a_call_that_the_gate_allows,
    a_hook_that_stops_the_turn_denies_the_call,
    the_other_events_reach_the_model,
);
over!(every_channel: a_hook_that_asks_requires_approval);
over!(clis: a_fork_keeps_the_hooks);

async fn a_hook_denies_a_call_that_the_gate_allows(world: World) -> anyhow::Result<()> {
    // The hook reads its input, and runs in the project's directory.
    let command = "input=$(cat); case $input in *'touch ran-denied'*) echo \"not in $CLAUDE_PROJECT_DIR\" >&2; exit 2;; esac";
    let session = calling(&world, "denied", "allow_all", hooks("PreToolUse", command)).await?;
    let poll = world.ended(&session).await?;
    assert!(!ran(&world, "denied"));
    let result = &events(&poll, "tool_result")[0];
    let reason = format!("not in {}", world.work.display());
    assert!(result["is_error"] == true && result.to_string().contains(&reason), "{result:#}");
    let event = hook_events(&poll).remove(0);
    assert_eq!(
        (&event["status"], &event["tool_name"], &event["reason"]),
        (&json!("denied"), &json!("Bash"), &json!(reason))
    );
    let log = world.call("audit.list", json!({"session_id": session})).await?;
    let entries: Vec<Value> =
        log["rows"].as_array().into_iter().flatten().map(|row| row["entry"].clone()).collect();
    let denied = entries.iter().find(|entry| entry["status"] == "deny").cloned().unwrap_or_default();
    assert_eq!(denied["message"], format!("denied by hook: {reason}"), "{entries:#?}");
    assert_eq!(denied["tool_name"], "Bash");
    assert_eq!(entries[0]["detail"]["hooks"], hooks("PreToolUse", command), "the entry of its creation");

    // A matcher for another tool: the call runs.
    let other = json!({"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "exit 2"}]}]});
    let session = calling(&world, "other", "allow_all", other).await?;
    world.ended(&session).await?;
    assert!(ran(&world, "other"));
    Ok(())
}

async fn a_hook_that_asks_requires_approval(world: World) -> anyhow::Result<()> {
    let ask = r#"printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"a person decides"}}'"#;
    let session = calling(&world, "asked", "allow_all", hooks("PreToolUse", ask)).await?;
    let (_, approval) = world.asked(&session).await?;
    assert!(!ran(&world, "asked"));
    world.allow(&approval).await?;
    world.ended(&session).await?;
    assert!(ran(&world, "asked"));
    Ok(())
}

/// Claude Code itself would run the call and then end the turn.
async fn a_hook_that_stops_the_turn_denies_the_call(world: World) -> anyhow::Result<()> {
    let stop = r#"printf '{"continue":false,"stopReason":"enough"}'"#;
    let session = calling(&world, "stopped", "allow_all", hooks("PreToolUse", stop)).await?;
    let poll = world.ended(&session).await?;
    assert!(!ran(&world, "stopped"));
    assert_eq!(poll["status"], "interrupted", "{poll:#}");
    assert_eq!(hook_events(&poll)[0]["status"], "stopped");
    Ok(())
}

async fn the_other_events_reach_the_model(world: World) -> anyhow::Result<()> {
    let context = |event: &str, text: &str| {
        format!(
            r#"printf '{{"hookSpecificOutput":{{"hookEventName":"{event}","additionalContext":"{text}"}}}}'"#
        )
    };
    let command = |command: String| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let all = json!({
        "UserPromptSubmit": command("echo CONTEXT-OF-PROMPT".to_owned()),
        "PostToolUse": command(context("PostToolUse", "CONTEXT-OF-RESULT")),
        // Blocks the end of the turn once.
        "Stop": command("[ -e stopped ] || { touch stopped; echo NOT-YET >&2; exit 2; }".to_owned()),
    });
    let session = calling(&world, "events", "allow_all", all).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(ran(&world, "events"));
    let sent = sent_to_the_model(&world, "MARK-events");
    for text in ["CONTEXT-OF-PROMPT", "CONTEXT-OF-RESULT", "NOT-YET"] {
        assert!(sent.contains(text), "{text}");
    }
    assert_eq!(hook_events(&poll)[0]["status"], "blocked");

    // A prompt that a hook denies never reaches the model. The next one does.
    let once = "[ -e denied ] || { touch denied; echo NO-SUCH-PROMPT >&2; exit 2; }";
    for marker in ["MARK-prompt", "MARK-next"] {
        world.model.script(marker, vec![Step::text("Done.")]);
    }
    let session = world.create("prompt", json!({"hooks": hooks("UserPromptSubmit", once)})).await?;
    world.chat(&session, "MARK-prompt").await?;
    let poll = world.ended(&session).await?;
    assert_eq!(hook_events(&poll)[0]["status"], "denied", "{poll:#}");
    assert_eq!(world.model.requests_for("MARK-prompt").len(), 0);
    world.chat(&session, "MARK-next").await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(world.model.requests_for("MARK-next").len(), 1);

    // The failure of a hook after a call is visible, and decides nothing.
    let session = calling(&world, "failed", "allow_all", hooks("PostToolUse", "exit 3")).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(ran(&world, "failed"));
    assert_eq!(hook_events(&poll)[0]["status"], "failed");
    Ok(())
}

async fn a_fork_keeps_the_hooks(world: World) -> anyhow::Result<()> {
    let session = calling(&world, "original", "allow_all", hooks("PreToolUse", "exit 2")).await?;
    world.ended(&session).await?;
    let forked = world.call("claudecode.fork", json!({"session_id": session, "new_name": "forked"})).await?;
    let id = plexus_e2e::text(&forked["id"]);
    let call = json!({"command": "touch ran-forked", "description": "a step"});
    world.model.script("MARK-forked", vec![Step::tool("Bash", call), Step::text("Done.")]);
    world.chat(&id, "MARK-forked").await?;
    let poll = world.ended(&id).await?;
    assert_eq!(hook_events(&poll)[0]["status"], "denied", "{poll:#}");
    assert!(!ran(&world, "forked") && !ran(&world, "original"));
    Ok(())
}
