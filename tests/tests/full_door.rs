//! A door that is full for a session whose real Claude Code asks for permission over HTTP: the call does not run, and the session goes on
//! when there is room again.

use std::time::Duration;

use plexus_e2e::{Channel, DoorKind, LIMIT, Setup, World, text};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::get;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const CALLS: usize = 4;

/// A request of a session that does not end: its head is complete, its body is not.
async fn unfinished(world: &World, bearer: &str) -> anyhow::Result<TcpStream> {
    let address = world.hub.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: {address}\r\nauthorization: {bearer}\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await?;
    Ok(stream)
}

/// What the Claude Code of a session's first run signs its requests with.
fn bearer(world: &World, session: &str) -> anyhow::Result<String> {
    let config: Value = serde_json::from_slice(&std::fs::read(world.run_dir(session, 1).join("mcp.json"))?)?;
    Ok(text(&config["mcpServers"]["plexus"]["headers"]["Authorization"]))
}

/// Takes all requests that a session may have in progress.
async fn fill(world: &World, bearer: &str) -> anyhow::Result<Vec<TcpStream>> {
    let mut requests = Vec::new();
    for _ in 0..=CALLS {
        requests.push(unfinished(world, bearer).await?);
    }
    let full = async {
        while refused(world).await? < 1.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(LIMIT, full).await??;
    Ok(requests)
}

/// How many requests found no room.
async fn refused(world: &World) -> anyhow::Result<f64> {
    let figures = get(world.hub.url(), "/metrics", &world.hub.token()?).await?;
    let figure = |line: &str| {
        line.strip_prefix(r#"plexus_turned_away_total{limit="calls_per_caller"} "#)?.parse().ok()
    };
    Ok(figures.lines().find_map(figure).unwrap_or_default())
}

async fn a_full_door(version: &'static str, test: &str) -> anyhow::Result<()> {
    let config = format!("[doors]\ncalls_per_caller = {CALLS}\nbody_stall_secs = 60\n");
    let setup = Setup::cli(version, Channel::Http, DoorKind::Rpc).with_config(&config);
    let Some(world) = setup.world(test).await? else { return Ok(()) };
    let touch =
        |name: &str| Step::tool("Bash", json!({"command": format!("touch {name}"), "description": "a step"}));
    let (held, hold) = Step::hold(touch("early"));
    world.model.script("FIRST", vec![held, Step::text("Not done.")]);
    world.model.script("SECOND", vec![touch("late"), Step::text("Done.")]);
    let session = world.create("full", json!({})).await?;
    world.chat(&session, "FIRST").await?;
    world.poll_until(&session, |_| !world.model.requests_for("FIRST").is_empty()).await?;
    let requests = fill(&world, &bearer(&world, &session)?).await?;
    let before = refused(&world).await?;
    hold.release();
    let poll = world.ended(&session).await?;
    assert!(refused(&world).await? > before, "it found no room: {poll:#}");
    assert!(!world.file("early").exists(), "{poll:#}");
    drop(requests);

    world.chat(&session, "SECOND").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    world.ended(&session).await?;
    assert!(world.file("late").exists());
    Ok(())
}

#[tokio::test]
async fn a_call_that_finds_the_door_full_does_not_run_197() -> anyhow::Result<()> {
    a_full_door("2.1.197", "a_call_that_finds_the_door_full_does_not_run_197").await
}

#[tokio::test]
async fn a_call_that_finds_the_door_full_does_not_run_325() -> anyhow::Result<()> {
    a_full_door("2.1.325", "a_call_that_finds_the_door_full_does_not_run_325").await
}
