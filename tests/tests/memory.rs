//! The hub's memory is bounded, however much children write and however slowly clients read.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use plexus_e2e::{Setup, World, script, text};
use plexus_testkit::rpc::{Listener, Rpc, get};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The largest memory of a hub.
const MAX_MB: u64 = 150;
const EVENT_BYTES: usize = 10_000;
const CLIENTS: usize = 8;

#[tokio::test]
async fn memory_is_bounded_while_a_child_floods() -> anyhow::Result<()> {
    println!("{}", many_agents_and_a_flood(50, 64_000_000, Duration::from_secs(120)).await?);
    Ok(())
}

#[tokio::test]
#[ignore = "slow: a thousand agents, and one that writes 1 GB"]
async fn memory_is_bounded_with_a_thousand_agents_and_a_flood() -> anyhow::Result<()> {
    println!("{}", many_agents_and_a_flood(1000, 1_000_000_000, Duration::from_secs(1800)).await?);
    Ok(())
}

/// Many agents wait for approval while one writes this many bytes. A client subscribes to that one and never reads. Returns
/// the figures.
async fn many_agents_and_a_flood(agents: usize, bytes: usize, limit: Duration) -> anyhow::Result<String> {
    let deadline = Instant::now() + limit;
    let world = Setup::scripted().with_config("[limits]\nsessions = 2000").world("memory").await?;
    let world = world.context("the scripted agent is always available")?;
    let began = Instant::now();
    let sessions = create_all(&world, agents).await?;
    while figure(&world, "plexus_approvals_open").await? < agents as f64 {
        ensure!(Instant::now() < deadline, "not all approvals are open; hub: {}", world.hub.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let asked = format!("{agents} agents asked after {:.1?}: {}", began.elapsed(), memory(&world)?);

    let flood = json!([{"flood": {"events": bytes / EVENT_BYTES, "bytes": EVENT_BYTES}}, {"say": "done"}]);
    let began = Instant::now();
    let flooding = world.create("flooding", json!({"prompt": script(&flood)})).await?;
    let path = format!("/sessions/{flooding}/events");
    let _never_reads = Listener::open(world.hub.url(), &path, &world.hub.token()?, None).await?;
    let (mut slowest, mut answered) = (Duration::ZERO, 0);
    loop {
        // The output of one child does not delay a decision for another.
        if let Some(session) = sessions.get(answered) {
            let pending = world.call("loopback.pending", json!({"session_id": session})).await?;
            let asked = Instant::now();
            world.allow(&pending["approvals"][0]).await?;
            slowest = slowest.max(asked.elapsed());
            answered += 1;
        }
        let look = json!({"session_id": flooding, "from_seq": 1_000_000_000, "limit": 1, "wait_ms": 1000});
        let poll = world.call("claudecode.poll", look).await?;
        match poll["status"].as_str() {
            Some("running") => {}
            Some("complete") => break,
            _ => anyhow::bail!("the turn failed: {poll:#}"),
        }
        ensure!(Instant::now() < deadline, "not in time: {poll:#}");
    }
    let (megabytes, took) = (bytes / 1_000_000, began.elapsed());
    let stored =
        format!("{megabytes} MB stored in {took:.1?}, slowest answer {slowest:.1?}: {}", memory(&world)?);
    assert_eq!(figure(&world, "plexus_approvals_open").await?, (agents - answered) as f64);
    let peak = peak_mb(&world)?;
    stop_all(&world, sessions).await?;
    assert!(peak < MAX_MB, "the hub grew to {peak} MB: {asked}; {stored}");
    Ok(format!("{asked}; {stored}"))
}

fn clients(world: &World) -> anyhow::Result<Vec<Arc<Rpc>>> {
    let token = world.hub.token()?;
    Ok((0..CLIENTS).map(|_| Arc::new(Rpc::new(world.hub.url(), &token))).collect())
}

async fn create_all(world: &World, agents: usize) -> anyhow::Result<Vec<String>> {
    let mut tasks = JoinSet::new();
    for (first, client) in clients(world)?.into_iter().enumerate() {
        let work = world.work.clone();
        tasks.spawn(async move {
            let mut made = Vec::new();
            for agent in (first..agents).step_by(CLIENTS) {
                let steps = json!([{"tool": "Bash", "input": {"command": "true"}}]);
                let params =
                    json!({"name": format!("agent-{agent}"), "working_dir": work, "prompt": script(&steps)});
                made.push(text(&client.call("claudecode.create", params).await?["id"]));
            }
            anyhow::Ok(made)
        });
    }
    let made: Vec<Vec<String>> = tasks.join_all().await.into_iter().collect::<anyhow::Result<_>>()?;
    Ok(made.into_iter().flatten().collect())
}

/// Stops a few sessions at a time. Stopping a thousand at once would take longer than the limit for stopping a hub.
async fn stop_all(world: &World, sessions: Vec<String>) -> anyhow::Result<()> {
    let sessions = Arc::new(sessions);
    let mut tasks = JoinSet::new();
    for (first, client) in clients(world)?.into_iter().enumerate() {
        let sessions = Arc::clone(&sessions);
        tasks.spawn(async move {
            for session in sessions.iter().skip(first).step_by(CLIENTS) {
                client.call("claudecode.stop", json!({"session_id": session})).await?;
            }
            anyhow::Ok(())
        });
    }
    tasks.join_all().await.into_iter().collect()
}

async fn figure(world: &World, name: &str) -> anyhow::Result<f64> {
    let page = get(world.hub.url(), "/metrics", &world.hub.token()?).await?;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("{name} in {page}"))?.parse()?)
}

fn memory(world: &World) -> anyhow::Result<Value> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.hub.pid()))?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or_default()
    };
    Ok(json!({"rss_kb": of("VmRSS:"), "peak_kb": of("VmHWM:"), "threads": of("Threads:")}))
}

fn peak_mb(world: &World) -> anyhow::Result<u64> {
    Ok(memory(world)?["peak_kb"].as_u64().unwrap_or(u64::MAX) * 1024 / 1_000_000)
}
