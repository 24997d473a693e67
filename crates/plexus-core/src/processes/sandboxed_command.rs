//! Runs one command in the children's sandbox: a setup command, a hook, or a version check. A keeper runs it, as it runs a child:
//! all processes that it started end with it, and none of them can use a door of the hub. The caller decides which command runs,
//! and what its end means.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_agent::{
    Exit, JournalLimits, Keeper, Launch, Outbox, RunDir, SESSION_ID_VARIABLE, Streams, read_exit,
    stderr_tail, sweep_all,
};
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::processes::keepers::Keepers;
use crate::processes::sandbox::SandboxSetup;

/// A command.
#[derive(Debug)]
pub(crate) struct SandboxedCommand {
    /// The id in the environment of all processes of the command. When the command ends, every process with this id ends.
    pub(crate) marker: String,
    /// The directory for the files of the command, in the data directory. It must be new.
    pub(crate) dir: RunDir,
    /// The program: an absolute path, or a name to look up in `PATH`.
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) working_dir: PathBuf,
    /// The whole environment, without the marker.
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) io: CommandIo,
    /// The time limit.
    pub(crate) within: Duration,
}

/// What a command reads, and what is kept of its output.
#[derive(Debug)]
pub(crate) enum CommandIo {
    /// It reads nothing. The last lines of its stdout and stderr are kept together.
    Log,
    /// It reads `stdin`. Its stdout is kept. A command that writes more than `most_stdout` bytes blocks until its time limit.
    Captured { stdin: Vec<u8>, most_stdout: u64 },
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct EndedCommand {
    pub(crate) how: CommandEnd,
    /// Its stdout, if captured.
    pub(crate) stdout: Vec<u8>,
    /// The last lines of its stderr, or of its whole output.
    pub(crate) last_lines: Vec<String>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    /// It exited with this code.
    Exited(i32),
    /// A signal killed it.
    Signalled(i32),
    /// It could not be started.
    NotStarted(String),
    /// Its keeper was killed.
    Unknown,
    /// It exceeded its time limit and was stopped.
    TimedOut,
    /// The caller cancelled it.
    Cancelled,
    /// It was stopped because the hub shuts down.
    Closing,
}

/// The parts of the hub that a command needs.
pub(crate) struct CommandRunner<'a> {
    pub(crate) own_program: &'a Path,
    pub(crate) settings: &'a Settings,
    pub(crate) sandbox: &'a SandboxSetup,
    pub(crate) keepers: &'a Keepers,
    pub(crate) closing: &'a CancellationToken,
}

impl CommandRunner<'_> {
    /// Runs a command to its end. When this returns, none of its processes remain. At most `lines` last lines of its output
    /// are returned.
    pub(crate) async fn run(
        &self,
        command: SandboxedCommand,
        lines: usize,
        cancelled: &CancellationToken,
    ) -> io::Result<EndedCommand> {
        let keeper = self.start(&command)?;
        let stopped_by = tokio::select! {
            () = keeper.ended() => None,
            () = tokio::time::sleep(command.within) => Some(CommandEnd::TimedOut),
            () = self.closing.cancelled() => Some(CommandEnd::Closing),
            () = cancelled.cancelled() => Some(CommandEnd::Cancelled),
        };
        let SandboxedCommand { marker, dir, io, .. } = &command;
        keeper.stop(dir, marker).await;
        self.keepers.remove_command(keeper.identity().pid);
        let stdout = match io {
            CommandIo::Log => Vec::new(),
            CommandIo::Captured { most_stdout, .. } => {
                let mut stdout = Vec::new();
                File::open(dir.journal())?.take(*most_stdout).read_to_end(&mut stdout)?;
                stdout
            }
        };
        let how = stopped_by.unwrap_or_else(|| end_of(read_exit(dir)));
        Ok(EndedCommand { how, stdout, last_lines: stderr_tail(dir, lines) })
    }

    fn start(&self, command: &SandboxedCommand) -> io::Result<Keeper> {
        let SandboxedCommand { marker, dir, program, args, working_dir, env, io, .. } = command;
        dir.create()?;
        let (streams, journal) = match io {
            CommandIo::Log => (Streams::Log, JournalLimits::default()),
            CommandIo::Captured { stdin, most_stdout } => {
                std::fs::write(dir.input(), stdin)?;
                let limits = JournalLimits { most_bytes: *most_stdout, ..JournalLimits::default() };
                (Streams::Captured { input: dir.input() }, limits)
            }
        };
        let launch = Launch {
            program: program.clone(),
            args: args.clone(),
            cwd: working_dir.clone(),
            nonce: marker.clone(),
            streams,
            journal,
            sandbox: self.sandbox.around(None),
            tracing: self.settings.tracing,
            // The keeper is busy for its whole life, and nothing in it waits for a hub.
            idle_without_hub: None,
        };
        let mut env = env.clone();
        env.insert(SESSION_ID_VARIABLE.into(), marker.into());
        let keeper = Keeper::start(self.own_program, dir, &launch, &env)?;
        // Registers the keeper before it starts anything: the doors must reject its descendants, and the next hub must
        // find it.
        self.keepers.insert_command(keeper.identity().pid);
        let released = std::fs::write(keeper_file(dir), serde_json::to_vec(keeper.identity())?)
            .and_then(|()| Outbox::open(dir))
            .and_then(|(mut outbox, _)| outbox.go(marker));
        if let Err(error) = released {
            self.keepers.remove_command(keeper.identity().pid);
            // The keeper waits for a start signal that never comes, and then exits.
            let _ = keeper.kill();
            return Err(error);
        }
        Ok(keeper)
    }
}

/// Ends a command that a killed hub left running, with all its descendants.
pub(crate) async fn stop_orphaned_command(dir: &RunDir, marker: &str) {
    let known = std::fs::read(keeper_file(dir)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    // A keeper reaches more processes than the marker in the environment does, so it goes first.
    match known.as_ref().map(Keeper::attach) {
        Some(Ok(Some(keeper))) => keeper.stop(dir, marker).await,
        _ => {
            sweep_all(marker).await;
        }
    }
}

fn end_of(exit: Option<Exit>) -> CommandEnd {
    match exit {
        Some(Exit { code: Some(code), .. }) => CommandEnd::Exited(code),
        Some(Exit { signal: Some(signal), .. }) => CommandEnd::Signalled(signal),
        Some(Exit { error: Some(error), .. }) => CommandEnd::NotStarted(error),
        Some(_) | None => CommandEnd::Unknown,
    }
}

/// The file that identifies the keeper process of the command.
fn keeper_file(dir: &RunDir) -> PathBuf {
    dir.path().join("keeper.json")
}
