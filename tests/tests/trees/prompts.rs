//! Prompts from a session are plain text, with every method that accepts a prompt: real CLIs read no `@path` in them and
//! run no `/command`.

use plexus_e2e::{World, over, text};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

const SECRET: &str = "THE-SECRET-INSIDE";

over!(versions: prompts_of_a_session_are_plain_text);

/// Writes a secret into the working directory, and a command that creates a file when it runs.
fn plant(world: &World) -> anyhow::Result<()> {
    std::fs::write(world.file("secret.txt"), SECRET)?;
    std::fs::create_dir_all(world.file(".claude/commands"))?;
    let runs = format!("!`touch '{}'`", world.file("command-ran").display());
    let command = format!("---\nallowed-tools: Bash\n---\nEXPANDED {runs}\n");
    std::fs::write(world.file(".claude/commands/evil.md"), command)?;
    let project = json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    let known = json!({"projects": {world.work.display().to_string(): project}});
    Ok(std::fs::write(world.home.join(".claude.json"), known.to_string())?)
}

async fn prompts_of_a_session_are_plain_text(world: World) -> anyhow::Result<()> {
    plant(&world)?;
    for word in ["BOSS", "WORD-0", "WORD-2", "WORD-3", "WORD-4", "WORD-5"] {
        world.model.script(word, vec![Step::text("Hm.")]);
    }
    let asks = Step::tool("Bash", json!({"command": "touch made.txt", "description": "a step"}));
    world.model.script("WORD-1", vec![asks, Step::text("Hm.")]);
    let boss = world.create("boss", json!({"hub_tools": true, "prompt": "BOSS"})).await?;
    assert_eq!(world.ended(&boss).await?["status"], "complete");
    let boss = Rpc::new(world.hub.url(), &world.token_of(&boss)?);

    // In `create`. The file is named last, because Claude Code looks for it there.
    let first = json!({"name": "child", "working_dir": world.work, "prompt": "WORD-0 read @secret.txt"});
    let child = text(&boss.call("claudecode.create", first).await?["id"]);
    assert_eq!(world.ended(&child).await?["status"], "complete");
    let prompt = |prompt: &str| json!({"session_id": child, "prompt": prompt});
    // In a new turn, and as messages in that turn.
    boss.call("claudecode.chat_async", prompt("/evil WORD-1")).await?;
    let (_, approval) = world.asked(&child).await?;
    boss.call("claudecode.send", prompt("and @secret.txt")).await?;
    boss.call("claudecode.send", prompt("/evil")).await?;
    world.allow(&approval).await?;
    assert_eq!(world.ended(&child).await?["status"], "complete");
    for last in ["/help WORD-2", "@secret.txt WORD-3"] {
        boss.call("claudecode.chat_async", prompt(last)).await?;
        let poll = world.ended(&child).await?;
        assert_eq!(poll["status"], "complete", "{last}: {poll:#}");
    }

    let told: String = world.model.requests().iter().map(|request| said(&request.body)).collect();
    for whole in ["WORD-0 read @secret.txt", "/evil WORD-1", "/help WORD-2", "@secret.txt WORD-3"] {
        assert!(told.contains(whole), "{whole} did not reach the model as it was written");
    }
    let all: String = world.model.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(!all.contains(SECRET) && !all.contains("EXPANDED"));
    assert!(!world.file("command-ran").exists());

    // The operator may expand files. Commands run for no caller.
    let expanded = |prompt: &str| json!({"session_id": child, "prompt": prompt, "expand": true});
    let Err(refused) = boss.call("claudecode.chat", expanded("WORD-4 read @secret.txt")).await else {
        anyhow::bail!("a session must not set `expand`");
    };
    assert_eq!(refused.data["field"], "expand", "{refused}");
    for prompt in ["WORD-4 read @secret.txt", "/evil WORD-5"] {
        let poll = world.call("claudecode.chat", expanded(prompt)).await?;
        assert_eq!(poll["status"], "complete", "{prompt}: {poll:#}");
    }
    let all: String = world.model.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(all.contains(SECRET) && !all.contains("EXPANDED"));
    assert!(!world.file("command-ran").exists());
    Ok(())
}

/// All texts of the user in a model request, joined, because a prompt may be sent in parts.
fn said(request: &Value) -> String {
    let messages = request["messages"].as_array().into_iter().flatten();
    let mut joined = String::new();
    for message in messages.filter(|message| message["role"] == "user") {
        match &message["content"] {
            Value::String(text) => joined.push_str(text),
            blocks => {
                joined.extend(blocks.as_array().into_iter().flatten().map(|block| text(&block["text"])))
            }
        }
    }
    joined
}
