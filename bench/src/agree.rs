//! Compares several runs of the same benchmarks: whether their results differ by no more than the noise that the runs state. The noise of a
//! goal is the largest range between the rounds of one run, and at least 10 %. For a result that is not a ratio, the change of the machine's speed
//! between the runs is added.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::report::{Goal, Report, shown};

#[derive(Args)]
pub(crate) struct AgreeArgs {
    /// The directories with the results of each run
    #[arg(required = true, num_args = 2..)]
    runs: Vec<PathBuf>,
}

/// The least noise, as a part of the result. Rounds of one process share its memory layout; processes of the same program do not.
const LEAST_NOISE: f64 = 0.1;

/// The goals of all runs, by benchmark and goal.
type Goals = BTreeMap<(String, String), Vec<Goal>>;

/// The speeds of the machine in all runs, by benchmark.
type Speeds = BTreeMap<String, Vec<f64>>;

#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
pub(crate) fn run(args: &AgreeArgs) -> anyhow::Result<ExitCode> {
    let (mut goals, mut speeds) = (Goals::new(), Speeds::new());
    for run in &args.runs {
        for report in reports(run)? {
            speeds.entry(report.benchmark.clone()).or_default().extend(mean(&report.machine.speeds));
            for goal in report.goals {
                goals.entry((report.benchmark.clone(), goal.what.clone())).or_default().push(goal);
            }
        }
    }
    let mut code = ExitCode::SUCCESS;
    println!("{} runs: results, their difference, the noise", args.runs.len());
    for ((benchmark, what), goals) in &goals {
        let values: Vec<String> = goals.iter().map(|goal| shown(goal.value)).collect();
        let slowdown = speeds.get(benchmark).map_or(0.0, |speeds| change(speeds));
        let (difference, noise) = (difference(goals), noise(goals, slowdown));
        let agreement = match noise {
            _ if goals.len() < args.runs.len() => {
                code = ExitCode::FAILURE;
                "missing in a run"
            }
            noise if difference <= noise => "agree",
            _ => {
                code = ExitCode::FAILURE;
                "DIFFER"
            }
        };
        println!(
            "  {benchmark}: {what}: {} {}; {} %, {} %: {agreement}",
            values.join(", "),
            goals.first().map_or("", |goal| &goal.unit),
            in_percent(difference, goals),
            in_percent(noise, goals),
        );
    }
    Ok(code)
}

/// Compared with the smallest result.
fn in_percent(difference: f64, goals: &[Goal]) -> String {
    let least = goals.iter().map(|goal| goal.value).fold(f64::INFINITY, f64::min);
    format!("{:.0}", difference / least * 100.0)
}

fn reports(dir: &Path) -> anyhow::Result<Vec<Report>> {
    let mut reports = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        reports.push(serde_json::from_str(&text).with_context(|| path.display().to_string())?);
    }
    ensure!(!reports.is_empty(), "{} has no results", dir.display());
    Ok(reports)
}

/// The difference between the largest and the smallest result.
fn difference(goals: &[Goal]) -> f64 {
    let values = || goals.iter().map(|goal| goal.value);
    values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
}

/// The largest range between the rounds of one run, or the least noise. A run with one round has the least noise. `slowdown` is the change of the
/// machine's speed between the runs, as a part; a ratio does not depend on it.
fn noise(goals: &[Goal], slowdown: f64) -> f64 {
    let of_run = |goal: &Goal| {
        let of_rounds = goal.range.map_or(0.0, |(from, to)| to - from).max(goal.value * LEAST_NOISE);
        of_rounds + if goal.unit == "×" { 0.0 } else { goal.value * slowdown }
    };
    goals.iter().map(of_run).fold(0.0, f64::max)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The difference between the largest and the smallest value, as a part of the smallest.
fn change(values: &[f64]) -> f64 {
    let (least, most) = values
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(*value), most.max(*value)));
    if values.is_empty() { 0.0 } else { (most - least) / least }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Threshold;

    fn goal(value: f64, range: Option<(f64, f64)>) -> Goal {
        Goal { what: "a".to_owned(), unit: "ms".to_owned(), value, range, limit: Threshold::None }
    }

    #[test]
    fn the_noise_is_the_widest_range_of_a_run() {
        let goals = [goal(1.0, Some((0.9, 1.25))), goal(1.5, Some((1.4, 1.5))), goal(1.25, None)];
        assert_eq!(difference(&goals), 0.5);
        assert_eq!(noise(&goals, 0.0), 1.25 - 0.9);
        assert_eq!(noise(&goals[2..], 0.0), 1.25 * 0.1);
    }

    #[test]
    fn the_noise_is_at_least_10_percent() {
        assert_eq!(noise(&[goal(2.0, Some((1.99, 2.01)))], 0.0), 0.2);
    }

    #[test]
    fn a_slower_machine_adds_noise_to_all_but_ratios() {
        let ratio = Goal { unit: "×".to_owned(), ..goal(2.0, None) };
        assert_eq!(noise(&[ratio], change(&[100.0, 150.0])), 0.2);
        assert_eq!(noise(&[goal(2.0, None)], change(&[100.0, 150.0])), 1.2);
        assert_eq!(change(&[]), 0.0);
    }
}
