//! Loading the web console on a hub with many open approvals and a session with many events: how soon Chromium paints, how long the page
//! blocks its main thread, and how much it transfers.

mod browser;
mod workload;

use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;

use crate::bench_dir;
use crate::console::browser::{Load, Page};
use crate::report::{Report, Threshold, progress};

/// The goals in milliseconds.
const PAINT: f64 = 150.0;
const LONGEST_TASK: f64 = 100.0;

#[derive(Args)]
pub(crate) struct ConsoleArgs {
    /// Open approvals
    #[arg(long, default_value_t = 500)]
    approvals: usize,

    /// Events of one session
    #[arg(long, default_value_t = 50_000)]
    events: usize,

    /// Loads of each page
    #[arg(long, default_value_t = 10)]
    rounds: usize,
}

pub(crate) async fn run(args: &ConsoleArgs) -> anyhow::Result<ExitCode> {
    ensure!(args.rounds > 0, "at least one round is needed");
    let dir = bench_dir::on_a_disk()?;
    let hub = bench_dir::start_hub(dir.path(), "durability = \"normal\"\n").await?;
    progress(&format!("creating {} approvals and {} events", args.approvals, args.events));
    let session = workload::create(&hub, dir.path(), args.approvals, args.events).await?;
    let approvals = args.approvals.to_string();
    let pages = [
        Page { name: "inbox", hash: "#/inbox".to_owned(), element: "[data-testid=shown]", shows: approvals },
        Page {
            name: "session",
            hash: format!("#/session/{session}"),
            element: "[role=list][aria-label^=Timeline]",
            shows: workload::LAST_TEXT.to_owned(),
        },
    ];
    progress(&format!("loading each page {} times", args.rounds * 2));
    let (chromium, loads) = browser::load(&hub, &dir.path().join("home"), &pages, args.rounds).await?;
    ensure!(loads.len() == args.rounds * pages.len(), "{} loads", loads.len());
    report(args, &chromium, &pages, &loads).finish()
}

fn report(args: &ConsoleArgs, chromium: &str, pages: &[Page], loads: &[Load]) -> Report {
    let mut report = Report::new(
        "console",
        &format!(
            "A reload of the signed-in console with {} open approvals and {} events in one session, with an empty HTTP cache",
            args.approvals, args.events
        ),
        "signing in, starting Chromium, and a network: browser and hub share the machine. The paint and the bytes are from one load, the tasks from \
         another that is traced. Both include the first second after the page shows its content.",
    );
    report.versions.push(("Chromium".to_owned(), chromium.to_owned()));
    for page in pages {
        let of = |value: fn(&Load) -> f64| -> Vec<f64> {
            loads.iter().filter(|load| load.page == page.name).map(value).collect()
        };
        let (paint, clock) = (of(|load| load.paint), of(|load| load.clock));
        report.values(format!("{}, first paint", page.name), "ms", &paint);
        report.values(format!("{}, content shown", page.name), "ms", &of(|load| load.content));
        report.values(format!("{}, longest task on the clock", page.name), "ms", &clock);
        report.values(format!("{}, longest task in CPU time", page.name), "ms", &of(|load| load.cpu));
        report.values(format!("{}, received", page.name), "bytes", &of(|load| load.bytes));
        report.goal(format!("{}, first paint", page.name), "ms", &paint, Threshold::AtMost(PAINT));
        report.goal(
            format!("{}, longest task on the clock", page.name),
            "ms",
            &clock,
            Threshold::AtMost(LONGEST_TASK),
        );
    }
    report
}
