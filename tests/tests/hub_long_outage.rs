//! Long outages of the hub: with many open approvals, and for longer than a client retries.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, Setup, World, events, script, text};
use plexus_testkit::model::Step;
use serde_json::{Value, json};

const OPEN: usize = 50;

#[tokio::test]
async fn fifty_open_approvals_survive_an_outage() -> anyhow::Result<()> {
    let mut world = Setup::scripted().world("fifty open approvals").await?.context("the scripted agent")?;
    let mut sessions = Vec::new();
    for n in 0..OPEN {
        let prompt =
            script(&json!([{"tool": "Step", "id": format!("call-{n}"), "input": {"n": n}}, {"say": "done"}]));
        sessions.push(world.create(&format!("agent-{n}"), json!({"prompt": prompt})).await?);
    }
    for session in &sessions {
        world.asked(session).await?;
    }
    let before = world.call("loopback.pending", json!({})).await?;
    assert_eq!(before["approvals"].as_array().map(Vec::len), Some(OPEN));

    world.hub.kill9().await?;
    let started = Instant::now();
    world.hub.restart().await?;
    let ready = started.elapsed();
    let after = world.call("loopback.pending", json!({})).await?;
    assert_eq!(after, before);
    println!(
        "ready again after {ready:?} with {OPEN} open approvals, all there after {:?}",
        started.elapsed()
    );

    let allow = |approval: &Value| json!({"approval_id": approval["id"], "approve": true});
    let decisions: Vec<Value> = after["approvals"].as_array().into_iter().flatten().map(allow).collect();
    world.call("loopback.respond", json!({"decisions": decisions})).await?;
    for session in &sessions {
        assert_eq!(world.ended(session).await?["status"], "complete");
    }
    let mut ran: Vec<String> = world.ran().iter().map(|ran| text(&ran["tool_use_id"])).collect();
    ran.sort();
    ran.dedup();
    assert_eq!((ran.len(), world.ran().len()), (OPEN, OPEN), "each ran once");
    Ok(())
}

/// An outage with an open approval that is longer than a client over HTTP retries.
async fn outage_beyond_the_retries(
    version: &'static str,
    channel: Channel,
    test: &str,
) -> anyhow::Result<Option<(World, Value)>> {
    let setup = Setup::cli(version, channel, DoorKind::Rpc).with_config("sse_retry_ms = 300");
    let Some(mut world) = setup.world(test).await? else { return Ok(None) };
    world
        .model
        .script("AWAY", vec![Step::tool("Bash", json!({"command": "touch ran"})), Step::text("Went on.")]);
    world.model.script("NEXT", vec![Step::text("Next.")]);
    let session = world.create("left", json!({})).await?;
    world.chat(&session, "AWAY").await?;
    let (_, approval) = world.asked(&session).await?;
    world.hub.kill9().await?;
    // The client tries twice, this far apart. No event shows when it has given up.
    tokio::time::sleep(Duration::from_millis(3000)).await;
    world.hub.restart().await?;
    if channel == Channel::Relay {
        world.allow(&approval).await?;
    }
    let poll = world.ended(&session).await?;
    assert_eq!(poll["pending_approvals"], json!([]));
    // In both cases the session accepts the next prompt.
    world.chat(&session, "NEXT").await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(Some((world, poll)))
}

/// Over HTTP the turn ends with a reason, or the agent continues without the call. It never hangs, and the call never runs.
async fn over_http(version: &'static str, test: &str) -> anyhow::Result<()> {
    let Some((world, poll)) = outage_beyond_the_retries(version, Channel::Http, test).await? else {
        return Ok(());
    };
    assert!(!world.file("ran").exists(), "it ran without an allow");
    match poll["status"].as_str() {
        Some("complete") => assert_eq!(events(&poll, "tool_result")[0]["is_error"], true, "{poll:#}"),
        _ => assert_eq!(events(&poll, "error")[0]["reason"], "permit_lost", "{poll:#}"),
    }
    Ok(())
}

#[tokio::test]
async fn a_turn_with_a_lost_permit_ends_with_a_reason_or_continues_197() -> anyhow::Result<()> {
    over_http("2.1.197", "a_turn_with_a_lost_permit_ends_with_a_reason_or_continues_197").await
}

#[tokio::test]
async fn a_turn_with_a_lost_permit_ends_with_a_reason_or_continues_325() -> anyhow::Result<()> {
    over_http("2.1.325", "a_turn_with_a_lost_permit_ends_with_a_reason_or_continues_325").await
}

/// The relay retries without a limit, so the same permit is answered.
async fn over_the_relay(version: &'static str, test: &str) -> anyhow::Result<()> {
    let Some((world, poll)) = outage_beyond_the_retries(version, Channel::Relay, test).await? else {
        return Ok(());
    };
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(world.file("ran").exists());
    Ok(())
}

#[tokio::test]
async fn a_permit_through_the_relay_waits_for_the_hub_197() -> anyhow::Result<()> {
    over_the_relay("2.1.197", "a_permit_through_the_relay_waits_for_the_hub_197").await
}

#[tokio::test]
async fn a_permit_through_the_relay_waits_for_the_hub_325() -> anyhow::Result<()> {
    over_the_relay("2.1.325", "a_permit_through_the_relay_waits_for_the_hub_325").await
}
