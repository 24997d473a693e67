//! `cargo xtask bench`: runs the benchmarks of `plexus-bench` as a release build, with release builds of all
//! programs that they start, and writes their results to `bench/results/` and `docs/benchmarks.md`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::workspace::{Workspace, run as run_command};
use crate::{cache, packages, pinned, python_sdk};

/// All benchmarks, with the arguments of a complete run.
const ALL: &[&[&str]] = &[
    &["start"],
    &["tool-call"],
    &["tool-call", "--children", "8", "--calls", "30"],
    &["trace"],
    &["permit"],
    &["decisions"],
    &["events"],
    &["fan-out"],
    &["scale"],
    &["history"],
    &["parent-cost"],
    &["console"],
    &["arbor"],
    &["policy"],
    &["retention"],
    &["fleet"],
];

/// The exit code of a benchmark that misses a goal.
const MISSED: i32 = 3;

/// The benchmarks that compare Plexus with the Claude Agent SDKs.
const PEERS: &[&str] = &["tool-call", "events"];

/// The benchmarks that start the pinned Claude Code.
const CLAUDE: &[&str] = &["tool-call", "parent-cost"];

/// The benchmarks that open the console in a browser.
const BROWSER: &[&str] = &["console"];

/// Run one benchmark, or all, as a release build
///
/// Most benchmarks measure a baseline in the same run, because results of different machines cannot be compared. The
/// command fails if a goal is missed. Run it on a machine that does nothing else. `--repeat 3` runs it three times and
/// compares the runs. A run with the default arguments overwrites bench/results/NAME.json, docs/benchmarks/NAME.svg
/// and the results in docs/benchmarks.md; other runs only print their results.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Run this many times, and check that the results differ by no more than the noise that docs/benchmarks.md states
    #[arg(long, default_value_t = 1)]
    pub repeat: u32,

    /// Publish the results although the arguments are not those of a complete run
    #[arg(long)]
    pub publish: bool,

    /// The benchmark, such as `permit`; default: all of them, which takes about 25 minutes
    pub name: Option<String>,

    /// Arguments for the benchmark; `-- --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Runs the command. Of several benchmarks all run, even if one misses a goal.
pub fn run(workspace: &Workspace, args: &BenchArgs) -> anyhow::Result<()> {
    build_programs(workspace, Profile::Release)?;
    let own: Vec<&str> = args.args.iter().map(String::as_str).collect();
    let benchmarks: Vec<(&str, &[&str])> = match &args.name {
        Some(name) => vec![(name, &own)],
        None => ALL
            .iter()
            .filter_map(|benchmark| benchmark.split_first())
            .map(|(name, own)| (*name, own))
            .collect(),
    };
    let copies = tempfile::tempdir()?;
    let runs: Vec<PathBuf> = (1..=args.repeat).map(|number| copies.path().join(number.to_string())).collect();
    let (mut failed, mut missed) = (Vec::new(), Vec::new());
    for (name, own) in &benchmarks {
        // The runs of a benchmark follow each other: the speed of a machine may change within an hour.
        for run in &runs {
            let mut bench = command(workspace, Profile::Release, name, own)?;
            // Each benchmark writes a second copy of its results there.
            bench.env("PLEXUS_BENCH_COPIES", run);
            let has_published_arguments = ALL.iter().any(|known| known.split_first() == Some((name, *own)));
            if args.publish || has_published_arguments {
                bench.env("PLEXUS_BENCH_PUBLISH", "1");
            }
            let ended = bench.status().with_context(|| name.to_string())?;
            match ended.code() {
                Some(0) => {}
                Some(MISSED) if missed.contains(name) => {}
                Some(MISSED) => missed.push(*name),
                _ => failed.push(format!("{name}: {ended}")),
            }
        }
    }
    run_command(&mut command(workspace, Profile::Release, "table", &[])?)?;
    if args.repeat > 1 {
        let runs: Vec<&str> = runs.iter().filter_map(|run| run.to_str()).collect();
        if let Err(error) = run_command(&mut command(workspace, Profile::Release, "agree", &runs)?) {
            failed.push(format!("the runs do not agree: {error:#}"));
        }
    }
    ensure!(failed.is_empty(), "failed:\n{}", failed.join("\n"));
    ensure!(
        missed.is_empty(),
        "missed a goal: {}; docs/benchmarks.md states the limits that were found",
        missed.join(", ")
    );
    Ok(())
}

/// The profile of the programs that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As users install them.
    Release,
    /// The same with symbols.
    Profiling,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Profiling => "profiling",
        }
    }

    /// Cargo with the settings of this profile.
    fn cargo(self, workspace: &Workspace, verb: &str) -> Command {
        let mut cargo = workspace.cargo();
        cargo.args([verb, "--profile", self.name()]);
        if self == Self::Profiling {
            // `perf` follows the frame pointers. The build of SQLite applies this flag, too.
            cargo.env("RUSTFLAGS", "-C force-frame-pointers=yes");
        }
        cargo
    }
}

/// Builds the hub and the scripted agent, which benchmarks start as processes.
pub fn build_programs(workspace: &Workspace, profile: Profile) -> anyhow::Result<()> {
    let mut build = profile.cargo(workspace, "build");
    run_command(build.args(["-p", "plexus", "-p", "plexus-testkit", "--bins"]))
}

/// The command that runs a benchmark. Downloads what it needs.
pub fn command(
    workspace: &Workspace,
    profile: Profile,
    name: &str,
    args: &[&str],
) -> anyhow::Result<Command> {
    let mut bench = profile.cargo(workspace, "run");
    bench.args(["-p", "plexus-bench", "--", name]).args(args);
    bench.env("PLEXUS_BIN", workspace.program(profile.name(), "plexus"));
    if CLAUDE.contains(&name) {
        let claude_cache = cache::dir("PLEXUS_CLAUDE_CACHE", "claude", |name| env::var_os(name))?;
        pinned::provide(&claude_cache);
        bench.env("PLEXUS_CLAUDE_CACHE", claude_cache);
    }
    // A recorded run starts no SDK.
    if PEERS.contains(&name) && profile == Profile::Release {
        provide_peers(workspace, &mut bench)?;
    }
    if BROWSER.contains(&name) {
        let cache = cache::dir("PLEXUS_BROWSER_CACHE", "browser", |name| env::var_os(name))?;
        let pins = workspace.root().join("tests/browser");
        packages::BROWSER.provide(&cache, &pins);
        bench.env("PLEXUS_BENCH_BROWSER", packages::BROWSER.installed(&cache, &pins)?);
    }
    Ok(bench)
}

/// Downloads the Claude Agent SDKs, and passes their paths on.
fn provide_peers(workspace: &Workspace, bench: &mut Command) -> anyhow::Result<()> {
    let sdk_cache = cache::dir("PLEXUS_SDK_CACHE", "sdk", |name| env::var_os(name))?;
    let pins = workspace.root().join("bench/peers");
    packages::TYPESCRIPT_SDK.provide(&sdk_cache, &pins);
    bench.env("PLEXUS_BENCH_TYPESCRIPT_SDK", packages::TYPESCRIPT_SDK.installed(&sdk_cache, &pins)?);
    let python = python_sdk::provide(&sdk_cache, &pins.join("requirements.txt"))?;
    bench.env("PLEXUS_BENCH_PYTHON_SDK", python);
    Ok(())
}
