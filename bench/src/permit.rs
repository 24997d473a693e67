//! How long a child waits after the answer: from sending `respond` to the start of the tool, with every step durable. Scripted agents record
//! the time themselves; both sides read the same clock. Answers are sent one after another while a given number of approvals is open, and
//! for several children also all at once. A supervisor that polls the same hub once a second is the baseline.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use futures::future::try_join_all;
use plexus_store::Durability;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::{Listener, Rpc};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bench_dir::{self, setting};
use crate::figures::Figures;
use crate::held_agents;
use crate::hub_client::{next_approval, now_ns, until_complete};
use crate::kept_connection::KeptConnection;
use crate::processor_time::Stopwatch;
use crate::report::{Report, Threshold, median_of, progress, shown};

#[derive(Args)]
pub(crate) struct PermitArgs {
    /// Answers per row
    #[arg(long, default_value_t = 1000)]
    permits: usize,

    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// The largest number of open approvals.
const LARGEST: usize = 1000;
/// Children that start at the same time. More would only wait for a core.
const STARTS_AT_ONCE: usize = 8;
/// The time limit for the last answered call to run.
const LIMIT: Duration = Duration::from_secs(60);

/// How the open approvals are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// One after another. All others stay open.
    Single,
    /// All at the same time, then all again.
    AllAtOnce,
}

/// A measurement: this many open approvals, each of a child of its own, and how they are answered.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Case {
    open: usize,
    pace: Pace,
}

/// The case with the most answers at once.
const MOST_AT_ONCE: Case = Case { open: 64, pace: Pace::AllAtOnce };

const CASES: &[Case] = &[
    Case { open: 1, pace: Pace::Single },
    Case { open: 8, pace: Pace::Single },
    Case { open: 64, pace: Pace::Single },
    Case { open: LARGEST, pace: Pace::Single },
    Case { open: 8, pace: Pace::AllAtOnce },
    MOST_AT_ONCE,
];

impl Case {
    fn name(&self, durability: Durability) -> String {
        let Self { open, pace } = self;
        let pace = match pace {
            Pace::Single => "open",
            Pace::AllAtOnce => "answered at once",
        };
        format!("Plexus, {}, {open} {pace}", setting(durability))
    }
}

pub(crate) async fn run(args: &PermitArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(
        "permit",
        "From `respond` until the agent reads the answer and starts the tool, with scripted agents",
        "the agent's own work and the time that a person takes to decide. \"n open\": n children each wait for an approval, and one is answered \
         at a time. \"n answered at once\": all n are answered together. An answered child requests its next approval at once. The baseline is \
         a supervisor that asks for the decision once a second; answers are spread evenly over the second, so its median is half a second by \
         construction. It ends when the supervisor has the decision, not when the tool starts.",
    );
    let full = measure(&mut report, Durability::Full, args).await?;
    let mut processor_ms = full.processor_ms;
    processor_ms.extend(measure(&mut report, Durability::Normal, args).await?.processor_ms);
    report.values("processor time per answer, 64 answered at once", "ms", &processor_ms);
    let (one, cores) = (median_of(&processor_ms), report.machine.cores as f64);
    let text = format!(
        "With 64 answers at once, an answer, the agent's next request and the client's work take {} ms of processor time in client, hub, \
         keeper and agent together (`/proc/stat`). {cores} cores therefore need {} ms for 64 answers and, by calculation, {} ms for 8. A \
         median answer waits for about half of that, the last one for all of it.",
        shown(one),
        shown(64.0 * one / cores),
        shown(8.0 * one / cores),
    );
    report.limit_of("answered at once", text);
    let waits = polled(args.permits.min(20)).await?;
    let polled = Figures::of(waits);
    report.times("poll once a second", &polled).baseline();
    let times: Vec<f64> =
        full.one_open_ms.iter().map(|one| polled.p50.as_secs_f64() * 1000.0 / one).collect();
    // Not `×`: a second is a second on every machine, so this ratio changes with the machine's speed.
    report.goal(
        "a poll once a second, compared with Plexus, full, 1 open",
        "times",
        &times,
        Threshold::AtLeast(200.0),
    );
    report.finish()
}

/// What the cases of one durability have in common.
struct Measured {
    /// The processor time per answer of each round with the most answers at once.
    processor_ms: Vec<f64>,
    /// The median of each round with one open approval.
    one_open_ms: Vec<f64>,
}

