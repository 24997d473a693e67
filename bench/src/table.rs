//! Writes the results of all benchmarks into `docs/benchmarks.md`, between two marks.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::noise::Noise;
use crate::report::{Goal, Report, Row, Threshold, root, shown};

const START: &str = "<!-- results: written by `cargo xtask bench` -->\n";
const END: &str = "<!-- end of results -->\n";

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let file = root().join("docs/benchmarks.md");
    let page = std::fs::read_to_string(&file)?;
    std::fs::write(file, with_results(&page)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The page with the results that are stored.
fn with_results(page: &str) -> anyhow::Result<String> {
    let mut reports = Vec::new();
    for entry in std::fs::read_dir(root().join("bench/results")).context("bench/results")? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        let report: Report = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        reports.push(report);
    }
    reports.sort_by(|a, b| a.benchmark.cmp(&b.benchmark));
    let (before, rest) = page.split_once(START).context("docs/benchmarks.md has no mark for the results")?;
    let (_, after) = rest.split_once(END).context("docs/benchmarks.md has no mark after the results")?;
    Ok(format!("{before}{START}{}{END}{after}", sections(&reports)))
}

/// One section for each report.
fn sections(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n### `{}`\n\n{}. Not included: {}\n\n![{}](benchmarks/{}.svg)\n\n",
            report.benchmark,
            report.measures,
            report.leaves_out.trim_end_matches('.').to_owned() + ".",
            report.benchmark,
            report.benchmark,
        );
        text += &if report.goals.is_empty() { rows(report) } else { goals(report) };
        for limit in &report.limits {
            let _ = write!(text, "\nLimit: {limit}\n");
        }
        let machine = &report.machine;
        let versions: Vec<String> =
            report.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let _ = write!(
            text,
            "\n`{}` on {} ({} cores, {} GiB, {}, Linux {}); {}, {}.\n",
            report.command.trim_end(),
            machine.processor,
            machine.cores,
            machine.memory_gib,
            machine.disk,
            machine.kernel,
            versions.join(", "),
            machine.compiler,
        );
    }
    text + "\n"
}

fn goals(report: &Report) -> String {
    let mut text = "| goal | measured | noise | to reach |\n|---|---|---|---|\n".to_owned();
    for goal in &report.goals {
        let noise = Noise::of(goal).part() * 100.0;
        let _ = writeln!(text, "| {} | {} | {noise:.0} % | {} |", goal.what, measured(goal), limit(goal));
    }
    text
}

/// The figures of a report without goals.
fn rows(report: &Report) -> String {
    let mut text = "| | p50 | p99 | share |\n|---|---|---|---|\n".to_owned();
    for Row { name, unit, p50, p99, share, .. } in &report.rows {
        let share = share.map(|share| format!("{share:.1} %")).unwrap_or_default();
        let _ = writeln!(text, "| {name} | {} {unit} | {} {unit} | {share} |", shown(*p50), shown(*p99));
    }
    text
}

fn measured(goal: &Goal) -> String {
    let range = goal.range.map(|(from, to)| format!(" ({} to {})", shown(from), shown(to)));
    format!("{} {}{}", shown(goal.value), goal.unit, range.unwrap_or_default())
}

fn limit(goal: &Goal) -> String {
    let missed = if goal.is_reached() { "" } else { ", missed" };
    match goal.limit {
        Threshold::AtMost(limit) => format!("at most {}{missed}", shown(limit)),
        Threshold::AtLeast(limit) => format!("at least {}{missed}", shown(limit)),
        Threshold::None => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_stored_figures() -> anyhow::Result<()> {
        let readme = std::fs::read_to_string(root().join("README.md"))?;
        let row = |name: &str| {
            let command = format!("`cargo xtask bench {name}`");
            readme.lines().find(|line| line.contains(&command)).context(command)
        };
        let value = |name: &str, goal: &str| -> anyhow::Result<f64> {
            let text = std::fs::read_to_string(root().join(format!("bench/results/{name}.json")))?;
            let report: Report = serde_json::from_str(&text)?;
            let goal = report.goals.iter().find(|known| known.what == goal).context(goal.to_owned())?;
            Ok(goal.value)
        };
        let call = value("tool-call", "Plexus, control, full, compared with instant host")?;
        let permit = value("permit", "Plexus, full, 1 open, p50")?;
        let start = value("start", "p50, empty data directory")?;
        let memory = value("start", "idle memory, empty data directory")?;
        let parent = value("parent-cost", "wait: tokens read, compared with the output")?;
        for (name, figure) in [
            ("tool-call", format!("| {call:.2} × |")),
            ("permit", format!("| {permit:.1} ms |")),
            ("start", format!("| {start:.0} ms, {memory:.0} MiB |")),
            ("parent-cost", format!("| {parent:.0} % of the tokens |")),
        ] {
            assert!(row(name)?.contains(&figure), "{figure} is measured, but README.md has {}", row(name)?);
        }
        Ok(())
    }

    #[test]
    fn the_page_has_the_stored_results() -> anyhow::Result<()> {
        let page = std::fs::read_to_string(root().join("docs/benchmarks.md"))?;
        assert!(with_results(&page)? == page, "run `cargo run -p plexus-bench -- table`");
        Ok(())
    }
}
