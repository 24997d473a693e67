//! `cargo xtask bench`: runs the benchmarks of `plexus-bench` as a release build, with release builds of all
//! programs that they start, and writes their results to `bench/results/` and `docs/benchmarks.md`.

use std::env;
use std::process::Command;

use anyhow::ensure;
use clap::Args;

use crate::workspace::{Workspace, run as run_command};
use crate::{cache, packages, pinned, python_sdk};

/// All benchmarks, with the arguments of a complete run.
const ALL: &[&[&str]] = &[
    &["start"],
    &["tool-call"],
    &["tool-call", "--children", "8", "--calls", "50"],
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
];

/// The benchmarks that compare Plexus with the Claude Agent SDKs.
const PEERS: &[&str] = &["tool-call", "events"];

/// The benchmarks that start the pinned Claude Code.
const CLAUDE: &[&str] = &["tool-call", "parent-cost"];

/// The benchmarks that open the console in a browser.
const BROWSER: &[&str] = &["console"];

/// Run one benchmark, or all, as a release build
///
/// A benchmark prints its result next to a baseline from the same run, because results of different machines
/// cannot be compared. It fails if it misses a goal. Run it on a machine that does nothing else.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The benchmark, such as `permit`; default: all of them, which takes about 40 minutes
    pub name: Option<String>,

    /// Arguments for the benchmark; `-- --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Runs the command. Of several benchmarks all run, even if one misses a goal.
pub fn run(workspace: &Workspace, args: &BenchArgs) -> anyhow::Result<()> {
    // A benchmark may start the hub and scripted agents as processes: those must be release builds, too.
    run_command(workspace.cargo().args([
        "build",
        "--release",
        "-p",
        "plexus",
        "-p",
        "plexus-testkit",
        "--bins",
    ]))?;
    let mut missed = Vec::new();
    match &args.name {
        Some(name) => {
            let own: Vec<&str> = args.args.iter().map(String::as_str).collect();
            let done = run_one(workspace, name, &own);
            run_one(workspace, "table", &[])?;
            return done;
        }
        None => {
            for benchmark in ALL {
                let [name, own @ ..] = benchmark else { continue };
                if let Err(error) = run_one(workspace, name, own) {
                    missed.push(format!("{name}: {error:#}"));
                }
            }
        }
    }
    run_one(workspace, "table", &[])?;
    ensure!(missed.is_empty(), "these missed a goal:\n{}", missed.join("\n"));
    Ok(())
}

fn run_one(workspace: &Workspace, name: &str, args: &[&str]) -> anyhow::Result<()> {
    let mut bench = workspace.cargo();
    bench.args(["run", "--release", "-p", "plexus-bench", "--", name]).args(args);
    bench.env("PLEXUS_BIN", workspace.release_program("plexus"));
    if CLAUDE.contains(&name) {
        let claude_cache = cache::dir("PLEXUS_CLAUDE_CACHE", "claude", |name| env::var_os(name))?;
        pinned::provide(&claude_cache);
        bench.env("PLEXUS_CLAUDE_CACHE", claude_cache);
    }
    if PEERS.contains(&name) {
        provide_peers(workspace, &mut bench)?;
    }
    if BROWSER.contains(&name) {
        let cache = cache::dir("PLEXUS_BROWSER_CACHE", "browser", |name| env::var_os(name))?;
        let pins = workspace.root().join("tests/browser");
        packages::BROWSER.provide(&cache, &pins);
        bench.env("PLEXUS_BENCH_BROWSER", packages::BROWSER.installed(&cache, &pins)?);
    }
    run_command(&mut bench)
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
