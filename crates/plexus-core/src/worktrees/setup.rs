//! The command that makes a worktree ready. It is run by a keeper, as a child is: whatever it started has ended when
//! it is over, and nothing of it finds a door of the hub open.

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

use crate::environment::environment;
use crate::errors::shutting_down;
use crate::parts::Parts;

/// How many lines of its output a failure shows.
const LINES: usize = 20;

/// A command to run.
pub(super) struct Setup {
    pub(super) command: String,
    pub(super) within: Duration,
    pub(super) env: BTreeMap<String, String>,
    pub(super) working_dir: PathBuf,
}

/// Why a command that is not over is ended.
enum Cut {
    TooLong,
    Closing,
    Gone,
}

impl Setup {
    /// Runs it to its end. When this returns, nothing that it started is left.
    pub(super) async fn run(
        self,
        parts: &Arc<Parts>,
        session: SessionId,
        gone: &CancellationToken,
    ) -> Result<(), Error> {
        let dir = setup_dir(parts, session);
        let keeper = self.start(parts, session, &dir).map_err(|error| {
            Error::new(ErrorKind::SetupFailed, format!("the setup command could not be started: {error}"))
        })?;
        let cut = tokio::select! {
            () = keeper.ended() => None,
            () = tokio::time::sleep(self.within) => Some(Cut::TooLong),
            () = parts.tasks.closing().cancelled() => Some(Cut::Closing),
            () = gone.cancelled() => Some(Cut::Gone),
        };
        keeper.stop(&dir, &session.to_string()).await;
        parts.keepers.remove(session);
        let exit = read_exit(&dir);
        let message = match (cut, &exit) {
            (None, Some(Exit { code: Some(0), .. })) => return Ok(()),
            (Some(Cut::Closing), _) => return Err(shutting_down()),
            (Some(Cut::Gone), _) => return Err(Error::new(ErrorKind::Internal, "the caller has gone")),
            (Some(Cut::TooLong), _) => {
                format!("the setup command was ended after {} s", self.within.as_secs())
            }
            (None, Some(Exit { code: Some(code), .. })) => {
                format!("the setup command exited with code {code}")
            }
            (None, Some(Exit { signal: Some(signal), .. })) => {
                format!("the setup command was ended by signal {signal}")
            }
            (None, Some(Exit { error: Some(error), .. })) => {
                format!("the setup command could not be run: {error}")
            }
            (None, _) => "the setup command was ended, and nobody knows how".to_owned(),
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
            // It is at work for as long as it runs, and nothing of it waits for a hub.
            idle_without_hub: None,
        };
        let env = environment(&parts.settings, session, &self.env);
        let keeper = Keeper::start(&parts.own_program, dir, &launch, &env)?;
        // Before it starts anything: what stems from it is to find no door open, and the next hub is to find it.
        parts.keepers.insert(session, keeper.identity().pid);
        let told = std::fs::write(keeper_file(dir), serde_json::to_vec(keeper.identity())?)
            .and_then(|()| Outbox::open(dir))
            .and_then(|(mut outbox, _)| outbox.go(&launch.nonce));
        if let Err(error) = told {
            parts.keepers.remove(session);
            // It waits for a word that never comes, and then leaves.
            let _ = keeper.kill();
            return Err(error);
        }
        Ok(keeper)
    }
}

/// Ends a setup command that a hub which was killed left running, with all that it started.
pub(super) async fn end_left_over(parts: &Parts, session: SessionId) {
    let dir = setup_dir(parts, session);
    let known = std::fs::read(keeper_file(&dir)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    // A keeper reaches more than the mark in the environment does, so it is asked first.
    match known.as_ref().map(Keeper::attach) {
        Some(Ok(Some(keeper))) => keeper.stop(&dir, &session.to_string()).await,
        _ => sweep_all(&session.to_string()).await,
    }
}

fn setup_dir(parts: &Parts, session: SessionId) -> RunDir {
    RunDir::new(parts.settings.session_dir(session).join("setup"))
}

/// Which process keeps the command.
fn keeper_file(dir: &RunDir) -> PathBuf {
    dir.path().join("keeper.json")
}
