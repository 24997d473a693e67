//! The result of a benchmark: rows of figures, and goals that compare them. A report is printed for people, written to `bench/results/` as
//! JSON and drawn to `docs/benchmarks/` as SVG. A benchmark fails if it misses a goal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::figures::{Figures, percentile};
use crate::machine::Machine;
use crate::{plot, profiler};

/// A directory for a second copy of the results. `plexus-bench agree` compares such directories.
const COPIES: &str = "PLEXUS_BENCH_COPIES";
/// Set for a run with the arguments of a complete run. The results of other runs are only printed.
const PUBLISH: &str = "PLEXUS_BENCH_PUBLISH";
/// The exit code of a benchmark that misses a goal. One that fails ends with 1, and one with wrong arguments with 2.
const MISSED: u8 = 3;

/// The results of one benchmark.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The name of the benchmark, as in `cargo xtask bench NAME`.
    pub(crate) benchmark: String,
    /// The command that repeats this run.
    pub(crate) command: String,
    /// What was measured, in one sentence.
    pub(crate) measures: String,
    /// What the figures do not include.
    pub(crate) leaves_out: String,
    pub(crate) machine: Machine,
    /// The programs that were measured, and their versions.
    pub(crate) versions: Vec<(String, String)>,
    /// The seed of the random choices; 0 if there are none.
    pub(crate) seed: u64,
    pub(crate) rows: Vec<Row>,
    pub(crate) goals: Vec<Goal>,
    /// What keeps a goal out of reach, and how that was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) limits: Vec<String>,
}

/// Figures of one thing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    /// The number of measurements.
    pub(crate) count: usize,
    /// The part of a total that this row is, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) share: Option<f64>,
    /// Whether this is what Plexus is compared with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) baseline: bool,
}

/// A value that must not be larger, or not smaller, than a limit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Goal {
    pub(crate) what: String,
    pub(crate) unit: String,
    pub(crate) value: f64,
    /// The smallest and the largest value of a round, if there are several rounds.
    pub(crate) range: Option<(f64, f64)>,
    pub(crate) limit: Threshold,
}

/// What the value of a goal must be.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Threshold {
    AtMost(f64),
    AtLeast(f64),
    /// There is no goal for this value.
    None,
}

impl Report {
    /// An empty report about this benchmark on this machine.
    pub(crate) fn new(benchmark: &str, measures: &str, leaves_out: &str) -> Self {
        let quoted = |argument: String| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/".contains(c);
            if argument.chars().all(is_plain) { argument } else { format!("'{argument}'") }
        };
        let arguments: Vec<String> = std::env::args().skip(2).map(quoted).collect();
        let dashes = if arguments.is_empty() { "" } else { " -- " };
        Self {
            benchmark: benchmark.to_owned(),
            command: format!("cargo xtask bench {benchmark}{dashes}{}", arguments.join(" ")),
            measures: measures.to_owned(),
            leaves_out: leaves_out.to_owned(),
            machine: Machine::this(),
            versions: vec![("Plexus".to_owned(), crate::machine::plexus_version())],
            seed: 0,
            rows: Vec::new(),
            goals: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// Adds durations.
    pub(crate) fn times(&mut self, name: impl Into<String>, figures: &Figures) -> &mut Row {
        let [p50, p90, p99] = [figures.p50, figures.p90, figures.p99].map(|time| time.as_secs_f64() * 1000.0);
        let (name, unit) = (name.into(), "ms".to_owned());
        self.add(Row { name, unit, p50, p90, p99, count: figures.count, share: None, baseline: false })
    }

    /// Adds values of another unit.
    pub(crate) fn values(&mut self, name: impl Into<String>, unit: &str, values: &[f64]) -> &mut Row {
        self.add(Row::of(name.into(), unit, values))
    }

    /// Adds values that are this part of a total, in percent.
    pub(crate) fn share(&mut self, name: impl Into<String>, unit: &str, values: &[f64], share: f64) {
        self.add(Row { share: Some(share), ..Row::of(name.into(), unit, values) });
    }

    fn add(&mut self, row: Row) -> &mut Row {
        let at = self.rows.len();
        self.rows.push(row);
        &mut self.rows[at]
    }

    /// Adds a goal for the median of these values, one per round.
    pub(crate) fn goal(&mut self, what: impl Into<String>, unit: &str, rounds: &[f64], limit: Threshold) {
        let least = rounds.iter().copied().reduce(f64::min);
        let most = rounds.iter().copied().reduce(f64::max);
        let range = least.zip(most).filter(|_| rounds.len() > 1);
        let value = median_of(rounds);
        self.goals.push(Goal { what: what.into(), unit: unit.to_owned(), value, range, limit });
    }

    /// Adds a text about the goals whose names contain `goals`, if one of them is missed: what limits it, and how that was found.
    pub(crate) fn limit_of(&mut self, goals: &str, text: impl Into<String>) {
        if self.goals.iter().any(|goal| goal.what.contains(goals) && !goal.is_reached()) {
            self.limits.push(text.into());
        }
    }

    /// Prints the report, writes its files, and fails if a goal is missed.
    pub(crate) fn finish(self) -> anyhow::Result<ExitCode> {
        let svg = plot::bars(&self);
        self.finish_with(&svg)
    }

    /// The same with another picture.
    pub(crate) fn finish_with(self, svg: &str) -> anyhow::Result<ExitCode> {
        self.print();
        if profiler::is_on() {
            return Ok(ExitCode::SUCCESS);
        }
        let json = serde_json::to_string_pretty(&self)? + "\n";
        let name = &self.benchmark;
        if let Some(copies) = std::env::var_os(COPIES).map(PathBuf::from) {
            write(&copies.join(format!("{name}.json")), &json)?;
        }
        if std::env::var_os(PUBLISH).is_some() {
            write(&root().join(format!("bench/results/{name}.json")), &json)?;
            write(&root().join(format!("docs/benchmarks/{name}.svg")), svg)?;
        } else {
            progress("these results are not published: a complete run has other arguments");
        }
        Ok(if self.goals.iter().all(Goal::is_reached) { ExitCode::SUCCESS } else { MISSED.into() })
    }

    #[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
    fn print(&self) {
        println!("{}", self.measures);
        let width = self.rows.iter().map(|row| row.name.chars().count()).fold(44, usize::max);
        println!("  {:width$} {:>11} {:>11} {:>11} {:>8}", "", "p50", "p90", "p99", "count");
        for Row { name, unit, p50, p90, p99, count, share, .. } in &self.rows {
            let [p50, p90, p99] = [p50, p90, p99].map(|value| shown(*value));
            let share = share.map(|share| format!("   {share:.1} %")).unwrap_or_default();
            println!("  {name:width$} {p50:>11} {p90:>11} {p99:>11} {count:>8}   {unit}{share}");
        }
        for goal in &self.goals {
            println!("  {goal}");
        }
        for limit in &self.limits {
            println!("  limit: {limit}");
        }
        println!("  not included: {}", self.leaves_out);
    }
}

impl Row {
    fn of(name: String, unit: &str, values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |percent: usize| percentile(&sorted, percent);
        let [p50, p90, p99] = [50, 90, 99].map(at);
        let unit = unit.to_owned();
        Self { name, unit, p50, p90, p99, count: values.len(), share: None, baseline: false }
    }

