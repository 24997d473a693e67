//! `cargo xtask bench`: runs one benchmark of `plexus-bench`, with everything it measures built for release. Which
//! benchmarks there are and what they print is theirs to say.

use clap::Args;

use crate::workspace::{Workspace, run as run_command};

/// Run one benchmark, built for release
///
/// Each prints what it measured beside a baseline from the same run on the
/// same machine, since a number alone says nothing on another one.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The benchmark, e.g. `permit`
    pub name: String,

    /// Passed on to it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Does the chore.
pub fn run(workspace: &Workspace, args: &BenchArgs) -> anyhow::Result<()> {
    // A benchmark may start the hub and scripted agents as processes: those have to be release builds as well.
    run_command(workspace.cargo().args([
        "build",
        "--release",
        "-p",
        "plexus",
        "-p",
        "plexus-testkit",
        "--bins",
    ]))?;
    run_command(
        workspace
            .cargo()
            .args(["run", "--release", "-p", "plexus-bench", "--", &args.name])
            .args(&args.args)
            .env("PLEXUS_BIN", workspace.release_program("plexus")),
    )
}
