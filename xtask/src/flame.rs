//! `cargo xtask flame`: runs a benchmark with symbols while `perf` records its hubs, and draws a flame graph of the recordings.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use inferno::collapse::Collapse as _;
use inferno::collapse::perf::Folder;
use inferno::flamegraph;

use crate::bench::{self, Profile};
use crate::workspace::{Workspace, run as run_command};

/// Frames that are narrower than this part of the picture, in percent, are left out. It keeps the files small.
const MIN_WIDTH: f64 = 0.3;

/// Draw where a hub spends processor time in a benchmark
///
/// Writes docs/benchmarks/flame-NAME.svg. Needs `perf`, and root to attach it to the hub.
#[derive(Debug, Args)]
pub struct FlameArgs {
    /// The benchmark
    #[arg(value_enum)]
    pub benchmark: Recorded,
}

/// The benchmarks that can be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Recorded {
    /// Tool calls of a real Claude Code that a rule allows
    ToolCall,
    /// Approvals requested, decided and released over HTTP
    Decisions,
}

impl Recorded {
    fn name(self) -> &'static str {
        match self {
            Self::ToolCall => "tool-call",
            Self::Decisions => "decisions",
        }
    }

    /// The arguments of a recorded run.
    fn args(self) -> &'static [&'static str] {
        match self {
            Self::ToolCall => &["--rounds", "1", "--only", "Plexus, control, full"],
            Self::Decisions => &["--rounds", "1", "--only", "over HTTP, full"],
        }
    }
}

/// Runs the command.
pub fn run(workspace: &Workspace, args: &FlameArgs) -> anyhow::Result<()> {
    let perf = Command::new("perf").arg("version").stdout(Stdio::null()).status();
    ensure!(
        perf.is_ok_and(|status| status.success()),
        "`perf` is not installed; on Debian, `apt-get install linux-perf` installs it"
    );
    bench::build_programs(workspace, Profile::Profiling)?;
    let recordings = tempfile::tempdir()?;
    let name = args.benchmark.name();
    let mut bench = bench::command(workspace, Profile::Profiling, name, args.benchmark.args())?;
    run_command(bench.env("PLEXUS_BENCH_PERF", recordings.path()))?;
    let file = workspace.root().join(format!("docs/benchmarks/flame-{name}.svg"));
    draw(&stacks(recordings.path())?, name, &file)?;
    println!("{}", file.display());
    Ok(())
}

/// The stacks of all recordings in a directory, one per line with its number of samples. A recording is named after the pid of its hub,
/// and also has samples of the processes that the hub started.
fn stacks(recordings: &Path) -> anyhow::Result<String> {
    let mut stacks = Vec::new();
    for recording in std::fs::read_dir(recordings)? {
        let recording = recording?.path();
        let mut script = Command::new("perf")
            .args(["script", "--pid"])
            .arg(recording.file_stem().context("a recording has a name")?)
            .arg("--input")
            .arg(&recording)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("perf script")?;
        let samples = script.stdout.take().context("perf script has no output")?;
        Folder::default().collapse(BufReader::new(samples), &mut stacks)?;
        ensure!(script.wait()?.success(), "perf script failed");
    }
    ensure!(!stacks.is_empty(), "perf recorded no samples of the hub");
    Ok(String::from_utf8_lossy(&stacks).into_owned())
}

fn draw(stacks: &str, name: &str, file: &Path) -> anyhow::Result<()> {
    let mut options = flamegraph::Options::default();
    options.title = format!("Processor time of the hub in `cargo xtask flame {name}`");
    options.min_width = MIN_WIDTH;
    options.hash = true;
    let svg = BufWriter::new(File::create(file).with_context(|| file.display().to_string())?);
    flamegraph::from_lines(&mut options, stacks.lines(), svg).context("flame graph")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_frames_are_left_out_of_the_picture() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("flame.svg");
        draw("hub;commit;sync 999\nhub;rare 1\n", "decisions", &file).unwrap();
        let svg = std::fs::read_to_string(file).unwrap();
        assert!(svg.contains("sync") && svg.contains("flame decisions"), "{svg}");
        assert!(!svg.contains("rare"), "{svg}");
    }
}
