//! What the console shows of sessions besides their events: titles, current actions, the archive, the timeline, figures over time,
//! templates and recent directories.

mod history;
mod templates;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use plexus_e2e::{Setup, World, over, script, text, until};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

over!(versions: a_session_shows_its_title_project_and_current_action);

async fn scripted() -> anyhow::Result<World> {
    Setup::scripted().world("scripted").await?.context("the scripted agent is always available")
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// The listed session with this id.
async fn listed(world: &World, session: &str) -> anyhow::Result<Value> {
    let list = world.call("claudecode.list", json!({})).await?;
    let sessions = list["sessions"].as_array().context("sessions")?;
    sessions.iter().find(|one| one["id"] == session).cloned().context("it is listed")
}

/// The names of all listed sessions.
async fn names(world: &World, params: Value) -> anyhow::Result<Vec<String>> {
    let list = world.call("claudecode.list", params).await?;
    Ok(list["sessions"].as_array().context("sessions")?.iter().map(|one| text(&one["name"])).collect())
}

/// Waits until the turn in progress has a cost: the hub asks for it when a call reaches the gate.
async fn until_it_has_a_cost(world: &World, session: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while listed(world, session).await?["turn_cost_usd"].as_f64() <= Some(0.0) {
        anyhow::ensure!(Instant::now() < deadline, "the turn has no cost");
    }
    Ok(())
}

async fn a_session_shows_its_title_project_and_current_action(world: World) -> anyhow::Result<()> {
    std::fs::create_dir_all(world.work.join(".git"))?;
    let inside = world.work.join("src");
    std::fs::create_dir(&inside)?;
    let command = "touch ran.running; until [ -e ran.go ]; do sleep 0.05; done";
    let call = Step::tool("Bash", json!({"command": command, "description": "a step"}));
    world.model.script("FIX-IT", vec![call, Step::text("Done.")]);
    let session = world.create("a", json!({"working_dir": inside})).await?;
    let before = listed(&world, &session).await?;
    assert_eq!((&before["title"], &before["current_action"]), (&Value::Null, &Value::Null), "{before:#}");
    assert_eq!(before["last_activity_at"], before["created_at"]);
    let root = world.work.canonicalize()?;
    let name = root.file_name().context("its name")?.to_string_lossy();
    assert_eq!(before["project"], json!({"name": name, "root": root}));

    world.chat(&session, "# FIX-IT now\n\nPlease.").await?;
    let (_, approval) = world.asked(&session).await?;
    let asks = listed(&world, &session).await?;
    assert_eq!(asks["title"], "FIX-IT now");
    let expected = json!({
        "type": "approval", "kind": "tool", "asked_of": {"kind": "operator"},
        "call": {"tool_name": "Bash", "summary": command},
    });
    assert_eq!(asks["current_action"], expected);
    assert!(asks["last_activity_at"].as_u64() >= asks["created_at"].as_u64());

    world.allow(&approval).await?;
    until("the command runs", || inside.join("ran.running").exists()).await?;
    let runs = listed(&world, &session).await?;
    let expected = json!({"type": "tools", "calls": [{"tool_name": "Bash", "summary": command}]});
    assert_eq!(runs["current_action"], expected);
    until_it_has_a_cost(&world, &session).await?;

    std::fs::write(inside.join("ran.go"), "")?;
    world.ended(&session).await?;
    let done = listed(&world, &session).await?;
    assert_eq!((&done["current_action"], &done["turn_cost_usd"]), (&Value::Null, &Value::Null));
    assert!(done["cost_usd"].as_f64() > Some(0.0), "{done:#}");

    let renamed = json!({"session_id": session, "title": " The\nparser "});
    let updated = world.call("claudecode.update", renamed).await?;
    assert_eq!(updated["updated"], json!(["title"]));
    assert_eq!(listed(&world, &session).await?["title"], "The parser");
    Ok(())
}

#[tokio::test]
async fn archived_sessions_are_left_out_until_they_work_again() -> anyhow::Result<()> {
    let world = scripted().await?;
    let top = world.create("top", json!({"hub_tools": true})).await?;
    let agent = super::console_methods::client_of(&world, &top).await?;
    let below = json!({"name": "below", "working_dir": world.work});
    let below = text(&agent.call("claudecode.create", below).await?["id"]);
    world.create("other", json!({})).await?;
    let archive = |session: &str, archived: bool| json!({"session_id": session, "archived": archived});

    let refused =
        agent.call("claudecode.update", archive(&below, true)).await.expect_err("an agent hides nothing");
    assert_eq!((&refused.data["type"], &refused.data["field"]), (&json!("forbidden"), &json!("archived")));
    let title = json!({"session_id": below, "title": "Harmless"});
    let refused = agent.call("claudecode.update", title).await.expect_err("nor does it set a title");
    assert_eq!(refused.data["type"], "forbidden");

    world.chat(&below, &script(&json!([bash("echo one")]))).await?;
    let (_, approval) = world.asked(&below).await?;
    let busy = world.refused("claudecode.update", archive(&top, true)).await?;
    assert_eq!(busy.kind.as_deref(), Some("turn_in_progress"), "{busy}");
    assert!(busy.message.contains("below"), "{busy}");
    world.respond(&approval, json!({"approve": false})).await?;
    world.ended(&below).await?;

    world.call("claudecode.update", archive(&top, true)).await?;
    assert_eq!(names(&world, json!({})).await?, ["other"], "with the session below it");
    assert_eq!(names(&world, json!({"archived": true})).await?, ["top", "below", "other"]);
    let got = world.call("claudecode.get", json!({"name": "top"})).await?;
    assert!(got["session"]["archived_at"].is_u64(), "it is still found by name");
    let taken = world.refused("claudecode.create", json!({"name": "top", "working_dir": world.work})).await?;
    assert_eq!(taken.kind.as_deref(), Some("name_taken"));
    assert!(taken.message.contains("archived"), "{taken}");

    // One that works is never hidden, and neither is the session above it.
    world.chat(&below, &script(&json!([bash("echo two")]))).await?;
    world.asked(&below).await?;
    assert_eq!(names(&world, json!({})).await?, ["top", "below", "other"]);
    world.call("claudecode.stop", json!({"session_id": below})).await?;
    world.ended(&below).await?;

    world.call("claudecode.update", archive(&top, true)).await?;
    assert_eq!(names(&world, json!({})).await?, ["other"]);
    world.call("claudecode.update", archive(&top, false)).await?;
    assert_eq!(names(&world, json!({})).await?, ["top", "below", "other"]);
    let audit = world.call("audit.list", json!({"session_id": top, "kind": "session"})).await?;
    let acts: Vec<String> =
        audit["rows"].as_array().context("rows")?.iter().map(|row| text(&row["entry"]["status"])).collect();
    assert_eq!(
        acts.iter().filter(|act| act.ends_with("archived")).collect::<Vec<_>>(),
        ["archived", "archived", "unarchived"]
    );
    Ok(())
}

#[tokio::test]
async fn recent_directories_include_those_of_deleted_sessions() -> anyhow::Result<()> {
    let world = scripted().await?;
    for name in ["one", "two"] {
        let dir = world.work.join(name);
        std::fs::create_dir(&dir)?;
        world.create(name, json!({"working_dir": dir})).await?;
    }
    world.create("again", json!({"working_dir": world.work.join("one")})).await?;
    world.call("claudecode.delete", json!({"name": "two"})).await?;
    let dirs = world.call("claudecode.recent_dirs", json!({})).await?["dirs"].clone();
    let paths: Vec<String> = dirs.as_array().context("dirs")?.iter().map(|dir| text(&dir["path"])).collect();
    let work = world.work.canonicalize()?;
    assert_eq!(paths, [work.join("one"), work.join("two")].map(|path| path.display().to_string()));
    Ok(())
}

/// A client with a new token.
async fn token(world: &World, right: &str) -> anyhow::Result<Rpc> {
    let made = world.call("token.new", json!({"name": right, "right": right})).await?;
    Ok(Rpc::new(world.hub.url(), &text(&made["token"])))
}
