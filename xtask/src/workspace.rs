//! Where the checkout and its built programs lie, and how a command is run. It says what it runs and turns a
//! bad end into an error that keeps the exit code; what to run is for the verbs to say.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Instant;

use anyhow::Context as _;

/// This checkout, as seen by an xtask that cargo started in it.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

/// A command that ran and ended badly.
#[derive(Debug, thiserror::Error)]
#[error("{command} failed ({status})")]
pub struct CommandFailed {
    command: String,
    status: ExitStatus,
}

impl CommandFailed {
    /// The code the command ended with; 1 where a signal ended it.
    pub fn exit_code(&self) -> ExitCode {
        let code = self.status.code().and_then(|code| u8::try_from(code).ok());
        code.map_or(ExitCode::FAILURE, ExitCode::from)
    }
}

impl Workspace {
    /// Finds the checkout through what cargo tells the programs it runs, never through a path fixed at compile
    /// time: a target directory may be shared by several checkouts.
    pub fn find() -> anyhow::Result<Self> {
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
        let root = Path::new(&manifest_dir).parent().context("xtask has no folder above it")?.to_owned();
        let this_program = env::current_exe().context("this program cannot be found")?;
        // TARGET/debug/xtask: whatever set the target directory for us sets it for the cargo we call as well.
        let target =
            this_program.ancestors().nth(2).context("xtask is not in a target directory")?.to_owned();
        Ok(Self { root, target })
    }

    /// The top folder of the checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A program that cargo built with its `dev` profile.
    pub fn debug_program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// A program that cargo built with its `release` profile.
    pub fn release_program(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }

    /// The cargo that runs us, called in the top folder.
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.root);
        cargo
    }

    /// A verb of cargo for `explore/`, which is a workspace of its own and shares the target directory.
    pub fn explore(&self, verb: &str) -> Command {
        let mut cargo = self.cargo();
        cargo.arg(verb).args(["--manifest-path", "explore/Cargo.toml"]).env("CARGO_TARGET_DIR", &self.target);
        cargo
    }
}

/// Runs a command to its end, in sight of the user, and says what it was and how long it took.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = show(command);
    eprintln!("xtask: {shown}");
    let started = Instant::now();
    let status = command.status().with_context(|| format!("{shown} could not be started"))?;
    eprintln!("xtask: {shown}: {:.1} s", started.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(CommandFailed { command: shown, status }.into()) }
}

/// A command as one would type it; the program without its folder.
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
