//! Whether listeners delay a child: the time in which a scripted agent writes its events, by its own clock, alternately with many SSE
//! listeners and with none. Every listener must receive every event once and in order.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::{Listener, Rpc};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bench_dir;
use crate::figures::Figures;

/// The largest ratio of the child's times.
const GOAL: f64 = 1.5;

#[derive(Args)]
pub(crate) struct ListenersArgs {
    /// Number of listeners
    #[arg(long, default_value_t = 100)]
    listeners: usize,

    /// Number of events that the child writes
    #[arg(long, default_value_t = 10_000)]
    events: usize,

    /// Number of measurements of each
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
pub(crate) async fn run(args: &ListenersArgs) -> anyhow::Result<ExitCode> {
    let dir = bench_dir::on_a_disk()?;
    let hub = bench_dir::start_hub(dir.path(), "durability = \"full\"\n").await?;
    let (mut alone, mut heard, mut until_heard) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..args.rounds {
        let name = |kind: &str| format!("{kind}-{round}");
        alone.push(measure(&hub, dir.path(), &name("alone"), args.events, 0).await?.0);
        let (child, all) = measure(&hub, dir.path(), &name("heard"), args.events, args.listeners).await?;
        heard.push(child);
        until_heard.push(all);
    }
    let (alone, heard, until_heard) = (Figures::of(alone), Figures::of(heard), Figures::of(until_heard));
    println!("{} events, no listener       {alone}", args.events);
    println!("{} events, {:4} listeners    {heard}", args.events, args.listeners);
    println!("until all listeners are done     {until_heard}");
    let ratio = heard.ratio_to(&alone);
    println!("with listeners the child takes {ratio:.2} × as long (goal: within {GOAL})");
    Ok(if ratio <= GOAL { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The child's time, and the time until all listeners had all events.
async fn measure(
    hub: &HubProcess,
    dir: &Path,
    name: &str,
    events: usize,
    listeners: usize,
) -> anyhow::Result<(Duration, Duration)> {
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    let create = json!({"name": name, "working_dir": dir.join("work")});
    let session = rpc.call("claudecode.create", create).await?["id"].as_str().context("an id")?.to_owned();
    let mut listening = JoinSet::new();
    for _ in 0..listeners {
        let path = format!("/sessions/{session}/events");
        let listener = Listener::open(hub.url(), &path, &hub.token()?, None).await?;
        listening.spawn(count(listener));
    }
    let begun = Instant::now();
    let prompt = json!({"steps": [{"flood": {"events": events, "bytes": 100}}]}).to_string();
    rpc.call("claudecode.chat_async", json!({"session_id": session, "prompt": prompt})).await?;
    while let Some(heard) = listening.join_next().await {
        let heard = heard??;
        ensure!(heard > events, "a listener received {heard} events");
    }
    let all = begun.elapsed();
    let mut status = Value::Null;
    while status != "complete" {
        let poll = json!({"session_id": session, "wait_ms": 10_000, "limit": 1000});
        status = rpc.call("claudecode.poll", poll).await?["status"].clone();
        ensure!(status == "running" || status == "complete", "the turn did not complete: {status}");
    }
    rpc.call("claudecode.stop", json!({"session_id": session})).await?;
    Ok((took(hub, &session)?, all))
}

/// The child's own measurement.
fn took(hub: &HubProcess, session: &str) -> anyhow::Result<Duration> {
    let journal = hub.data_dir().join("sessions").join(session).join("runs/1/journal.jsonl");
    let journal = std::fs::read_to_string(journal)?;
    let result = journal.lines().rev().find(|line| line.contains("duration_ms")).context("a result")?;
    let result: Value = serde_json::from_str(result)?;
    Ok(Duration::from_millis(result["duration_ms"].as_u64().context("a duration")?.max(1)))
}

/// Reads a turn to its end. Each event must have the next number.
async fn count(mut listener: Listener) -> anyhow::Result<usize> {
    let mut heard = 0;
    loop {
        let told = listener.next().await?.context("the stream goes on")?;
        let id = told.id.context("every event has an id")?;
        ensure!(id == format!("1-{heard}"), "event {id} arrived after {heard} events");
        heard += 1;
        if told.data.contains(r#""type":"complete""#) {
            return Ok(heard);
        }
    }
}