    /// Marks this row as what Plexus is compared with.
    pub(crate) fn baseline(&mut self) {
        self.baseline = true;
    }
}

impl Goal {
    pub(crate) fn is_reached(&self) -> bool {
        match self.limit {
            Threshold::AtMost(limit) => self.value <= limit,
            Threshold::AtLeast(limit) => self.value >= limit,
            Threshold::None => true,
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} {}", self.what, shown(self.value), self.unit)?;
        if let Some((from, to)) = self.range {
            write!(f, " (rounds: {} to {})", shown(from), shown(to))?;
        }
        let missed = if self.is_reached() { "" } else { ", missed" };
        match self.limit {
            Threshold::AtMost(limit) => write!(f, "; goal: at most {}{missed}", shown(limit)),
            Threshold::AtLeast(limit) => write!(f, "; goal: at least {}{missed}", shown(limit)),
            Threshold::None => Ok(()),
        }
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let written =
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, text));
    written.with_context(|| path.display().to_string())
}

/// Prints what a long benchmark is doing.
#[expect(clippy::print_stderr, reason = "a benchmark shows its progress")]
pub(crate) fn progress(what: &str) {
    eprintln!("bench: {what}");
}

/// The root directory of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(1).map(Path::to_owned).unwrap_or_default()
}

/// The median of values in any order.
pub(crate) fn median_of(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median(&sorted)
}

/// The middle value, or the mean of the two middle ones.
fn median(sorted: &[f64]) -> f64 {
    let upper = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let lower = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default();
    f64::midpoint(lower, upper)
}

/// A number with about three significant digits.
pub(crate) fn shown(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        10.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(value: f64, limit: Threshold) -> Goal {
        Goal { what: "a".to_owned(), unit: "×".to_owned(), value, range: None, limit }
    }

    #[test]
    fn the_median_of_two_is_their_mean() {
        assert_eq!([median(&[1.0, 3.0]), median(&[1.0, 2.0, 9.0]), median(&[])], [2.0, 2.0, 0.0]);
    }

    #[test]
    fn a_goal_is_reached_at_its_limit() {
        assert!(goal(2.0, Threshold::AtMost(2.0)).is_reached());
        assert!(!goal(2.1, Threshold::AtMost(2.0)).is_reached());
        assert!(goal(2.0, Threshold::AtLeast(2.0)).is_reached());
        assert!(!goal(1.9, Threshold::AtLeast(2.0)).is_reached());
        assert!(goal(9.0, Threshold::None).is_reached());
    }

    #[test]
    fn only_a_missed_goal_has_a_limit() {
        let mut report = Report::new("name", "measures", "leaves out");
        report.goal("a", "×", &[2.0], Threshold::AtMost(2.0));
        report.limit_of("a", "a reached goal");
        report.goal("b, full", "×", &[2.1], Threshold::AtMost(2.0));
        report.limit_of("b", "a missed goal");
        assert_eq!(report.limits, ["a missed goal"]);
    }

    #[test]
    fn a_missed_goal_says_so() {
        assert_eq!(goal(2.1, Threshold::AtMost(2.0)).to_string(), "a: 2.100 ×; goal: at most 2.000, missed");
    }
}
