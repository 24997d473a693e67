//! A message to a child is delivered completely and once: a hub that is killed while it receives or sends ten megabytes
//! neither truncates nor repeats them.

use std::time::Duration;

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, Setup, World, events, script};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::Rpc;
use serde_json::json;
use tokio::time::{Instant, sleep};

const TEN_MEGABYTES: usize = 10 * 1024 * 1024;

/// The time from the call to the end of the turn when the hub is not killed.
async fn undisturbed(world: &World, session: &str, prompt: &str) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    world.chat(session, prompt).await?;
    let poll = world.ended(session).await?;
    assert_eq!(poll["status"], "complete", "{}", events(&poll, "error").pop().unwrap_or_default());
    Ok(begun.elapsed())
}

/// Sends this prompt and kills the hub meanwhile. Repeats until the turn has started.
async fn prompt_while_killing(
    world: &mut World,
    session: &str,
    turn: u64,
    prompt: &str,
    within: Duration,
) -> anyhow::Result<()> {
    loop {
        let rpc = Rpc::new(world.hub.url(), &world.hub.token()?);
        let params = json!({"session_id": session, "prompt": prompt});
        let call = tokio::spawn(async move { rpc.call("claudecode.chat_async", params).await });
        sleep(within.mul_f64(fastrand::f64())).await;
        world.hub.kill9().await?;
        // The result of the call does not matter. The next hub knows whether the turn has started.
        let _ = call.await?;
        world.hub.restart().await?;
        let session = world.call("claudecode.get", json!({"session_id": session})).await?;
        if session["session"]["turn"] == turn {
            return Ok(());
        }
    }
}

async fn kills(rounds: u64) -> anyhow::Result<()> {
    let mut world = Setup::scripted().world("ten megabytes").await?.context("the scripted agent")?;
    let session = world.create("large", json!({})).await?;
    // If any byte were missing, the script could not be parsed.
    let prompt = |turn| " ".repeat(TEN_MEGABYTES) + &script(&json!([{"say": format!("turn {turn}")}]));
    let within = undisturbed(&world, &session, &prompt(1)).await?;
    for turn in 2..rounds + 2 {
        prompt_while_killing(&mut world, &session, turn, &prompt(turn), within).await?;
        let poll = world.ended(&session).await?;
        assert_eq!((&poll["status"], &poll["turn"]), (&json!("complete"), &json!(turn)), "{poll:#}");
        let content: Vec<_> =
            events(&poll, "content").into_iter().map(|event| event["text"].clone()).collect();
        assert_eq!(content, [json!(format!("turn {turn}"))], "once");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_megabytes_are_delivered_whole_and_once_when_the_hub_is_killed() -> anyhow::Result<()> {
    kills(3).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: fifty kills"]
async fn ten_megabytes_are_delivered_whole_and_once_over_fifty_kills() -> anyhow::Result<()> {
    kills(50).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_receives_ten_megabytes_whole_and_once() -> anyhow::Result<()> {
    let setup = Setup::cli("2.1.197", Channel::Control, DoorKind::Rpc);
    let Some(mut world) = setup.world("claude_receives_ten_megabytes_whole_and_once").await? else {
        return Ok(());
    };
    world.model.script("THE-END", vec![Step::text("All of it.")]);
    let session = world.create("large", json!({})).await?;
    let prompt = "wxyz ".repeat(TEN_MEGABYTES / 5) + "THE-END";
    let within = undisturbed(&world, &session, "a word").await? * 2;
    prompt_while_killing(&mut world, &session, 2, &prompt, within).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{}", events(&poll, "error").pop().unwrap_or_default());
    let asked = world.model.requests_for("THE-END");
    let told: Vec<usize> =
        asked.iter().map(|request| request["messages"].to_string().matches("wxyz ").count()).collect();
    assert_eq!(told, [TEN_MEGABYTES / 5], "whole, and once");
    Ok(())
}
