//! `cargo xtask trace`: runs the benchmark `trace`, which shows the stages of one tool call.

use clap::Args;

use crate::bench::{self, BenchArgs};
use crate::workspace::Workspace;

/// Show where the time of one tool call goes
///
/// Prints the stages of a call that a rule allows and of a call that a client answers, and writes them to
/// bench/results/trace.json, docs/benchmarks/trace.svg and docs/benchmarks.md. Run it on a machine that does nothing else.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Arguments for the benchmark; `-- --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Runs the command.
pub fn run(workspace: &Workspace, args: TraceArgs) -> anyhow::Result<()> {
    bench::run(
        workspace,
        &BenchArgs { repeat: 1, publish: false, name: Some("trace".to_owned()), args: args.args },
    )
}
