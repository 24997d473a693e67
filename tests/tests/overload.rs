//! A session reaches its limit of concurrent requests while its real Claude Code requests a permit over HTTP. The call does not run, and the
//! session continues when requests are free again.

use std::time::Duration;

use plexus_e2e::{Channel, DoorKind, LIMIT, Setup, World, text};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::get;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const CALLS: usize = 4;

/// A request of a session with a complete head and an incomplete body.
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

/// The authorization header of the Claude Code of a session's first run.
fn bearer(world: &World, session: &str) -> anyhow::Result<String> {
    let config: Value = serde_json::from_slice(&std::fs::read(world.run_dir(session, 1).join("mcp.json"))?)?;
    Ok(text(&config["mcpServers"]["plexus"]["headers"]["Authorization"]))
}

/// Opens as many requests as a session may have at once.
async fn fill(world: &World, bearer: &str) -> anyhow::Result<Vec<TcpStream>> {
    let mut requests = Vec::new();
    for _ in 0..=CALLS {
        requests.push(unfinished(world, bearer).await?);
    }
    let full = async {
        while rejected_requests(world).await? < 1.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(LIMIT, full).await??;
    Ok(requests)
}

/// The number of rejected requests.
async fn rejected_requests(world: &World) -> anyhow::Result<f64> {
    let figures = get(world.hub.url(), "/metrics", &world.hub.token()?).await?;
    let figure = |line: &str| {
        line.strip_prefix(r#"plexus_turned_away_total{limit="calls_per_caller"} "#)?.parse().ok()
    };
    Ok(figures.lines().find_map(figure).unwrap_or_default())
}

async fn permit_under_overload(version: &'static str, test: &str) -> anyhow::Result<()> {
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
    let before = rejected_requests(&world).await?;
    hold.release();
    let poll = world.ended(&session).await?;
    assert!(rejected_requests(&world).await? > before, "the request was rejected: {poll:#}");
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
async fn a_call_does_not_run_when_its_permit_is_rejected_for_load_197() -> anyhow::Result<()> {
    permit_under_overload("2.1.197", "a_call_does_not_run_when_its_permit_is_rejected_for_load_197").await
}

#[tokio::test]
async fn a_call_does_not_run_when_its_permit_is_rejected_for_load_325() -> anyhow::Result<()> {
    permit_under_overload("2.1.325", "a_call_does_not_run_when_its_permit_is_rejected_for_load_325").await
}
