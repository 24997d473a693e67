//! How fast a hub starts, and how little it needs: from the start of its process until it accepts requests, with an empty data directory, with
//! stored history, and with running agents that an earlier hub left; its idle memory; the size of its binary.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use plexus_testkit::binaries;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use crate::figures::Figures;
use crate::report::{Report, Threshold, progress};
use crate::stored_history::{self, HistorySize};
use crate::{bench_dir, held_agents, hub_client, memory};

#[derive(Args)]
pub(crate) struct StartArgs {
    /// Starts per row
    #[arg(long, default_value_t = 20)]
    starts: usize,

    /// Agents that are held at an approval while the hub is killed and started again
    #[arg(long, default_value_t = 1000)]
    keepers: usize,

    /// Number of times that the hub with these agents is killed
    #[arg(long, default_value_t = 5)]
    kills: usize,

    #[command(flatten)]
    history: HistorySize,
}

/// How long a hub is idle before its memory is read.
const IDLE: Duration = Duration::from_secs(2);
/// The time limit for the turn that is answered after a kill.
const LIMIT: Duration = Duration::from_secs(60);

/// The goals, in milliseconds.
const EMPTY_MS: f64 = 50.0;
const HISTORY_MS: f64 = 100.0;
const PER_KEEPER_MS: f64 = 2.0;
const MIB: f64 = 1024.0 * 1024.0;

pub(crate) async fn run(args: &StartArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(
        "start",
        "From the start of the hub's process until it is ready",
        "a cold page cache, the first start with the history (it may checkpoint the write-ahead log), the check of a real Claude Code's \
         version, and the end of the previous hub. A hub is ready when it accepts requests. It attaches to the agents of an earlier hub after that; the \
         bar \"one answered\" is the time until one of them has its answer and ends its turn. \
         Memory is the resident memory of the hub without keepers and agents.",
    );
    empty(&mut report, args).await?;
    with_history(&mut report, args).await?;
    with_keepers(&mut report, args).await?;
    let size = std::fs::metadata(binaries::plexus()?)?.len() as f64 / MIB;
    report.values("size of the binary", "MiB", &[size]);
    report.goal("size of the binary", "MiB", &[size], Threshold::AtMost(20.0));
    report.limit_of(
        "size of the binary",
        "The client of PostgreSQL and what several hubs need take about 1 MiB: the binary had 19.6 MiB before a setting could select PostgreSQL.",
    );
    report.finish()
}

async fn empty(report: &mut Report, args: &StartArgs) -> anyhow::Result<()> {
    progress("empty data directories");
    let (mut times, mut memories) = (Vec::new(), Vec::new());
    for start in 0..args.starts {
        let dir = bench_dir::on_a_disk()?;
        let options = bench_dir::prepare(dir.path(), "durability = \"full\"\n")?;
        let started = Instant::now();
        let hub = HubProcess::start(options).await?;
        times.push(started.elapsed());
        // A few hubs suffice, because each of them is idle for seconds.
        if start < 3 {
            tokio::time::sleep(IDLE).await;
            memories.push(memory::resident(hub.pid())? / MIB);
        }
    }
    report.times("empty data directory", &Figures::of(times.clone()));
    report.goal("p50, empty data directory", "ms", &in_ms(&times), Threshold::AtMost(EMPTY_MS));
    report.values("idle memory, empty data directory", "MiB", &memories);
    report.goal("idle memory, empty data directory", "MiB", &memories, Threshold::AtMost(20.0));
    Ok(())
}

async fn with_history(report: &mut Report, args: &StartArgs) -> anyhow::Result<()> {
    let dir = bench_dir::on_a_disk()?;
    let options = bench_dir::prepare(dir.path(), &args.history.config())?;
    stored_history::fill(&options.data_dir, args.history).await?;
    let mut hub = HubProcess::start(options).await?;
    let mut times = Vec::new();
    for _ in 0..args.starts {
        hub.terminate().await?;
        times.push(restart(&mut hub).await?);
    }
    tokio::time::sleep(IDLE).await;
    let memory = memory::resident(hub.pid())? / MIB;
    let name = format!("{} approvals, {} events", args.history.approvals, args.history.events);
    report.times(name.clone(), &Figures::of(times.clone()));
    report.goal(format!("p50, {name}"), "ms", &in_ms(&times), Threshold::AtMost(HISTORY_MS));
    report.values(format!("idle memory, {name}"), "MiB", &[memory]);
    Ok(())
}

async fn with_keepers(report: &mut Report, args: &StartArgs) -> anyhow::Result<()> {
    let keepers = args.keepers;
    ensure!(keepers > args.kills, "each kill needs an agent to answer, and --keepers is {keepers}");
    progress(&format!("{keepers} agents"));
    let dir = bench_dir::on_a_disk()?;
    let config = format!("durability = \"full\"\n{}", held_agents::config(keepers));
    let mut hub = bench_dir::start_hub(dir.path(), &config).await?;
    held_agents::start(&hub, dir.path(), "held", keepers).await?;
    let (mut ready, mut answered) = (Vec::new(), Vec::new());
    for kill in 0..args.kills {
        hub.kill9().await?;
        let started = Instant::now();
        ready.push(restart(&mut hub).await?);
        // Every approval is still open, and an answer still reaches its agent.
        let open = pending(&hub).await?;
        ensure!(open.len() == keepers - kill, "{} approvals are open", open.len());
        answer(&hub, open.last().context("an approval")?).await?;
        answered.push(started.elapsed());
    }
    hub.down(held_agents::DOWN_LIMIT).await?;
    report.times(format!("restart after SIGKILL, {keepers} agents"), &Figures::of(ready.clone()));
    report.times(format!("restart after SIGKILL, {keepers} agents, one answered"), &Figures::of(answered));
    // For very few agents, the start itself is the larger part.
    let limit = (PER_KEEPER_MS * keepers as f64).max(HISTORY_MS);
    report.goal(
        format!("p50, restart after SIGKILL with {keepers} agents (goal: 2 ms per agent)"),
        "ms",
        &in_ms(&ready),
        Threshold::AtMost(limit),
    );
    Ok(())
}

/// Starts a hub that has ended. Returns the time until it is ready.
async fn restart(hub: &mut HubProcess) -> anyhow::Result<Duration> {
    let started = Instant::now();
    hub.restart().await?;
    Ok(started.elapsed())
}

async fn pending(hub: &HubProcess) -> anyhow::Result<Vec<Value>> {
    let pending = Rpc::new(hub.url(), &hub.token()?).call("loopback.pending", json!({})).await?;
    Ok(pending["approvals"].as_array().cloned().unwrap_or_default())
}

/// Allows a call and waits for the end of its turn.
async fn answer(hub: &HubProcess, approval: &Value) -> anyhow::Result<()> {
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    rpc.call("loopback.respond", json!({"approval_id": approval["id"], "approve": true})).await?;
    let session = approval["session_id"].as_str().context("an approval has a session")?;
    let complete = hub_client::until_complete(&rpc, ("session_id", session));
    tokio::time::timeout(LIMIT, complete).await.context("the turn did not complete")?
}

/// In milliseconds.
fn in_ms(times: &[Duration]) -> Vec<f64> {
    times.iter().map(|time| time.as_secs_f64() * 1000.0).collect()
}