/// Measures all cases.
async fn measure(report: &mut Report, durability: Durability, args: &PermitArgs) -> anyhow::Result<Measured> {
    // The largest case takes minutes, so it has only the default setting.
    let is_measured = |case: &&Case| case.open < LARGEST || durability == Durability::Full;
    let cases: Vec<Case> = CASES.iter().filter(is_measured).copied().collect();
    let mut syncs = Vec::new();
    let (mut processor_ms, mut one_open_ms) = (Vec::new(), Vec::new());
    let mut times: Vec<Vec<Vec<Duration>>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..args.rounds {
        for (case, times) in cases.iter().zip(&mut times) {
            progress(&format!("round {} of {}: {}", round + 1, args.rounds, case.name(durability)));
            let dir = bench_dir::on_a_disk()?;
            let config =
                format!("durability = \"{}\"\n{}", setting(durability), held_agents::config(case.open));
            let mut hub = bench_dir::start_hub(dir.path(), &config).await?;
            let mut appended = File::create(dir.path().join("appended"))?;
            for _ in 0..50 {
                syncs.push(bench_dir::bare_sync(&mut appended)?);
            }
            let measured = waits(&hub, dir.path(), *case, args.permits / args.rounds).await?;
            times.push(measured.times);
            if *case == MOST_AT_ONCE {
                processor_ms.push(measured.processor_ms);
            }
            hub.down(held_agents::DOWN_LIMIT).await?;
        }
    }
    report
        .times(format!("fdatasync of 4 KiB, beside the {} runs", setting(durability)), &Figures::of(syncs))
        .baseline();
    for (case, times) in cases.iter().zip(&times) {
        report.times(case.name(durability), &Figures::of(times.concat()));
    }
    for (case, times) in cases.iter().zip(&times) {
        let (percentile, limit) = match case {
            Case { open: 1, .. } => ("p50", Threshold::AtMost(1.0)),
            Case { open: 8, .. } => ("p50", Threshold::AtMost(2.0)),
            Case { open: LARGEST, .. } => ("p99", Threshold::None),
            Case { .. } => ("p99", Threshold::AtMost(5.0)),
        };
        let figures = times.iter().map(|times| Figures::of(times.clone()));
        let of_round = |figures: Figures| if percentile == "p50" { figures.p50 } else { figures.p99 };
        let rounds: Vec<f64> = figures.map(|figures| of_round(figures).as_secs_f64() * 1000.0).collect();
        report.goal(format!("{}, {percentile}", case.name(durability)), "ms", &rounds, limit);
        if case.open == 1 {
            one_open_ms = rounds;
        }
    }
    Ok(Measured { processor_ms, one_open_ms })
}

/// The waiting times of a single child on an idle hub, until its turn ends. `round` makes its name unique.
pub(crate) async fn waits_of_one(
    hub: &HubProcess,
    dir: &Path,
    round: usize,
    permits: usize,
) -> anyhow::Result<Vec<Duration>> {
    waits_of_one_answered_on(hub, hub, dir, &format!("round-{round}"), permits).await
}

/// The same for a child of one hub whose approvals are answered on another one.
pub(crate) async fn waits_of_one_answered_on(
    answering: &HubProcess,
    hub: &HubProcess,
    dir: &Path,
    name: &str,
    permits: usize,
) -> anyhow::Result<Vec<Duration>> {
    let one = Case { open: 1, pace: Pace::Single };
    let permits = Permits { each: permits, answered: permits };
    let Answered { sent, .. } = answered(answering, hub, dir, name, one, permits).await?;
    until_complete(&Rpc::new(hub.url(), &hub.token()?), ("name", &format!("{name}-0"))).await?;
    waits_in_log(dir, &sent)
}

