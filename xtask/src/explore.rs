//! `cargo xtask explore`: the long form of the search through schedules of the approval book, whose short form is one
//! of the tests. What it does and prints is `plexus-explore`'s to say.

use clap::Args;

use crate::workspace::{Workspace, run as run_command};

/// Try the orders in which an approval may be asked, answered, waited for, withdrawn and killed under
///
/// It prints its seed; `--seed` tries the same schedules again, `--replay FILE` the one that a failure printed.
#[derive(Debug, Args)]
pub struct ExploreArgs {
    /// Passed on: --schedules N, --seed N, --replay FILE
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Does the chore.
pub fn run(workspace: &Workspace, args: &ExploreArgs) -> anyhow::Result<()> {
    run_command(
        workspace
            .cargo()
            .args(["run", "--profile", "explore", "-p", "plexus-explore", "--"])
            .args(&args.args),
    )
}
