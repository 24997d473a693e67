//! `cargo xtask test`: every test there is, real Claude Code included. It brings what the tests need (the pinned
//! CLIs, the MCP inspector and conformance suite, what drives the browser, our own programs built) and tells them by environment where that
//! is; what to do with it is for `plexus-testkit` and the tests themselves.

use std::env;
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::skipped::{Rule, Skipped};
use crate::workspace::{Workspace, run as run_command};
use crate::{cache, packages, pinned};

/// Run every test, against the real Claude Code too
///
/// The two pinned Claude Code programs are fetched once from the npm registry into a cache outside the checkout:
/// $PLEXUS_CLAUDE_CACHE, else $XDG_CACHE_HOME/plexus/claude, else ~/.cache/plexus/claude. They talk to a scripted
/// model on 127.0.0.1 and never to a real one: no account is needed. The MCP inspector and conformance suite are
/// fetched likewise, into $PLEXUS_MCP_CACHE or plexus/mcp, and what drives the browser, into $PLEXUS_BROWSER_CACHE or
/// plexus/browser, and what the console is checked with, into $PLEXUS_UI_CACHE or plexus/ui; the browser itself is $PLEXUS_CHROMIUM, else the Chromium of this machine. Where any of these cannot be
/// had, the tests that need it are skipped and listed at the end by name; with CI set in the environment that is a
/// failure.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Then run the slow tests as well: those marked `#[ignore = "slow: …"]`, which take minutes each
    #[arg(long)]
    pub slow: bool,

    /// Passed on to the test programs, e.g. part of a test's name, or --nocapture
    #[arg(last = true)]
    pub args: Vec<String>,
}

/// Does the chore. All tests run even when one fails, and the skipped ones are listed whatever the outcome.
pub fn run(workspace: &Workspace, args: &TestArgs) -> anyhow::Result<()> {
    let claude_cache = cache::dir("PLEXUS_CLAUDE_CACHE", "claude", |name| env::var_os(name))?;
    let mcp_cache = cache::dir("PLEXUS_MCP_CACHE", "mcp", |name| env::var_os(name))?;
    let browser_cache = cache::dir("PLEXUS_BROWSER_CACHE", "browser", |name| env::var_os(name))?;
    let ui_cache = cache::dir("PLEXUS_UI_CACHE", "ui", |name| env::var_os(name))?;
    packages::BROWSER.provide(&browser_cache, &workspace.root().join("tests/browser"));
    packages::UI.provide(&ui_cache, &workspace.root().join("ui"));
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        pinned::provide(&claude_cache);
        packages::MCP.provide(&mcp_cache, &workspace.root().join("tests/conformance"));
    } else {
        eprintln!(
            "xtask: the pinned programs are for Linux on x86-64 only: this platform is not supported, and"
        );
        eprintln!("xtask: the tests that need a real Claude Code or the MCP conformance suite are skipped");
    }

    run_command(workspace.cargo().args(["build", "--workspace", "--bins"]))?;
    let plexus = workspace.debug_program("plexus");
    ensure!(plexus.exists(), "cargo built the workspace, but {} is not there", plexus.display());

    let skipped_file = tempfile::NamedTempFile::new().context("no temporary file could be made")?;
    let cargo_test = |first_args: &[&str]| {
        let mut command: Command = workspace.cargo();
        command.args(["test", "--workspace", "--no-fail-fast", "--"]).args(first_args).args(&args.args);
        command.env("PLEXUS_CLAUDE_CACHE", &claude_cache);
        command.env("PLEXUS_MCP_CACHE", &mcp_cache);
        command.env("PLEXUS_BROWSER_CACHE", &browser_cache);
        command.env("PLEXUS_UI_CACHE", &ui_cache);
        command.env("PLEXUS_BIN", &plexus);
        command.env("PLEXUS_TEST_SKIPPED", skipped_file.path());
        if env::var_os("RUST_TEST_THREADS").is_none() {
            command.env("RUST_TEST_THREADS", test_threads().to_string());
        }
        run_command(&mut command)
    };
    let fast = cargo_test(&[]);
    let explored = run_command(workspace.explore("test").args(["--"]).args(&args.args));
    let slow = if args.slow { cargo_test(&["--ignored"]) } else { Ok(()) };

    let skipped = Skipped::read(skipped_file.path()).context("the list of skipped tests cannot be read")?;
    print!("{skipped}");
    fast.and(explored).and(slow)?;
    Ok(skipped.judge(Rule::from_ci(env::var_os("CI").as_deref()))?)
}

/// How many tests run at a time. The tests mostly wait for other processes, so there are two per core.
fn test_threads() -> usize {
    2 * std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}
