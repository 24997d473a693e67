//! Adopted conversations: a session continues a copy of a conversation that the user had with Claude Code in a terminal.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plexus_e2e::{Setup, World, over, script, text};
use plexus_testkit::clean_env;
use plexus_testkit::model::Step;
use plexus_testkit::rpc::Door as _;
use serde_json::{Value, json};

over!(clis:
    an_adopted_session_continues_a_copy_of_the_conversation,
    a_conversation_that_was_killed_in_a_call_can_be_adopted
);

/// A conversation with the bare CLI.
struct BareSession {
    id: String,
    transcript: PathBuf,
}

impl BareSession {
    /// Runs one prompt in the working directory of the world, as a user would without a hub.
    async fn run(world: &World, prompt: &str) -> anyhow::Result<Self> {
        let claude = plexus_testkit::claude(world.setup.cli.context("a real CLI")?).context("the CLI")?;
        let mut command = tokio::process::Command::new(claude);
        command.args(["-p", prompt, "--output-format", "json", "--allowedTools", "Bash"]);
        command.env_clear().envs(clean_env(&world.home, &world.model.url())).current_dir(&world.work);
        let output = command.stdin(std::process::Stdio::null()).output().await?;
        let result: Value = serde_json::from_slice(&output.stdout)?;
        let id = text(&result["session_id"]);
        let projects = std::fs::read_dir(world.home.join(".claude/projects"))?.flatten();
        let mut paths = projects.map(|project| project.path().join(format!("{id}.jsonl")));
        Ok(Self { transcript: paths.find(|path| path.exists()).context("the transcript")?, id })
    }
}

/// The texts of the last model request for this marker, without those that Claude Code adds.
fn received(world: &World, marker: &str) -> Vec<String> {
    let request = world.model.requests_for(marker).pop().unwrap_or_default();
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let mut texts = Vec::new();
    for message in messages.iter().filter(|message| message["role"] != "system") {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        texts.extend(blocks.iter().map(|block| text(&block["text"])).chain([text(&message["content"])]));
    }
    texts.retain(|text| !text.is_empty() && !text.contains("<system-reminder>"));
    texts.iter().map(|text| text.trim_end().to_owned()).collect()
}