/// The waiting times of a case. The children request more permits than are answered, so that the same number stays open.
async fn waits(hub: &HubProcess, dir: &Path, case: Case, permits: usize) -> anyhow::Result<Waits> {
    let permits = Permits { each: permits.div_ceil(case.open) + 1, answered: permits };
    let Answered { sent, processor } = answered(hub, hub, dir, "child", case, permits).await?;
    let logged = async {
        loop {
            match waits_in_log(dir, &sent) {
                Ok(waits) => return waits,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let times = tokio::time::timeout(LIMIT, logged).await.context("an answered call did not run")?;
    let processor_ms = processor.ms_per(times.len())?;
    Ok(Waits { times, processor_ms })
}

/// The result of a case.
struct Waits {
    times: Vec<Duration>,
    /// The milliseconds of processor time per answer, in all processes together.
    processor_ms: f64,
}

/// The answers of a case.
struct Answered {
    /// When each answer was sent, by tool_use_id.
    sent: HashMap<String, u64>,
    /// Started before the first answer.
    processor: Stopwatch,
}

/// The permits of a case.
#[derive(Clone, Copy)]
struct Permits {
    /// How many each child requests.
    each: usize,
    /// How many of all of them are answered.
    answered: usize,
}

/// Starts the children of a case on `hub`, and answers their approvals on the hub `answering`.
async fn answered(
    answering: &HubProcess,
    hub: &HubProcess,
    dir: &Path,
    name: &str,
    case: Case,
    permits: Permits,
) -> anyhow::Result<Answered> {
    let mut listener = Listener::open(answering.url(), "/events", &answering.token()?, None).await?;
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    let names: Vec<String> = (0..case.open).map(|child| format!("{name}-{child}")).collect();
    for names in names.chunks(STARTS_AT_ONCE) {
        let create =
            names.iter().map(|name| rpc.call("claudecode.create", child_params(name, dir, permits.each)));
        try_join_all(create).await?;
    }
    let width = if case.pace == Pace::AllAtOnce { case.open } else { 1 };
    let mut idle = Vec::new();
    for _ in 0..width {
        idle.push(KeptConnection::open(answering.url(), &answering.token()?).await?);
    }
    let (mut open, mut sent) = (VecDeque::new(), HashMap::new());
    let mut processor = None;
    while sent.len() < permits.answered {
        let requested = permits.each * case.open - sent.len();
        while open.len() < case.open.min(requested) {
            open.push_back(next_approval(&mut listener).await?);
        }
        if processor.is_none() {
            processor = Some(Stopwatch::start()?);
        }
        let mut answers = JoinSet::new();
        for _ in 0..width.min(requested) {
            let (mut connection, approval): (KeptConnection, Value) =
                idle.pop().zip(open.pop_front()).context("one is open")?;
            answers.spawn(async move {
                let at = now_ns();
                let allow = json!({"approval_id": approval["id"], "approve": true});
                connection.call("loopback.respond", allow).await?;
                anyhow::Ok((connection, approval["tool_use_id"].as_str().unwrap_or_default().to_owned(), at))
            });
        }
        while let Some(answer) = answers.join_next().await {
            let (connection, tool_use_id, at) = answer??;
            idle.push(connection);
            sent.insert(tool_use_id, at);
        }
    }
    Ok(Answered { sent, processor: processor.context("an answer was sent")? })
}

/// The parameters of a child with this many permits.
pub(crate) fn child_params(name: &str, dir: &Path, permits: usize) -> Value {
    let step = |number| json!({"tool": "Step", "input": {"number": number}});
    let steps: Vec<Value> = (0..permits).map(step).collect();
    json!({
        "name": name, "working_dir": dir.join("work"), "prompt": json!({"steps": steps}).to_string(),
    })
}

/// The time from each answer to its tool, from the log of the agents.
fn waits_in_log(dir: &Path, sent: &HashMap<String, u64>) -> anyhow::Result<Vec<Duration>> {
    let mut waits = Vec::new();
    for line in std::fs::read_to_string(dir.join(bench_dir::LOG))?.lines() {
        let ran: Value = serde_json::from_str(line)?;
        if let Some(sent) = sent.get(ran["tool_use_id"].as_str().unwrap_or_default()) {
            let released = ran["at_ns"].as_u64().context("the agent notes the time")?;
            waits.push(Duration::from_nanos(released.saturating_sub(*sent)));
        }
    }
    ensure!(waits.len() == sent.len(), "only {} of {} permits ran", waits.len(), sent.len());
    Ok(waits)
}

/// The waits under a supervisor that looks for the answer once a second: from `respond` until the supervisor finds the decision, in the same
/// store.
async fn polled(permits: usize) -> anyhow::Result<Vec<Duration>> {
    progress("a poll once a second");
    let dir = bench_dir::on_a_disk()?;
    let hub = bench_dir::start_hub(dir.path(), "durability = \"full\"\n").await?;
    let mut listener = Listener::open(hub.url(), "/events", &hub.token()?, None).await?;
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    rpc.call("claudecode.create", child_params("child", dir.path(), permits)).await?;
    let mut waits = Vec::new();
    for number in 0..permits {
        let approval = next_approval(&mut listener).await?;
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        ticks.tick().await;
        // The answers are spread evenly over the second.
        tokio::time::sleep(Duration::from_secs(1) * (number as u32) / (permits as u32)).await;
        let sent = now_ns();
        rpc.call("loopback.respond", json!({"approval_id": approval["id"], "approve": true})).await?;
        loop {
            ticks.tick().await;
            let found = rpc.call("loopback.get", json!({"approval_id": approval["id"]})).await?;
            if found["approval"]["status"] != "pending" {
                break;
            }
        }
        waits.push(Duration::from_nanos(now_ns() - sent));
    }
    Ok(waits)
}
