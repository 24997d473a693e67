//! Hubs that share a PostgreSQL server: how long a child waits after an answer on another host, how one hub on PostgreSQL compares with SQLite, and how
//! many decisions eight hubs make per second. The server syncs every commit, on the same disk as SQLite.

mod decisions;
mod machines;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use decisions::AnsweredOn;
use machines::{Machine, Machines};

use crate::figures::Figures;
use crate::permit::waits_of_one_answered_on;
use crate::report::{Report, Threshold, median_of, progress, shown};

#[derive(Args)]
pub(crate) struct FleetArgs {
    /// Answers per row
    #[arg(long, default_value_t = 600)]
    answers: usize,

    /// Decisions per round
    #[arg(long, default_value_t = 4000)]
    decisions: usize,

    /// Concurrent clients
    #[arg(long, default_value_t = 64)]
    clients: usize,

    /// Hubs that decide at the same time
    #[arg(long, default_value_t = 8)]
    hubs: usize,

    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// Only measure the decisions per second
    #[arg(long)]
    only_decisions: bool,
}

/// The waiting times of each round.
#[derive(Default)]
struct Waits {
    sqlite: Vec<Vec<Duration>>,
    one_hub: Vec<Vec<Duration>>,
    own_host: Vec<Vec<Duration>>,
    other_host: Vec<Vec<Duration>>,
}

pub(crate) async fn run(args: &FleetArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(
        "fleet",
        "From `respond` until the agent starts the tool, and decisions per second, with hubs that share a PostgreSQL server",
        "a network: hubs, server, agents and clients share the machine's cores and its disk, which a real fleet does not. An agent waits for one \
         approval at a time. In the decisions per second, one client listens to the approvals of all hosts, as an open console does.",
    );
    if !args.only_decisions {
        measure_answers(&mut report, args).await?;
    }
    measure_decisions(&mut report, args).await?;
    report.finish()
}

async fn measure_answers(report: &mut Report, args: &FleetArgs) -> anyhow::Result<()> {
    let mut waits = Waits::default();
    let answers = args.answers / args.rounds;
    for round in 0..args.rounds {
        progress(&format!("round {} of {}: answers", round + 1, args.rounds));
        let alone = Machine::with_sqlite().await?;
        waits.sqlite.push(waits_on(&alone, &alone, answers).await?);
        let one = Machines::start(1).await?;
        waits.one_hub.push(waits_on(&one.all[0], &one.all[0], answers).await?);
        let three = Machines::start(3).await?;
        waits.own_host.push(waits_on(&three.all[1], &three.all[1], answers).await?);
        waits.other_host.push(waits_on(&three.all[0], &three.all[2], answers).await?);
    }
    let rows = [
        ("SQLite", &waits.sqlite),
        ("PostgreSQL, one hub", &waits.one_hub),
        ("PostgreSQL, three hubs, answered on its own host", &waits.own_host),
        ("PostgreSQL, three hubs, answered on another host", &waits.other_host),
    ];
    for (name, rounds) in rows {
        report.times(name, &Figures::of(rounds.concat()));
    }
    let ratios: Vec<f64> =
        p50_ms(&waits.one_hub).iter().zip(p50_ms(&waits.sqlite)).map(|(pg, sqlite)| pg / sqlite).collect();
    report.goal("one hub on PostgreSQL compared with SQLite", "×", &ratios, Threshold::AtMost(3.0));
    report.goal("answered on another host, p50", "ms", &p50_ms(&waits.other_host), Threshold::AtMost(10.0));
    let p99: Vec<f64> = waits.other_host.iter().map(|times| ms(Figures::of(times.clone()).p99)).collect();
    report.goal("answered on another host, p99", "ms", &p99, Threshold::AtMost(50.0));
    Ok(())
}

async fn measure_decisions(report: &mut Report, args: &FleetArgs) -> anyhow::Result<()> {
    let (mut rates, mut processor_ms) = ([Vec::new(), Vec::new()], Vec::new());
    for round in 0..args.rounds {
        for (place, rates) in [AnsweredOn::OwnHost, AnsweredOn::FirstHost].into_iter().zip(&mut rates) {
            progress(&format!("round {} of {}: decisions, {place:?}", round + 1, args.rounds));
            let machines = Machines::start(args.hubs).await?;
            let measured = decisions::measure(&machines, place, args.clients, args.decisions).await?;
            rates.push(measured.rate);
            if place == AnsweredOn::OwnHost {
                processor_ms.push(measured.processor_ms);
            }
        }
    }
    let [own, first] = rates;
    let name = format!("decisions of {} hubs", args.hubs);
    report.values(name.clone(), "/s", &own);
    report.goal(name.clone(), "/s", &own, Threshold::AtLeast(1000.0));
    let all_on_first = format!("{name}, all answered on one of them");
    report.values(all_on_first.clone(), "/s", &first);
    report.goal(all_on_first, "/s", &first, Threshold::None);
    report.values("processor time per decision", "ms", &processor_ms);
    let (time, cores) = (median_of(&processor_ms), report.machine.cores);
    let text = format!(
        "{name}: a decision takes {} ms of processor time in clients, hubs and PostgreSQL together (`/proc/stat`), so {cores} fully busy cores could make {} \
         decisions per second.",
        shown(time),
        shown(cores as f64 * 1000.0 / time),
    );
    report.limit_of(&name, text);
    Ok(())
}

/// The waiting times of a child on machine `child` whose approvals are answered on machine `answering`.
async fn waits_on(answering: &Machine, child: &Machine, answers: usize) -> anyhow::Result<Vec<Duration>> {
    // Names are unique among all hosts.
    let name = format!("child-of-{}", child.name);
    waits_of_one_answered_on(&answering.hub, &child.hub, child.dir.path(), &name, answers).await
}

fn p50_ms(rounds: &[Vec<Duration>]) -> Vec<f64> {
    rounds.iter().map(|times| ms(Figures::of(times.clone()).p50)).collect()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
