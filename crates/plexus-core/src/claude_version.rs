//! Refuses a version of Claude Code that is too old, before a session is created. The version is what the launcher prints for
//! `--version` in the children's sandbox: agents may be able to replace the program, so the hub itself neither runs nor opens it.
//! The session machine checks the version that each process reports.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plexus_agent::RunDir;
use plexus_claude::{TooOld, Version};
use plexus_protocol::{Error, ErrorKind, SessionId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::processes::environment::environment;
use crate::processes::sandboxed_command::{CommandEnd, CommandIo, SandboxedCommand, stop_orphaned_command};
use crate::shared_parts::Parts;

/// How long a launcher may take to print the version.
const WITHIN: Duration = Duration::from_secs(10);
/// The maximum length of the printed text, in bytes.
const MAX_PRINTED: u64 = 4096;
/// The directory of running checks, in the data directory.
const DIR: &str = "version-checks";

/// The version of Claude Code, as far as this hub knows it.
pub(crate) struct ClaudeVersion {
    parts: Arc<Parts>,
    state: Mutex<State>,
}

enum State {
    /// No answer that can be remembered: a refusal is asked again, so that an update helps at once.
    Unknown,
    /// A check is running. All callers wait for its answer.
    Asking(watch::Receiver<Option<Answer>>),
    /// No further check is needed: the version is supported, or the program is not Claude Code.
    Accepted,
}

/// The answer of a launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Supported(Version),
    TooOld(TooOld),
    /// It printed no version of Claude Code.
    OtherProgram,
    /// It failed or did not end in time.
    Failed,
}

impl Answer {
    fn of(how: &CommandEnd, printed: &str) -> Self {
        match (how, Version::printed(printed)) {
            (CommandEnd::Exited(0), Some(version)) => match version.check() {
                Ok(()) => Self::Supported(version),
                Err(too_old) => Self::TooOld(too_old),
            },
            (CommandEnd::Exited(0), None) => Self::OtherProgram,
            _ => Self::Failed,
        }
    }

    /// Whether the answer is remembered. A program that is not Claude Code is remembered too; if it is incompatible, its handshake
    /// fails.
    fn is_final(self) -> bool {
        matches!(self, Self::Supported(_) | Self::OtherProgram)
    }
}

impl ClaudeVersion {
    pub(crate) fn new(parts: Arc<Parts>) -> Arc<Self> {
        Arc::new(Self { parts, state: Mutex::new(State::Unknown) })
    }

    /// Refuses a version that is too old. An unknown version is not refused: the gate protects every call, and a process that reports
    /// an old version is stopped.
    pub(crate) async fn check(self: &Arc<Self>) -> Result<(), Error> {
        let Some(mut answer) = self.current_check() else { return Ok(()) };
        let answer = answer.wait_for(Option::is_some).await.ok().and_then(|answer| *answer);
        match answer {
            Some(Answer::TooOld(too_old)) => {
                Err(Error::new(ErrorKind::ClaudeTooOld, format!("{too_old}: {}", TooOld::FIX)))
            }
            _ => Ok(()),
        }
    }

    /// The running check, or a new one; `None` if the version was accepted.
    fn current_check(self: &Arc<Self>) -> Option<watch::Receiver<Option<Answer>>> {
        let mut state = self.lock();
        match &*state {
            State::Accepted => None,
            State::Asking(answer) => Some(answer.clone()),
            State::Unknown => {
                let (sender, answer) = watch::channel(None);
                *state = State::Asking(answer.clone());
                let this = Arc::clone(self);
                // A task of its own: it stops the launcher even if every caller has disconnected.
                self.parts.tasks.spawn(async move {
                    let answer = this.ask().await;
                    tracing::debug!(?answer, "asked for the version of Claude Code");
                    *this.lock() = if answer.is_final() { State::Accepted } else { State::Unknown };
                    sender.send_replace(Some(answer));
                });
                Some(answer)
            }
        }
    }

    /// Runs the launcher with `--version` in the children's sandbox.
    async fn ask(&self) -> Answer {
        let settings = &self.parts.settings;
        let id = SessionId::random();
        let dir = RunDir::new(settings.data_dir.join(DIR).join(id.to_string()));
        let command = SandboxedCommand {
            marker: id.to_string(),
            dir: dir.clone(),
            program: settings.claude.program().to_owned(),
            args: settings.claude.args_before(vec!["--version".to_owned()]),
            working_dir: "/".into(),
            env: environment(settings, id, &BTreeMap::new()),
            io: CommandIo::Captured { stdin: Vec::new(), most_stdout: MAX_PRINTED },
            within: WITHIN,
        };
        let ended = self.parts.commands().run(command, 0, &CancellationToken::new()).await;
        let removed = tokio::task::spawn_blocking(move || dir.remove(Duration::ZERO)).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, "cannot delete the files of a check of Claude Code's version");
        }
        match ended {
            Ok(ended) => Answer::of(&ended.how, &String::from_utf8_lossy(&ended.stdout)),
            Err(error) => {
                tracing::warn!(%error, "cannot ask for the version of Claude Code");
                Answer::Failed
            }
        }
    }

    /// Ends the checks that a killed hub left running.
    pub(crate) async fn recover(&self) {
        let left = std::fs::read_dir(self.parts.settings.data_dir.join(DIR)).into_iter().flatten().flatten();
        for check in left {
            let dir = RunDir::new(check.path());
            stop_orphaned_command(&dir, &check.file_name().to_string_lossy()).await;
            if let Err(error) = dir.remove(Duration::ZERO) {
                tracing::warn!(%error, "cannot delete the files of a check of Claude Code's version");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_printed_version_below_the_oldest_is_refused() {
        let of = |how: CommandEnd, printed: &str| Answer::of(&how, printed);
        let old = Version::parse("2.0.75").unwrap().check().unwrap_err();
        assert_eq!(of(CommandEnd::Exited(0), "2.0.75 (Claude Code)\n"), Answer::TooOld(old));
        let oldest = Answer::Supported(Version::OLDEST);
        assert_eq!(of(CommandEnd::Exited(0), &format!("{} (Claude Code)\n", Version::OLDEST)), oldest);
        assert_eq!(of(CommandEnd::Exited(0), "1.0.0 (another program)"), Answer::OtherProgram);
        for failed in
            [CommandEnd::Exited(1), CommandEnd::Signalled(9), CommandEnd::TimedOut, CommandEnd::Closing]
        {
            assert_eq!(of(failed, "2.0.75 (Claude Code)"), Answer::Failed);
        }
    }

    #[test]
    fn a_refusal_and_a_failure_are_asked_again() {
        let old = Version::parse("2.0.75").unwrap().check().unwrap_err();
        assert!(Answer::Supported(Version::OLDEST).is_final() && Answer::OtherProgram.is_final());
        assert!(!Answer::TooOld(old).is_final() && !Answer::Failed.is_final());
    }
}
