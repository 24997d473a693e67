//! `cargo xtask fuzz`: fuzzes the parser of Claude Code's wire. It installs cargo-fuzz if it is missing. The
//! fuzz target is in `fuzz/`.

use std::process::{Command, Stdio};

use anyhow::ensure;
use clap::Args;

use crate::workspace::{Workspace, run as run_command};

/// Fuzz the parser of Claude Code's wire
///
/// Needs a nightly toolchain (`rustup toolchain install nightly`). Installs cargo-fuzz if it is missing.
/// After a crash, the input is in fuzz/artifacts/.
#[derive(Debug, Args)]
pub struct FuzzArgs {
    /// How long to run, in seconds
    #[arg(long, default_value_t = 600)]
    pub seconds: u32,
}

/// Runs the command.
pub fn run(workspace: &Workspace, args: &FuzzArgs) -> anyhow::Result<()> {
    ensure!(
        works(&mut nightly_cargo(&["--version"])),
        "fuzzing needs a nightly toolchain; install it with `rustup toolchain install nightly`"
    );
    if !works(&mut nightly_cargo(&["fuzz", "--version"])) {
        eprintln!("xtask: installing cargo-fuzz (once, takes a minute or two)");
        run_command(workspace.cargo().args(["install", "--locked", "cargo-fuzz"]))?;
    }
    let limit = format!("-max_total_time={}", args.seconds);
    run_command(
        nightly_cargo(&["fuzz", "run", "wire", "--", &limit]).current_dir(workspace.root().join("fuzz")),
    )
}

/// The nightly cargo according to rustup. The cargo that runs xtask belongs to one toolchain and does not
/// support `+nightly`.
fn nightly_cargo(args: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(args);
    command
}

/// Whether a command succeeds. Its output is not shown.
fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
