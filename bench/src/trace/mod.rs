//! Where the time of one tool call goes. A hub runs with timing marks (`plexus_agent::TIMING`), and a scripted agent makes one call at a
//! time. `calls` runs the calls, `run_files` and `marks` read what hub and keeper wrote about them, `paths` splits each call into stages, and
//! `waterfall` draws the stages. A second hub without marks shows how much the marks themselves cost.

mod calls;
mod marks;
mod paths;
mod run_files;
mod waterfall;

use std::process::ExitCode;

use clap::Args;

use self::calls::Marks;
use self::paths::{Path, Stage, Stages};
use crate::report::{Report, median_of, progress};

#[derive(Args)]
pub(crate) struct TraceArgs {
    /// Calls of each kind, per round
    #[arg(long, default_value_t = 200)]
    calls: usize,

    /// Number of rounds, each with two new hubs
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// The stages of one path, over all calls.
struct Traced {
    path: Path,
    /// For each stage, its time in each call, in microseconds.
    stages: Vec<(Stage, Vec<f64>)>,
    totals: Vec<f64>,
    /// The total times of a hub without marks.
    without_marks: Vec<f64>,
}

pub(crate) async fn run(args: &TraceArgs) -> anyhow::Result<ExitCode> {
    let mut traced = Path::ALL.map(Traced::new);
    for round in 0..args.rounds {
        progress(&format!("round {} of {}", round + 1, args.rounds));
        for call in calls::run(Marks::On, args.calls).await? {
            for of_path in traced.iter_mut().filter(|of_path| of_path.path.is_of(&call)) {
                of_path.add(&of_path.path.stages(&call)?);
            }
        }
        for call in calls::run(Marks::Off, args.calls).await? {
            for of_path in traced.iter_mut().filter(|of_path| of_path.path.is_of(&call)) {
                of_path.without_marks.push(micros(of_path.path.total(&call)));
            }
        }
    }
    report(&traced)
}

impl Traced {
    fn new(path: Path) -> Self {
        Self { path, stages: Vec::new(), totals: Vec::new(), without_marks: Vec::new() }
    }

    fn add(&mut self, stages: &Stages) {
        if self.stages.is_empty() {
            self.stages = stages.lengths().map(|(stage, _)| (stage, Vec::new())).collect();
        }
        for ((_, times), (_, length)) in self.stages.iter_mut().zip(stages.lengths()) {
            times.push(micros(length));
        }
        self.totals.push(micros(stages.total()));
    }

    /// The sum of the medians of all stages. A median is less sensitive than a sum to a call that another process delayed.
    fn sum_of_medians(&self) -> f64 {
        self.stages.iter().map(|(_, times)| median_of(times)).sum()
    }

    /// The part of this sum that a stage is, in percent.
    fn share(&self, times: &[f64]) -> f64 {
        median_of(times) / self.sum_of_medians() * 100.0
    }
}

fn report(traced: &[Traced]) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(
        "trace",
        "The stages of a tool call with a scripted agent, one call at a time, every decision on disk",
        "the agent's own work, and the time in which a person decides. An approval is requested after the gate has seen the call, which \
         costs about as much as a call that a rule allows. The marks cost time themselves: each total is also measured without marks. \
         The stages of each call add up to its total, which the run checks. A share is of the sum of the medians.",
    );
    for of_path in traced {
        let path = of_path.path.name();
        for (stage, times) in &of_path.stages {
            report.share(format!("{path}: {}", stage.name), "µs", times, of_path.share(times));
        }
        report.values(format!("{path}: total"), "µs", &of_path.totals);
        report.values(format!("{path}: total, marks off"), "µs", &of_path.without_marks).baseline();
    }
    let svg = waterfall::draw(&report.measures, traced);
    report.finish_with(&svg)
}

fn micros(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1000.0
}
