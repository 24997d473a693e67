//! `cargo xtask chaos`: the long form of the chaos test, whose short form is part of the test suite.
//! `plexus-chaos` does the work.

use clap::Args;

use crate::workspace::{Workspace, run as run_command};
use crate::{cache, pinned};

/// Kill a hub at random instants while agents work, and check that nothing is lost
///
/// With --hubs 3, three hubs share a PostgreSQL database; their links to it and the database itself fail too.
///
/// It prints its seed. `--seed` repeats a run with the same choices.
#[derive(Debug, Args)]
pub struct ChaosArgs {
    /// Arguments: --kills N or --points, --hubs N, --children, --faults, --seed N, --agents N; `-- --help`
    /// explains them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Runs the command.
pub fn run(workspace: &Workspace, args: &ChaosArgs) -> anyhow::Result<()> {
    let cache = cache::dir("PLEXUS_CLAUDE_CACHE", "claude", |name| std::env::var_os(name))?;
    pinned::provide(&cache);
    let packages = ["-p", "plexus", "-p", "plexus-testkit", "-p", "plexus-e2e"];
    run_command(workspace.cargo().arg("build").args(packages).arg("--bins"))?;
    run_command(
        workspace
            .cargo()
            .args(["run", "-p", "plexus-e2e", "--bin", "plexus-chaos", "--"])
            .args(&args.args)
            .env("PLEXUS_CLAUDE_CACHE", cache),
    )
}
