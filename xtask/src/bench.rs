//! `cargo xtask bench`: runs one benchmark of `plexus-bench` as a release build, with release builds of all
//! programs that it starts.

use clap::Args;

use crate::workspace::{Workspace, run as run_command};

/// Run one benchmark as a release build
///
/// A benchmark prints its result next to a baseline from the same run, because results of different machines
/// cannot be compared.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The benchmark, such as `permit`
    pub name: String,

    /// Arguments for the benchmark; `-- --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Runs the command.
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
    run_command(
        workspace
            .cargo()
            .args(["run", "--release", "-p", "plexus-bench", "--", &args.name])
            .args(&args.args)
            .env("PLEXUS_BIN", workspace.release_program("plexus")),
    )
}
