//! The setup command of a worktree. A keeper runs it, as it runs a child: all processes that it started end with it,
//! and none of them can use a door of the hub.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plexus_agent::{
    Exit, JournalLimits, Keeper, Launch, Outbox, RunDir, Streams, read_exit, stderr_tail, sweep_all,
};
use plexus_protocol::{Error, ErrorKind, MAX_TEXT_BYTES, SessionId, shorten};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::errors::shutting_down;
use crate::processes::environment::environment;
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

/// Why a running command is ended.
enum StoppedBy {
    Timeout,
    Closing,
    Disconnected,
}

impl Setup {
    /// Runs the command to its end. When this returns, none of its processes remain.
    pub(super) async fn run(
        self,
        parts: &Arc<Parts>,
        session: SessionId,
        disconnected: &CancellationToken,
    ) -> Result<(), Error> {
        let dir = setup_dir(parts, session);
        let keeper = self.start(parts, session, &dir).map_err(|error| {
            Error::new(ErrorKind::SetupFailed, format!("cannot start the setup command: {error}"))
        })?;
        let stopped_by = tokio::select! {
            () = keeper.ended() => None,
            () = tokio::time::sleep(self.within) => Some(StoppedBy::Timeout),
            () = parts.tasks.closing().cancelled() => Some(StoppedBy::Closing),
            () = disconnected.cancelled() => Some(StoppedBy::Disconnected),
        };
        keeper.stop(&dir, &session.to_string()).await;
        parts.keepers.remove(session);
        let exit = read_exit(&dir);
        let message = match (stopped_by, &exit) {
            (None, Some(Exit { code: Some(0), .. })) => return Ok(()),
            (Some(StoppedBy::Closing), _) => return Err(shutting_down()),
            (Some(StoppedBy::Disconnected), _) => {
                return Err(Error::new(ErrorKind::Internal, "the caller disconnected"));
            }
            (Some(StoppedBy::Timeout), _) => {
                format!("the setup command took longer than {} s and was stopped", self.within.as_secs())
            }
            (None, Some(Exit { code: Some(code), .. })) => {
                format!("the setup command exited with code {code}")
            }
            (None, Some(Exit { signal: Some(signal), .. })) => {
                format!("the setup command was killed by signal {signal}")
            }
            (None, Some(Exit { error: Some(error), .. })) => {
                format!("cannot run the setup command: {error}")
            }
            (None, _) => "the setup command was killed, and its exit status is unknown".to_owned(),
        };
        let mut output = Value::from(stderr_tail(&dir, LINES));
        shorten(&mut output, MAX_TEXT_BYTES / LINES);
        let code = exit.and_then(|exit| exit.code);
        Err(Error::new(ErrorKind::SetupFailed, message).with("exit_code", code).with("output", output))
    }

    fn start(&self, parts: &Parts, session: SessionId, dir: &RunDir) -> io::Result<Keeper> {
        dir.create()?;
        let launch = Launch {
            program: "sh".into(),
            args: vec!["-c".to_owned(), self.command.clone()],
            cwd: self.working_dir.clone(),
            nonce: session.to_string(),
            streams: Streams::Log,
            journal: JournalLimits::default(),
            sandbox: parts.sandbox.around(None),
            tracing: parts.settings.tracing,
            // The keeper is busy for its whole life, and nothing in it waits for a hub.
            idle_without_hub: None,
        };
        let env = environment(&parts.settings, session, &self.env);
        let keeper = Keeper::start(&parts.own_program, dir, &launch, &env)?;
        // Registers the keeper before it starts anything: the doors must reject its descendants, and the next hub must
        // find it.
        parts.keepers.insert(session, keeper.identity().pid);
        let released = std::fs::write(keeper_file(dir), serde_json::to_vec(keeper.identity())?)
            .and_then(|()| Outbox::open(dir))
            .and_then(|(mut outbox, _)| outbox.go(&launch.nonce));
        if let Err(error) = released {
            parts.keepers.remove(session);
            // The keeper waits for a start signal that never comes, and then exits.
            let _ = keeper.kill();
            return Err(error);
        }
        Ok(keeper)
    }
}

/// Ends a setup command that a killed hub left running, with all its descendants.
pub(super) async fn stop_orphaned_setup(parts: &Parts, session: SessionId) {
    let dir = setup_dir(parts, session);
    let known = std::fs::read(keeper_file(&dir)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    // A keeper reaches more processes than the marker in the environment does, so it goes first.
    match known.as_ref().map(Keeper::attach) {
        Some(Ok(Some(keeper))) => keeper.stop(&dir, &session.to_string()).await,
        _ => sweep_all(&session.to_string()).await,
    }
}

fn setup_dir(parts: &Parts, session: SessionId) -> RunDir {
    RunDir::new(parts.settings.session_dir(session).join("setup"))
}

/// The file that identifies the keeper process of the command.
fn keeper_file(dir: &RunDir) -> PathBuf {
    dir.path().join("keeper.json")
}
