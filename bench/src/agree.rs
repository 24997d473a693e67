//! Compares several runs of the same benchmarks: whether their results differ by no more than the stated noise (`noise.rs`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::noise::Noise;
use crate::report::{Goal, Report, shown};

#[derive(Args)]
pub(crate) struct AgreeArgs {
    /// The directories with the results of each run
    #[arg(required = true, num_args = 2..)]
    runs: Vec<PathBuf>,
}

/// The goals of all runs, by benchmark and goal.
type Goals = BTreeMap<(String, String), Vec<Goal>>;

#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
pub(crate) fn run(args: &AgreeArgs) -> anyhow::Result<ExitCode> {
    let mut goals = Goals::new();
    for run in &args.runs {
        for report in reports(run)? {
            for goal in report.goals {
                goals.entry((report.benchmark.clone(), goal.what.clone())).or_default().push(goal);
            }
        }
    }
    println!("{} runs: results, difference, allowed noise", args.runs.len());
    let mut failures = 0;
    for ((benchmark, what), goals) in &goals {
        let Some(first) = goals.first() else { continue };
        let values: Vec<f64> = goals.iter().map(|goal| goal.value).collect();
        let (difference, noise) = (difference(&values), Noise::of(first).part());
        let agreement = match () {
            () if goals.len() < args.runs.len() => "missing in a run",
            () if difference <= noise => "agree",
            () => "DIFFER",
        };
        failures += usize::from(agreement != "agree");
        println!(
            "  {benchmark}: {what}: {} {}; difference {:.0} %, allowed {:.0} %: {agreement}",
            values.iter().map(|value| shown(*value)).collect::<Vec<_>>().join(", "),
            first.unit,
            difference * 100.0,
            noise * 100.0,
        );
    }
    println!("{} of {} results agree", goals.len() - failures, goals.len());
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

/// The difference between the largest and the smallest result, as a part of the smallest.
fn difference(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (most - least) / least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_a_part_of_the_smallest_result() {
        assert_eq!(difference(&[2.0, 3.0, 2.5]), 0.5);
        assert_eq!(difference(&[2.0]), 0.0);
    }

    #[test]
    fn a_result_of_zero_agrees_with_no_other() {
        assert!(difference(&[0.0, 1.0]) > 100.0, "a result of zero");
    }
}
