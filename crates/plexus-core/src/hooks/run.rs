//! Runs the commands of a callback concurrently in the children's sandbox, and waits until none of their processes remain. Each command
//! receives the callback's input, read from the journal, on stdin. After a crash, the next hub finds the commands by their directories
//! and ends them.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;
use plexus_agent::{MAX_LINE, RunDir};
use plexus_claude::HookEvent;
use plexus_protocol::claudecode::HookCommand;
use plexus_protocol::{JournalRange, SessionId};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::output::{HookOutcome, MAX_STDOUT, read};
use crate::Settings;
use crate::processes::environment::environment;
use crate::processes::sandboxed_command::{
    CommandEnd, CommandIo, EndedCommand, SandboxedCommand, stop_orphaned_command,
};
use crate::shared_parts::Parts;

/// The time limit of a command that sets none.
const DEFAULT_TIMEOUT_SECS: u64 = 60;
/// The longest time limit.
pub(super) const MAX_TIMEOUT_SECS: u64 = 600;
/// The number of lines of stderr that a denial shows.
const STDERR_LINES: usize = 20;

/// The commands of a callback.
#[derive(Debug, Clone)]
pub(crate) struct HookRun {
    pub(crate) session: SessionId,
    pub(crate) event: HookEvent,
    pub(crate) commands: Vec<HookCommand>,
    pub(crate) working_dir: String,
    /// The variables of the session.
    pub(crate) env: BTreeMap<String, String>,
    /// The journal of the run, and the line of the callback in it.
    pub(crate) journal: PathBuf,
    pub(crate) at: JournalRange,
}

impl HookRun {
    /// Runs the commands to their ends. `None` if they were cancelled or the hub shuts down.
    pub(crate) async fn run(self, parts: &Parts, cancelled: &CancellationToken) -> Option<HookOutcome> {
        let first = self.commands.first().map(|command| command.command.clone()).unwrap_or_default();
        let stdin = match self.input() {
            Ok(stdin) => stdin,
            Err(why) => return Some(HookOutcome::of_failure(self.event, &first, why)),
        };
        let ended =
            join_all(self.commands.iter().map(|command| self.run_one(parts, command, &stdin, cancelled)))
                .await;
        let mut outcome = HookOutcome::default();
        for (command, ended) in self.commands.iter().zip(ended) {
            let said = match ended {
                Ok(EndedCommand { how: CommandEnd::Closing | CommandEnd::Cancelled, .. }) => return None,
                Ok(ended) => read(self.event, &ended),
                Err(error) => Err(format!("it could not be started: {error}")),
            };
            outcome.add(self.event, &command.command, said);
        }
        Some(outcome)
    }

    async fn run_one(
        &self,
        parts: &Parts,
        command: &HookCommand,
        stdin: &[u8],
        cancelled: &CancellationToken,
    ) -> std::io::Result<EndedCommand> {
        let id = uuid::Uuid::new_v4().to_string();
        let path = hooks_dir(&parts.settings).join(&id);
        let mut env = environment(&parts.settings, self.session, &self.env);
        env.insert("CLAUDE_PROJECT_DIR".into(), self.working_dir.clone().into());
        let sandboxed = SandboxedCommand {
            marker: marker(&id),
            dir: RunDir::new(path.clone()),
            program: "sh".into(),
            args: vec!["-c".to_owned(), command.command.clone()],
            working_dir: self.working_dir.clone().into(),
            env,
            io: CommandIo::Captured { stdin: stdin.to_vec(), most_stdout: MAX_STDOUT },
            within: Duration::from_secs(command.timeout.unwrap_or(DEFAULT_TIMEOUT_SECS)),
        };
        let ended = parts.commands().run(sandboxed, STDERR_LINES, cancelled).await;
        if let Err(error) = std::fs::remove_dir_all(&path) {
            tracing::warn!(session = %self.session, %error, "cannot delete the files of a hook");
        }
        ended
    }

    /// The input of the callback, as Claude Code wrote it.
    fn input(&self) -> Result<Vec<u8>, String> {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(borrow)]
            request: Callback<'a>,
        }
        #[derive(Deserialize)]
        struct Callback<'a> {
            #[serde(borrow)]
            input: &'a RawValue,
        }
        let cannot = |why: String| format!("the hub cannot read the callback: {why}");
        let length = usize::try_from(self.at.end.saturating_sub(self.at.start)).unwrap_or(usize::MAX);
        // Longer lines never become a callback.
        if length > MAX_LINE + 2 {
            return Err(cannot("it is too long".to_owned()));
        }
        let mut line = vec![0; length];
        File::open(&self.journal)
            .and_then(|journal| journal.read_exact_at(&mut line, self.at.start))
            .map_err(|error| cannot(error.to_string()))?;
        let line: Line<'_> = serde_json::from_slice(&line).map_err(|error| cannot(error.to_string()))?;
        Ok(line.request.input.get().as_bytes().to_vec())
    }
}

/// Ends the commands that a killed hub left running. Runs before any door opens, so that their processes cannot connect.
pub(crate) async fn stop_orphaned_hooks(settings: &Settings) {
    let left = std::fs::read_dir(hooks_dir(settings)).into_iter().flatten().flatten();
    let stop = |path: PathBuf| async move {
        let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        stop_orphaned_command(&RunDir::new(path.clone()), &marker(&id)).await;
        if let Err(error) = std::fs::remove_dir_all(&path) {
            tracing::warn!(%error, "cannot delete the files of a hook that an earlier hub left");
        }
    };
    join_all(left.map(|entry| stop(entry.path()))).await;
}

/// The directory for the files of running hooks.
fn hooks_dir(settings: &Settings) -> PathBuf {
    settings.data_dir.join("hooks")
}

/// The id in the environment of a hook's processes. It is not the session's id, because the processes with that id end with the
/// session's run.
fn marker(id: &str) -> String {
    format!("hook-{id}")
}
