//! Decisions per second with many concurrent clients: an approval is requested, decided and released, every step durable. In the process,
//! the approval book is called directly. Over HTTP, agents request permits and deciders answer them, each on a connection of its own.

mod in_process;
pub(crate) mod over_http;

use std::process::ExitCode;

use clap::Args;
use plexus_store::Durability;

use crate::bench_dir::setting;
use crate::report::{Report, Threshold, median_of, progress, shown};

#[derive(Args)]
pub(crate) struct DecisionsArgs {
    /// Concurrent clients
    #[arg(long, default_value_t = 64)]
    clients: usize,

    /// Decisions per measurement; half as many over HTTP
    #[arg(long, default_value_t = 20_000)]
    decisions: usize,

    /// Number of alternations
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// Only measurements whose name contains this text, such as `over HTTP, full`
    #[arg(long)]
    only: Option<String>,
}

/// A measurement.
struct Measured {
    /// Decisions per second.
    rate: f64,
    /// The milliseconds of processor time per decision, in all processes together.
    processor_ms: f64,
}

/// The ways to decide, and their goals in decisions per second.
const IN_PROCESS: (&str, f64) = ("the approval book without a hub", 5_000.0);
const OVER_HTTP: (&str, f64) = ("over HTTP", 2_000.0);

pub(crate) async fn run(args: &DecisionsArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(
        "decisions",
        &format!(
            "Approvals per second with {} clients: requested, decided and returned to the client, with every step stored",
            args.clients
        ),
        "child processes and the gate. Over HTTP, a client is a pair of agents: one requests approvals, the other decides them. Clients and hub share the \
         machine's cores.",
    );
    let mut measured = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    let wants = |name: &str, durability| {
        let name = format!("{name}, {}", setting(durability));
        args.only.as_ref().is_none_or(|only| name.contains(only))
    };
    for round in 0..args.rounds {
        for (at, durability) in [Durability::Full, Durability::Normal].into_iter().enumerate() {
            progress(&format!("round {} of {}: {}", round + 1, args.rounds, setting(durability)));
            if wants(IN_PROCESS.0, durability) {
                measured[0][at].push(in_process::measure(durability, args.clients, args.decisions).await?);
            }
            if wants(OVER_HTTP.0, durability) {
                measured[1][at].push(over_http::measure(durability, args.clients, args.decisions / 2).await?);
            }
        }
    }
    for ((name, goal), [full, normal]) in [IN_PROCESS, OVER_HTTP].into_iter().zip(&measured) {
        let rates = |measured: &[Measured]| measured.iter().map(|round| round.rate).collect::<Vec<f64>>();
        for (durability, rates) in [(Durability::Full, rates(full)), (Durability::Normal, rates(normal))] {
            if rates.is_empty() {
                continue;
            }
            report.values(format!("{name}, {}", setting(durability)), "/s", &rates);
            report.goal(format!("{name}, {}", setting(durability)), "/s", &rates, Threshold::AtLeast(goal));
        }
        let ratios: Vec<f64> =
            full.iter().zip(normal).map(|(full, normal)| full.rate / normal.rate).collect();
        if ratios.is_empty() {
            continue;
        }
        report.goal(format!("{name}, full compared with normal"), "×", &ratios, Threshold::AtLeast(0.8));
        let times: Vec<f64> = full.iter().map(|round| round.processor_ms).collect();
        report.values(format!("processor time per decision, {name}"), "ms", &times);
        let (time, cores) = (median_of(&times), report.machine.cores);
        let most = cores as f64 * 1000.0 / time;
        let text = format!(
            "{name}: a decision takes {} ms of processor time in all threads and processes together (`/proc/stat`), so {cores} fully busy cores could \
             make {} decisions per second. The cores are busy for {:.0} % of the time. A decision takes three commits, one after the other, and one thread makes all commits.",
            shown(time),
            shown(most),
            median_of(&rates(full)) / most * 100.0,
        );
        report.limit_of(name, text);
    }
    report.finish()
}
