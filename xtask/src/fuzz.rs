//! `cargo xtask fuzz`: feeds the parser of Claude Code's wire with what no CLI would ever send. It brings
//! cargo-fuzz; the target itself is in `fuzz/`.

use std::process::{Command, Stdio};

use anyhow::ensure;
use clap::Args;

use crate::workspace::{Workspace, run as run_command};

/// Fuzz the parser of Claude Code's wire
///
/// Needs a nightly toolchain (`rustup toolchain install nightly`); cargo-fuzz is installed when it is missing. A
/// crash leaves its input under fuzz/artifacts/.
#[derive(Debug, Args)]
pub struct FuzzArgs {
    /// How long to go on
    #[arg(long, default_value_t = 600)]
    pub seconds: u32,
}

/// Does the chore.
pub fn run(workspace: &Workspace, args: &FuzzArgs) -> anyhow::Result<()> {
    ensure!(
        works(&mut nightly_cargo(&["--version"])),
        "fuzzing needs a nightly toolchain, and there is none: rustup toolchain install nightly"
    );
    if !works(&mut nightly_cargo(&["fuzz", "--version"])) {
        eprintln!("xtask: cargo-fuzz is missing, installing it (a minute or two, once)");
        run_command(workspace.cargo().args(["install", "--locked", "cargo-fuzz"]))?;
    }
    let limit = format!("-max_total_time={}", args.seconds);
    run_command(
        nightly_cargo(&["fuzz", "run", "wire", "--", &limit]).current_dir(workspace.root().join("fuzz")),
    )
}

/// The nightly cargo, asked of rustup: the cargo that runs us is one fixed toolchain and knows no `+nightly`.
fn nightly_cargo(args: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(args);
    command
}

/// Whether a command can be run and ends well; nothing of it is shown.
fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
