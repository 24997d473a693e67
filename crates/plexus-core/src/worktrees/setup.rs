//! The setup command of a worktree: its time limit, and the error of a command that failed. `sandboxed_command` runs it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plexus_agent::RunDir;
use plexus_protocol::{Error, ErrorKind, MAX_TEXT_BYTES, SessionId, shorten};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::errors::shutting_down;
use crate::processes::environment::environment;
use crate::processes::sandboxed_command::{CommandEnd, CommandIo, SandboxedCommand, stop_orphaned_command};
use crate::shared_parts::Parts;

/// The number of output lines in a failure report.
const LINES: usize = 20;

/// A setup command.
pub(super) struct Setup {
    pub(super) command: String,
    pub(super) within: Duration,
    pub(super) env: BTreeMap<String, String>,
    pub(super) working_dir: PathBuf,
}

impl Setup {
    /// Runs the command to its end. When this returns, none of its processes remain.
    pub(super) async fn run(
        self,
        parts: &Arc<Parts>,
        session: SessionId,
        disconnected: &CancellationToken,
    ) -> Result<(), Error> {
        let command = SandboxedCommand {
            marker: session.to_string(),
            dir: setup_dir(parts, session),
            program: "sh".into(),
            args: vec!["-c".to_owned(), self.command],
            working_dir: self.working_dir,
            env: environment(&parts.settings, session, &self.env),
            io: CommandIo::Log,
            within: self.within,
        };
        let ended = parts.commands().run(command, LINES, disconnected).await.map_err(|error| {
            Error::new(ErrorKind::SetupFailed, format!("cannot start the setup command: {error}"))
        })?;
        let message = match &ended.how {
            CommandEnd::Exited(0) => return Ok(()),
            CommandEnd::Closing => return Err(shutting_down()),
            CommandEnd::Cancelled => return Err(Error::new(ErrorKind::Internal, "the caller disconnected")),
            CommandEnd::TimedOut => {
                format!("the setup command took longer than {} s and was stopped", self.within.as_secs())
            }
            CommandEnd::Exited(code) => format!("the setup command exited with code {code}"),
            CommandEnd::Signalled(signal) => format!("the setup command was killed by signal {signal}"),
            CommandEnd::NotStarted(error) => format!("cannot run the setup command: {error}"),
            CommandEnd::Unknown => "the setup command was killed, and its exit status is unknown".to_owned(),
        };
        let mut output = Value::from(ended.last_lines);
        shorten(&mut output, MAX_TEXT_BYTES / LINES);
        let code = match ended.how {
            CommandEnd::Exited(code) => Some(code),
            _ => None,
        };
        Err(Error::new(ErrorKind::SetupFailed, message).with("exit_code", code).with("output", output))
    }
}

/// Ends a setup command that a killed hub left running, with all its descendants.
pub(super) async fn stop_orphaned_setup(parts: &Parts, session: SessionId) {
    stop_orphaned_command(&setup_dir(parts, session), &session.to_string()).await;
}

fn setup_dir(parts: &Parts, session: SessionId) -> RunDir {
    RunDir::new(parts.settings.session_dir(session).join("setup"))
}
