//! How a hub behaves with thousands of open permits and with many sessions with a running agent: the memory of each, the delay of a decision, and the
//! cost of the two lists that clients read.

mod open_permits;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use open_permits::{LIMIT, Measured};
use plexus_testkit::hub_process::HubProcess;
use serde_json::json;

use crate::figures::Figures;
use crate::kept_connection::KeptConnection;
use crate::report::{Report, Threshold, median_of, progress, shown};
use crate::{bench_dir, held_agents, memory};

#[derive(Args)]
pub(crate) struct ScaleArgs {
    /// Numbers of open permits, each with a hub of its own
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
    open: Vec<usize>,

    /// Open permits of one session; four of them need no place in the hub's pool of calls
    #[arg(long, default_value_t = 4)]
    per_session: usize,

    /// Decisions with one and with all permits open, per round
    #[arg(long, default_value_t = 1_000)]
    decisions: usize,

    /// Calls of each list, per round
    #[arg(long, default_value_t = 5)]
    lists: usize,

    /// Sessions with a running agent: each has a keeper and a scripted agent; 0 for none
    #[arg(long, default_value_t = 1_000)]
    sessions: usize,

    /// Number of rounds, each with a new hub
    #[arg(long, default_value_t = 2)]
    rounds: usize,
}

/// Decisions of a block. A stall of the disk affects few blocks.
const BLOCK: usize = 100;
/// Sessions that exist before the memory of sessions with a running agent is counted.
const NOT_COUNTED: usize = 8;
/// The time in which the hub's short-lived buffers are freed before its memory is read.
const SETTLE: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: &ScaleArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(
        "scale",
        "A hub with many open permits, and with many sessions with a running agent",
        &format!(
            "the memory of clients, keepers and agents, and of the first {NOT_COUNTED} sessions with a running agent. Permits are HTTP requests of agents outside the hub, {} per session, and all \
             sessions exist before the first permit; the memory of a permit includes its connection, \
             that of a session its open approval. Each number of permits has a hub of its own, which is measured with one open permit \
             first. A decision is the time from sending \
             `respond` until the agent has the answer. To exclude stalls of the disk, the goal compares the medians of the 99th percentiles of \
             {BLOCK} decisions each; the plot shows those of all decisions. `pending` and `list` have no pages, so they return everything. The limits of the hub \
             are raised. Clients and hub share the machine's cores.",
            args.per_session
        ),
    );
    for open in &args.open {
        open_permits(&mut report, args, *open).await?;
    }
    if args.sessions > 0 {
        living_sessions(&mut report, args).await?;
    }
    report.finish()
}

async fn open_permits(report: &mut Report, args: &ScaleArgs, open: usize) -> anyhow::Result<()> {
    let mut rounds = Vec::new();
    for round in 0..args.rounds {
        progress(&format!("round {} of {}: {open} open permits", round + 1, args.rounds));
        rounds.push(open_permits::measure(open, args).await?);
    }
    let all = |times: fn(&Measured) -> &Vec<Duration>| {
        Figures::of(rounds.iter().flat_map(times).copied().collect())
    };
    report.times(format!("decision, 1 open (before {open})"), &all(|round| &round.alone)).baseline();
    report.times(format!("decision, {open} open"), &all(|round| &round.among_open));
    report.times(format!("loopback.pending, {open} open"), &all(|round| &round.pending));
    report.times(format!("claudecode.list, {open} open"), &all(|round| &round.list));
    let memory: Vec<f64> = rounds.iter().map(|round| round.memory / 1000.0).collect();
    report.values(format!("hub's memory per permit, {open} open"), "kB", &memory);
    let of_connection: Vec<f64> = rounds.iter().map(|round| round.connection_memory / 1000.0).collect();
    report.values(format!("hub's memory per idle connection (before {open})"), "kB", &of_connection);
    let ratios: Vec<f64> = rounds
        .iter()
        .map(|round| median_block_p99(&round.among_open) / median_block_p99(&round.alone))
        .collect();
    let what = format!("p99 of a decision, {open} open compared with 1");
    report.goal(what, "×", &ratios, Threshold::AtMost(2.0));
    let what = format!("the hub's memory per open permit, {open} open");
    report.goal(what, "kB", &memory, Threshold::AtMost(15.0));
    let text = format!(
        "With {open} open, {} kB of the memory of a permit are its connection: an idle connection takes as much (measured before the permits, in the \
         plot). hyper allocates at least 8 KiB for each of its two buffers; only the pages in use are resident.",
        shown(median_of(&of_connection)),
    );
    report.limit_of(&format!("per open permit, {open} open"), text);
    Ok(())
}

/// The 99th percentile of a block of decisions; the median of all blocks.
fn median_block_p99(times: &[Duration]) -> f64 {
    let p99 = |block: &[Duration]| Figures::of(block.to_vec()).p99.as_secs_f64();
    median_of(&times.chunks(BLOCK).map(p99).collect::<Vec<f64>>())
}

async fn living_sessions(report: &mut Report, args: &ScaleArgs) -> anyhow::Result<()> {
    let count = args.sessions;
    let (mut each, mut starts, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..args.rounds {
        progress(&format!("round {} of {}: {count} sessions with a running agent", round + 1, args.rounds));
        let dir = bench_dir::on_a_disk()?;
        let mut hub = bench_dir::start_hub(dir.path(), &held_agents::config(count)).await?;
        // The first sessions grow the hub by several times more than later ones.
        held_agents::start(&hub, dir.path(), "first", NOT_COUNTED).await?;
        tokio::time::sleep(SETTLE).await;
        let before = memory::resident(hub.pid())?;
        let started = Instant::now();
        held_agents::start(&hub, dir.path(), "living", count).await?;
        starts.push(started.elapsed() / count as u32);
        tokio::time::sleep(SETTLE).await;
        each.push((memory::resident(hub.pid())? - before) / 1000.0 / count as f64);
        lists.extend(list_times(&hub, "claudecode.list", args.lists).await?);
        hub.down(held_agents::DOWN_LIMIT).await?;
    }
    report.times(format!("start of a session, per session of {count}"), &Figures::of(starts));
    report.times(format!("claudecode.list, {count} living sessions"), &Figures::of(lists));
    report.values(format!("hub's memory per living session, {count}"), "kB", &each);
    report.goal(
        format!("the hub's memory per living session, {count} sessions"),
        "kB",
        &each,
        Threshold::AtMost(50.0),
    );
    Ok(())
}

/// The times of a method without parameters.
async fn list_times(hub: &HubProcess, method: &str, calls: usize) -> anyhow::Result<Vec<Duration>> {
    let mut connection = KeptConnection::open(hub.url(), &hub.token()?).await?;
    let mut times = Vec::new();
    for _ in 0..calls {
        let started = Instant::now();
        let call = connection.call(method, json!({}));
        tokio::time::timeout(LIMIT, call).await.with_context(|| format!("{method} takes too long"))??;
        times.push(started.elapsed());
    }
    Ok(times)
}
