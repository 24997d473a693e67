//! Whether stored history slows a hub down: decisions, `claudecode.poll` and `loopback.pending` on a hub with history, and on a hub whose
//! history is one turn, alternately. That turn is as large as each turn of the other hub, so that both polls return the same amount.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use plexus_protocol::SessionId;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bench_dir;
use crate::figures::Figures;
use crate::kept_connection::KeptConnection;
use crate::permit::waits_of_one;
use crate::report::{Report, Threshold, progress};
use crate::stored_history::{self, HistorySize};

#[derive(Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    size: HistorySize,

    /// Decisions on each hub, and calls of each list, per round
    #[arg(long, default_value_t = 100)]
    calls: usize,

    /// Number of alternations
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Approvals that are open on both hubs during the measurements.
const OPEN: usize = 20;
/// Events that a poll returns.
const PAGE: usize = 100;
/// The time limit of one call, and for the open approvals.
const LIMIT: Duration = Duration::from_secs(60);

/// The operations that are compared.
#[derive(Clone, Copy)]
enum Operation {
    Decision,
    Poll,
    Pending,
}

const OPERATIONS: [(Operation, &str); 3] = [
    (Operation::Decision, "decision"),
    (Operation::Poll, "claudecode.poll, 100 events"),
    (Operation::Pending, "loopback.pending, 20 open"),
];

pub(crate) async fn run(args: &HistoryArgs) -> anyhow::Result<ExitCode> {
    // A history of another size has results of its own.
    let name = match args.size.events {
        HistorySize::EVENTS => "history".to_owned(),
        events => format!("history-{events}"),
    };
    let mut report = Report::new(
        &name,
        &format!("A hub with a history of {}, compared with a hub with one turn", args.size),
        "data that is not in the page cache: the history was written just before. The history has no conversation trees, rules or \
         journals. A decision is the time from sending `respond` to the start of the tool, with a scripted agent. A poll reads the same \
         page of an old turn each time.",
    );
    report.command = report.command.replace(&name, "history");
    let empty = BenchHub::start(args.size.one_turn()).await?;
    let full = BenchHub::start(args.size).await?;
    let mut times = OPERATIONS.map(|_| (Vec::new(), Vec::new()));
    for round in 0..args.rounds {
        progress(&format!("round {} of {}", round + 1, args.rounds));
        for ((operation, _), (without, with)) in OPERATIONS.iter().zip(&mut times) {
            let mut hubs = [(&empty, without), (&full, with)];
            if round % 2 == 1 {
                hubs.reverse();
            }
            for (hub, times) in hubs {
                times.push(hub.times(*operation, round, args.calls).await?);
            }
        }
    }
    for ((_, name), (without, with)) in OPERATIONS.iter().zip(&times) {
        report.times(format!("{name}, one turn"), &Figures::of(without.concat())).baseline();
        report.times(format!("{name}, history"), &Figures::of(with.concat()));
    }
    for ((_, name), (without, with)) in OPERATIONS.iter().zip(&times) {
        let ratio = |(with, without): (&Vec<_>, &Vec<_>)| {
            Figures::of(with.clone()).ratio_to(&Figures::of(without.clone()))
        };
        let ratios: Vec<f64> = with.iter().zip(without).map(ratio).collect();
        let what = format!("p50 of {name}, with history compared with one turn");
        report.goal(what, "×", &ratios, Threshold::AtMost(1.2));
    }
    report.finish()
}

/// A hub, its directory, and the session that is polled.
struct BenchHub {
    // Dropped first, because it uses the directory.
    hub: HubProcess,
    dir: TempDir,
    polled: SessionId,
}

impl BenchHub {
    async fn start(size: HistorySize) -> anyhow::Result<Self> {
        let dir = bench_dir::on_a_disk()?;
        let options = bench_dir::prepare(dir.path(), &size.config())?;
        let sessions = stored_history::fill(&options.data_dir, size).await?;
        let polled = *sessions.get(sessions.len() / 2).context("a session")?;
        let hub = HubProcess::start(options).await?;
        hold_open(&hub, dir.path()).await?;
        Ok(Self { hub, dir, polled })
    }

    async fn times(&self, operation: Operation, round: usize, calls: usize) -> anyhow::Result<Vec<Duration>> {
        let poll = json!({"session_id": self.polled, "turn": 1, "from_seq": 0, "limit": PAGE});
        match operation {
            Operation::Decision => waits_of_one(&self.hub, self.dir.path(), round, calls).await,
            Operation::Poll => self.call_times("claudecode.poll", poll, calls, ("events", PAGE)).await,
            Operation::Pending => {
                self.call_times("loopback.pending", json!({}), calls, ("approvals", OPEN)).await
            }
        }
    }

    /// The times of a method whose result must have this many entries in this field.
    async fn call_times(
        &self,
        method: &str,
        params: Value,
        calls: usize,
        (field, entries): (&str, usize),
    ) -> anyhow::Result<Vec<Duration>> {
        // The hub closes a connection that is idle for long, for example while the other history is written.
        let mut connection = KeptConnection::open(self.hub.url(), &self.hub.token()?).await?;
        let mut times = Vec::new();
        for _ in 0..calls {
            let started = Instant::now();
            let call = connection.call(method, params.clone());
            let result = tokio::time::timeout(LIMIT, call).await.with_context(|| method.to_owned())??;
            times.push(started.elapsed());
            let found = result[field].as_array().map_or(0, Vec::len);
            ensure!(found == entries, "{method} returned {found} {field}");
        }
        Ok(times)
    }
}

/// Starts an agent whose calls wait for approvals until the hub ends.
async fn hold_open(hub: &HubProcess, dir: &Path) -> anyhow::Result<()> {
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    let calls: Vec<Value> =
        (0..OPEN).map(|number| json!({"tool": "Step", "input": {"number": number}})).collect();
    let prompt = json!({"steps": [{"tools": calls, "parallel": true}]}).to_string();
    let create = json!({"name": "open", "working_dir": dir.join("work"), "prompt": prompt});
    rpc.call("claudecode.create", create).await?;
    let started = Instant::now();
    loop {
        let pending = rpc.call("loopback.pending", json!({})).await?;
        if pending["approvals"].as_array().map_or(0, Vec::len) == OPEN {
            return Ok(());
        }
        ensure!(started.elapsed() < LIMIT, "the agent did not request its approvals");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
