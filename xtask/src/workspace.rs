//! The paths of the checkout and of its built programs, and how to run a command. A command is printed before
//! it runs. A failure becomes an error with the exit code of the command.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Instant;

use anyhow::Context as _;

/// The checkout in which cargo started this xtask.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

/// The error for a command that failed.
#[derive(Debug, thiserror::Error)]
#[error("{command} failed ({status})")]
pub struct CommandFailed {
    command: String,
    status: ExitStatus,
}

impl CommandFailed {
    /// The exit code of the command; 1 if a signal killed it.
    pub fn exit_code(&self) -> ExitCode {
        let code = self.status.code().and_then(|code| u8::try_from(code).ok());
        code.map_or(ExitCode::FAILURE, ExitCode::from)
    }
}

impl Workspace {
    /// Finds the checkout by the environment that cargo sets, and never by a path from compile time: several
    /// checkouts may share a target directory.
    pub fn find() -> anyhow::Result<Self> {
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR").context("run xtask as `cargo xtask`")?;
        let root =
            Path::new(&manifest_dir).parent().context("the directory of xtask has no parent")?.to_owned();
        let this_program = env::current_exe().context("cannot find the path of this program")?;
        // TARGET/debug/xtask: the cargo that xtask calls uses the same target directory.
        let target =
            this_program.ancestors().nth(2).context("xtask is not in a target directory")?.to_owned();
        Ok(Self { root, target })
    }

    /// The root directory of the checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A program that cargo built with the profile `dev`.
    pub fn debug_program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// A program that cargo built with a profile other than `dev`.
    pub fn program(&self, profile: &str, name: &str) -> PathBuf {
        self.target.join(profile).join(name)
    }

    /// The cargo that runs this xtask, in the root directory.
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.root);
        cargo
    }

    /// A subcommand of cargo for `explore/`, which is a workspace of its own and shares the target directory.
    pub fn explore(&self, verb: &str) -> Command {
        let mut cargo = self.cargo();
        cargo.arg(verb).args(["--manifest-path", "explore/Cargo.toml"]).env("CARGO_TARGET_DIR", &self.target);
        cargo
    }
}

/// Runs a command with its output visible, and prints the command and how long it took.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = show(command);
    eprintln!("xtask: {shown}");
    let started = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    eprintln!("xtask: {shown}: {:.1} s", started.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(CommandFailed { command: shown, status }.into()) }
}

/// A command as one would type it; the program without its directory.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_keeps_its_exit_code() {
        let error = run(Command::new("sh").args(["-c", "exit 101"])).unwrap_err();
        let failed = error.downcast_ref::<CommandFailed>().unwrap();
        assert_eq!(failed.exit_code(), ExitCode::from(101));
        assert!(error.to_string().starts_with("sh -c exit 101 failed"), "{error}");
    }

    #[test]
    fn a_command_ended_by_a_signal_is_a_failure() {
        let error = run(Command::new("sh").args(["-c", "kill -9 $$"])).unwrap_err();
        assert_eq!(error.downcast_ref::<CommandFailed>().unwrap().exit_code(), ExitCode::FAILURE);
    }
}
