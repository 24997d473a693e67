//! How long a child waits after the answer: from sending `respond` to the start of the tool, with every step durable. Scripted agents record
//! the time themselves. Both sides read the same clock.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::{Args, ValueEnum};
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::Rpc;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bench_dir;
use crate::figures::Figures;

/// The largest ratio of a permit to a bare sync.
const GOAL: f64 = 10.0;

/// When each answer was sent, by tool_use_id, and the times of the syncs before them.
type Answered = (HashMap<String, u64>, Vec<Duration>);

#[derive(Args)]
pub(crate) struct PermitArgs {
    /// Number of permits in each measurement
    #[arg(long, default_value_t = 1000)]
    permits: usize,

    /// Number of concurrent children in the second measurement
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..))]
    children: u16,

    /// Durability of a commit; default: measure both
    #[arg(long, value_enum)]
    durability: Option<Durability>,
}

/// The setting with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Durability {
    Full,
    Normal,
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
pub(crate) async fn run(args: &PermitArgs) -> anyhow::Result<ExitCode> {
    let mut kept = true;
    for durability in [Durability::Full, Durability::Normal] {
        if args.durability.is_some_and(|only| only != durability) {
            continue;
        }
        let name = format!("{durability:?}").to_lowercase();
        let dir = bench_dir::on_a_disk()?;
        let hub = bench_dir::start_hub(dir.path(), &format!("durability = \"{name}\"\n")).await?;
        let (one, sync) = measure(&hub, dir.path(), 1, args.permits).await?;
        let (several, _) = measure(&hub, dir.path(), args.children.into(), args.permits).await?;
        println!("durability = \"{name}\"");
        println!("  fdatasync of 4 KiB appended     {sync}");
        println!("  respond → tool, one by one      {one}");
        println!("  respond → tool, {:2} children     {several}", args.children);
        let ratio = one.ratio_to(&sync);
        println!("  p50 of a permit is {ratio:.1} × that of the bare sync (goal: within {GOAL:.0})");
        kept &= ratio <= GOAL;
    }
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The waiting times of a single child on an idle hub. `round` makes its name unique.
pub(crate) async fn waits_of_one(
    hub: &HubProcess,
    dir: &Path,
    round: usize,
    permits: usize,
) -> anyhow::Result<Vec<Duration>> {
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    let create = child_params(&format!("child-{round}"), dir, permits);
    let (sent, _) = supervise(rpc, create, None).await?;
    waits(dir, sent, permits)
}

/// Answers `permits` approvals of this many children, each child's one after another. With a single child, a bare sync precedes each answer
/// while nothing else runs. So both are measured on the same machine under the same load.
async fn measure(
    hub: &HubProcess,
    dir: &Path,
    children: usize,
    permits: usize,
) -> anyhow::Result<(Figures, Figures)> {
    let mut supervisors = JoinSet::new();
    for child in 0..children {
        let rpc = Rpc::new(hub.url(), &hub.token()?);
        let share = permits / children + usize::from(child < permits % children);
        let params = child_params(&format!("child-{child}-of-{children}"), dir, share);
        let appended = if children == 1 { Some(File::create(dir.join("appended"))?) } else { None };
        supervisors.spawn(supervise(rpc, params, appended));
    }
    let (mut sent, mut syncs) = (HashMap::new(), Vec::new());
    while let Some(of_one) = supervisors.join_next().await {
        let (of_one, before) = of_one??;
        sent.extend(of_one);
        syncs.extend(before);
    }
    Ok((Figures::of(waits(dir, sent, permits)?), Figures::of(syncs)))
}

/// The parameters of a child with this many permits.
fn child_params(name: &str, dir: &Path, permits: usize) -> Value {
    let step = |number| json!({"tool": "Step", "input": {"number": number}});
    let steps: Vec<Value> = (0..permits).map(step).collect();
    json!({
        "name": name, "working_dir": dir.join("work"), "prompt": json!({"steps": steps}).to_string(),
    })
}

/// The time from each answer to its tool, from the log of the agents.
fn waits(dir: &Path, mut sent: HashMap<String, u64>, permits: usize) -> anyhow::Result<Vec<Duration>> {
    let mut waits = Vec::new();
    for line in std::fs::read_to_string(dir.join(bench_dir::LOG))?.lines() {
        let ran: Value = serde_json::from_str(line)?;
        if let Some(sent) = sent.remove(ran["tool_use_id"].as_str().unwrap_or_default()) {
            let released = ran["at_ns"].as_u64().context("the agent notes the time")?;
            waits.push(Duration::from_nanos(released.saturating_sub(sent)));
        }
    }
    ensure!(waits.len() == permits, "only {} of {permits} permits ran", waits.len());
    Ok(waits)
}

/// Starts a child and allows all its approvals until the end of its turn.
async fn supervise(rpc: Rpc, create: Value, mut appended: Option<File>) -> anyhow::Result<Answered> {
    let session = rpc.call("claudecode.create", create).await?["id"].clone();
    let (mut sent, mut syncs) = (HashMap::new(), Vec::new());
    let mut from_seq = 0;
    loop {
        let poll = json!({"session_id": session, "from_seq": from_seq, "wait_ms": 10_000, "limit": 10_000});
        let poll = rpc.call("claudecode.poll", poll).await?;
        from_seq = poll["read_position"].as_u64().unwrap_or(from_seq);
        match poll["status"].as_str() {
            Some("complete") => return Ok((sent, syncs)),
            Some("running" | "awaiting_permission") => {}
            _ => bail!("the turn did not complete: {poll}"),
        }
        for approval in poll["pending_approvals"].as_array().into_iter().flatten() {
            let id = approval["tool_use_id"].as_str().unwrap_or_default().to_owned();
            if sent.contains_key(&id) {
                continue;
            }
            if let Some(file) = &mut appended {
                syncs.push(bench_dir::bare_sync(file)?);
            }
            sent.insert(id, now_ns());
            let allow = json!({"approval_id": approval["id"], "approve": true});
            rpc.call("loopback.respond", allow).await?;
        }
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