async fn turn(world: &World, session: &str, prompt: &str) -> anyhow::Result<()> {
    world.chat(session, prompt).await?;
    let ended = world.ended(session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    Ok(())
}

async fn an_adopted_session_continues_a_copy_of_the_conversation(mut world: World) -> anyhow::Result<()> {
    world.model.script("OLD", vec![Step::text("Eins.")]);
    let bare = BareSession::run(&world, "OLD: first, grüße").await?;
    let original = std::fs::read(&bare.transcript)?;

    let session = world.create("adopted", json!({"resume": bare.id})).await?;
    let shown = world.call("claudecode.get", json!({"session_id": session})).await?;
    assert_eq!(shown["session"]["resumed_from"], json!(bare.id), "{shown:#}");
    let rendered = json!({"session_id": session, "format": "text"});
    let history = text(&world.call("arbor.render", rendered).await?["text"]);
    assert_eq!(history, "user: OLD: first, grüße\nassistant: Eins.\n");
    let markdown = text(&world.call("claudecode.transcript", json!({"session_id": session})).await?["text"]);
    assert!(markdown.contains(&format!("*Continues Claude Code session {}.*", bare.id)), "{markdown}");

    world.hub.kill9().await?;
    world.hub.restart().await?;
    let touch = Step::tool("Bash", json!({"command": "touch made.txt", "description": "a step"}));
    world.model.script("NEW", vec![touch, Step::text("Zwei.")]);
    world.chat(&session, "NEW: second").await?;
    let (_, asked) = world.asked(&session).await?;
    assert!(!world.file("made.txt").exists(), "the gate holds the call");
    assert_eq!(received(&world, "NEW"), ["OLD: first, grüße", "Eins.", "NEW: second"]);
    world.hub.kill9().await?;
    world.hub.restart().await?;
    world.allow(&asked).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert!(world.file("made.txt").exists());

    // The session continues its own conversation from then on.
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    world.model.script("LATER", vec![Step::text("Drei.")]);
    turn(&world, &session, "LATER: third").await?;
    let later = received(&world, "LATER");
    assert_eq!((later[0].as_str(), later[2].as_str()), ("OLD: first, grüße", "NEW: second"), "{later:?}");

    // Another session can adopt the same conversation, and a fork of an adopted session shares it.
    let again = world.create("again", json!({"resume": bare.id})).await?;
    turn(&world, &again, "LATER: again").await?;
    assert_eq!(received(&world, "LATER"), ["OLD: first, grüße", "Eins.", "LATER: again"]);
    let fork = json!({"name": "adopted", "new_name": "fork", "at": 0});
    let fork = text(&world.call("claudecode.fork", fork).await?["id"]);
    turn(&world, &fork, "LATER: fork").await?;
    assert_eq!(received(&world, "LATER"), ["OLD: first, grüße", "Eins.", "LATER: fork"]);
    assert!(std::fs::read(&bare.transcript)? == original, "the original transcript is unchanged");
    Ok(())
}

async fn a_conversation_that_was_killed_in_a_call_can_be_adopted(world: World) -> anyhow::Result<()> {
    let call = Step::tool("Bash", json!({"command": "true", "description": "a step"}));
    world.model.script("KILLED", vec![call, Step::text("Never said.")]);
    let bare = BareSession::run(&world, "KILLED: first").await?;
    let written = std::fs::read_to_string(&bare.transcript)?;
    let lines: Vec<&str> = written.split_inclusive('\n').collect();
    let called = lines.iter().position(|line| line.contains(r#""type":"tool_use""#)).context("the call")?;
    std::fs::write(&bare.transcript, lines[..=called].concat())?;

    let session = world.create("adopted", json!({"resume": bare.id})).await?;
    world.model.script("NEXT", vec![Step::text("Zwei.")]);
    turn(&world, &session, "NEXT: second").await?;
    let received = received(&world, "NEXT").join("\n");
    assert!(received.contains("KILLED: first") && received.ends_with("NEXT: second"), "{received}");
    Ok(())
}

/// Writes a transcript of Claude Code for a working directory.
fn plant(world: &World, working_dir: &Path, id: &str, lines: &str) -> anyhow::Result<()> {
    let name = working_dir.to_string_lossy().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let project = world.home.join(".claude/projects").join(name);
    std::fs::create_dir_all(&project)?;
    Ok(std::fs::write(project.join(format!("{id}.jsonl")), lines)?)
}

#[tokio::test]
async fn an_adoption_that_cannot_succeed_creates_nothing() -> anyhow::Result<()> {
    let world = Setup::scripted().world("adoption").await?.context("the scripted agent")?;
    let [here, elsewhere, empty, unknown] =
        ["1", "2", "3", "4"].map(|last| format!("4b983b28-9d18-41fa-9871-3489783bd38{last}"));
    let other = world.home.join("other");
    let said = |dir: &Path| {
        let line = json!({"type": "user", "uuid": "u", "cwd": dir, "message": {"content": "SECRET"}});
        format!("{line}\n")
    };
    let work = world.work.canonicalize()?;
    plant(&world, &work, &here, &said(&work))?;
    plant(&world, &other, &elsewhere, &said(&other))?;
    plant(&world, &work, &empty, "")?;

    let create = |more: Value| {
        let mut params = json!({"name": "never", "working_dir": world.work});
        more.as_object().into_iter().flatten().for_each(|(field, value)| params[field] = value.clone());
        params
    };
    for (params, field, message) in [
        (json!({"resume": elsewhere}), "resume", format!("belongs to {}", other.display())),
        (json!({"resume": empty}), "resume", "has no message".to_owned()),
        (json!({"resume": unknown}), "resume", "claudecode.resumable".to_owned()),
        (json!({"resume": "not an id"}), "resume", "resume".to_owned()),
        (json!({"resume": here, "isolation": "worktree"}), "isolation", "`resume`".to_owned()),
    ] {
        let refused = world.refused("claudecode.create", create(params)).await?;
        assert!(refused.message.contains(&message), "{field}: {}", refused.message);
    }
    let parent = world
        .create("parent", json!({"hub_tools": true, "prompt": script(&json!([{"say": "here"}]))}))
        .await?;
    world.ended(&parent).await?;
    let agent = world.door_of(&parent).await?;
    for (method, params) in [
        ("claudecode.create", create(json!({"resume": here}))),
        ("claudecode.resumable", json!({"working_dir": world.work})),
    ] {
        let refused = agent.call(method, params).await.err().context("refused")?;
        assert_eq!(refused.kind.as_deref(), Some("forbidden"), "{method}");
    }
    let listed = world.call("claudecode.list", json!({})).await?;
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1), "{listed:#}");

    let resumable = world.call("claudecode.resumable", json!({"working_dir": world.work})).await?;
    let sessions = resumable["sessions"].as_array().cloned().unwrap_or_default();
    assert_eq!((sessions.len(), &sessions[0]["id"]), (1, &json!(here)), "{resumable:#}");
    assert_eq!(sessions[0]["first_prompt"], "SECRET");
    world.call("claudecode.create", create(json!({"name": "adopted", "resume": here}))).await?;
    Ok(())
}
