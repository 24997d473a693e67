//! `cargo xtask test`: runs all tests, including those with a real Claude Code. It downloads the tools that
//! the tests need (the pinned CLIs, the MCP inspector and conformance suite, the driver of the browser),
//! builds our own programs, and passes the paths of all of them in the environment. `plexus-testkit` and the
//! tests use them.

use std::env;
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::skipped::{Rule, Skipped};
use crate::workspace::{Workspace, run as run_command};
use crate::{cache, packages, pinned};

/// Run all tests, including those with a real Claude Code
///
/// No test needs an account: the real Claude Code programs talk to a scripted model on 127.0.0.1.
///
/// Missing tools are downloaded once from the npm registry, into directories outside the checkout. Each
/// variable below selects a directory; the default is plexus/claude, plexus/mcp, plexus/browser or plexus/ui
/// in $XDG_CACHE_HOME, else in ~/.cache:
///
/// $PLEXUS_CLAUDE_CACHE: the two pinned Claude Code programs.
///
/// $PLEXUS_MCP_CACHE: the MCP inspector and conformance suite, with Node.
///
/// $PLEXUS_BROWSER_CACHE: the driver of the browser. The browser itself is $PLEXUS_CHROMIUM, else the
/// installed Chromium.
///
/// $PLEXUS_UI_CACHE: the tools that check the console.
///
/// A test whose tool is missing is skipped. The names of skipped tests are listed at the end. If CI is set in
/// the environment, a skipped test is a failure.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Then also run the slow tests, which take minutes each: those marked `#[ignore = "slow: …"]`
    #[arg(long)]
    pub slow: bool,

    /// Arguments for the test programs, such as part of a test's name, or --nocapture
    #[arg(last = true)]
    pub args: Vec<String>,
}

/// Runs the command. All tests run even if one fails, and the skipped tests are listed in any case.
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
        eprintln!("xtask: the pinned programs run on Linux on x86-64 only, so on this platform");
        eprintln!("xtask: the tests with a real Claude Code or the MCP conformance suite are skipped");
    }

    run_command(workspace.cargo().args(["build", "--workspace", "--bins"]))?;
    let plexus = workspace.debug_program("plexus");
    ensure!(plexus.exists(), "cargo built the workspace, but {} is missing", plexus.display());

    let skipped_file = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
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

    let skipped = Skipped::read(skipped_file.path()).context("cannot read the list of skipped tests")?;
    print!("{skipped}");
    fast.and(explored).and(slow)?;
    Ok(skipped.judge(Rule::from_ci(env::var_os("CI").as_deref()))?)
}

/// How many tests run at a time. The tests mostly wait for other processes, so there are two per core.
fn test_threads() -> usize {
    2 * std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}
