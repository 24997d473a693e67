//! `cargo xtask chaos`: the long form of the chaos run, whose short form is one of the tests. What it does and prints
//! is `plexus-chaos`'s to say.

use clap::Args;

use crate::workspace::{Workspace, run as run_command};
use crate::{cache, pinned};

/// Kill a hub with -9 at random instants while agents work, and see whether anything is lost
///
/// It prints its seed; `--seed` makes the same choices again.
#[derive(Debug, Args)]
pub struct ChaosArgs {
    /// Passed on: --kills N or --points, --children, --faults, --seed N, --agents N; `-- --help` says more
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Does the chore.
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
