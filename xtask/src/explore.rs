//! `cargo xtask explore`: the long form of the search for bad interleavings in the approval book, whose short
//! form is part of the test suite. `plexus-explore` does the work.

use clap::Args;

use crate::workspace::{Workspace, run as run_command};

/// Run randomised interleavings of requests, answers, waits, withdrawals and kills on the approval book
///
/// It prints its seed. `--seed` repeats the same schedules; `--replay FILE` repeats the schedule that a
/// failure printed.
#[derive(Debug, Args)]
pub struct ExploreArgs {
    /// Arguments: --schedules N, --seed N, --replay FILE
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Runs the command.
pub fn run(workspace: &Workspace, args: &ExploreArgs) -> anyhow::Result<()> {
    run_command(workspace.explore("run").args(["--release", "--"]).args(&args.args))
}
