//! Programs that deliver notifications. They are started without a shell, get the notice on stdin, and are killed if
//! they take too long. The number of running and of waiting programs is limited, and nothing waits for them.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::notice::Notice;
use crate::NotifyBy;
use crate::processes::environment::DATABASE_VARIABLES;
use crate::tasks::Tasks;

/// The maximum number of running programs.
const MAX_RUNNING: usize = 4;
/// The maximum number of waiting notices; further ones are dropped.
const MAX_WAITING: usize = 64;
/// The time limit for one program.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the configured programs.
pub(super) struct Programs {
    by: Vec<NotifyBy>,
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    tasks: Tasks,
}

impl Programs {
    pub(super) fn new(by: Vec<NotifyBy>, tasks: Tasks) -> Self {
        let (running, waiting) =
            (Arc::new(Semaphore::new(MAX_RUNNING)), Arc::new(Semaphore::new(MAX_WAITING)));
        Self { by, running, waiting, tasks }
    }

    /// Delivers a notice in every configured way, without waiting for it.
    pub(super) fn deliver(&self, notice: &Notice) {
        for method in &self.by {
            let Ok(waiting_permit) = Arc::clone(&self.waiting).try_acquire_owned() else {
                tracing::warn!(notice = notice.title, "dropped a notification, because too many are waiting");
                continue;
            };
            let (command, input) = command(method, notice);
            let running = Arc::clone(&self.running);
            let program = command.as_std().get_program().to_string_lossy().into_owned();
            let delivery = async move {
                // The semaphore is never closed.
                let turn = running.acquire_owned().await;
                drop(waiting_permit);
                if let Err(error) = run(command, &input, TIMEOUT).await {
                    tracing::warn!(program, %error, "cannot deliver a notification");
                }
                drop(turn);
            };
            // A hub that shuts down does not wait for the programs: they are killed.
            self.tasks.spawn_until_closing(delivery);
        }
    }
}

fn command(method: &NotifyBy, notice: &Notice) -> (Command, Vec<u8>) {
    let mut command = match method {
        NotifyBy::Command(words) => {
            let mut words = words.iter();
            let mut command = Command::new(words.next().map_or("", String::as_str));
            command.args(words);
            command
        }
        NotifyBy::Desktop => {
            let mut command = Command::new("notify-send");
            // Desktops interpret the text as markup.
            let text = notice.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            command.args(["--app-name=plexus", "--", &notice.title, &text]);
            command
        }
    };
    for name in DATABASE_VARIABLES {
        command.env_remove(name);
    }
    command
        .env("PLEXUS_NOTICE", notice.kind)
        .env("PLEXUS_NOTICE_SESSION", &notice.session)
        .env("PLEXUS_NOTICE_TITLE", &notice.title)
        .env("PLEXUS_NOTICE_TEXT", &notice.text)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A process group of its own, so that a Ctrl-C for the hub does not reach it.
        .process_group(0)
        .kill_on_drop(true);
    (command, notice.data.to_string().into_bytes())
}

async fn run(mut command: Command, input: &[u8], within: Duration) -> Result<(), String> {
    let mut child = command.spawn().map_err(|error| format!("the program cannot be started: {error}"))?;
    let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let stdin = child.stdin.take();
    let delivery = async {
        if let Some(mut stdin) = stdin {
            // A program may ignore its stdin.
            let _ = stdin.write_all(input).await;
        }
        child.wait().await
    };
    match timeout(within, delivery).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("the program failed ({status})")),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => {
            // The process has not been reaped, so the group id is still its own.
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            Err(format!("the program took longer than {} s and was killed", within.as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::{Path, PathBuf};

    use rustix::fs::{CWD, FlockOperation, Mode, flock, mkfifoat};
    use serde_json::json;
    use tempfile::TempDir;
    use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
    use tokio::net::unix::pipe;

    use super::*;

    /// The time limit for each step of a test.
    const LIMIT: Duration = Duration::from_secs(20);

    /// A pipe on which the test programs report what they do. It ends when all its writers are gone.
    struct Reports {
        folder: TempDir,
        lines: Lines<BufReader<pipe::Receiver>>,
    }

    impl Reports {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("heard");
            mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
            let receiver = pipe::OpenOptions::new().open_receiver(&path).unwrap();
            Self { folder, lines: BufReader::new(receiver).lines() }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("heard")
        }

        async fn line(&mut self) -> Option<String> {
            timeout(LIMIT, self.lines.next_line()).await.expect("a report arrives").unwrap()
        }
    }

    fn notice() -> Notice {
        let (title, text) = ("worker asks".to_owned(), String::new());
        Notice { kind: "approval", session: "worker".to_owned(), title, text, data: json!({}) }
    }

    fn script(script: &str, given: &[&Path]) -> NotifyBy {
        let given = given.iter().map(|path| path.display().to_string());
        let words = ["sh", "-c", script, "sh"].map(str::to_owned);
        NotifyBy::Command(words.into_iter().chain(given).collect())
    }

    #[tokio::test]
    async fn a_program_that_exceeds_its_time_limit_is_killed_with_its_descendants() {
        let mut reports = Reports::new();
        let waits = script("exec 3> $1; echo waits >&3; sleep 1000 & sleep 1000", &[&reports.path()]);
        let (command, input) = command(&waits, &notice());
        let running = tokio::spawn(async move { run(command, &input, Duration::from_secs(2)).await });
        assert_eq!(reports.line().await.as_deref(), Some("waits"));
        assert_eq!(reports.line().await, None, "all writers are closed");
        assert_eq!(running.await.unwrap(), Err("the program took longer than 2 s and was killed".to_owned()));
    }

    #[tokio::test]
    async fn the_number_of_running_and_waiting_programs_is_limited() {
        let mut reports = Reports::new();
        let writer = File::options().write(true).open(reports.path()).unwrap();
        let gate = File::create(reports.folder.path().join("gate")).unwrap();
        flock(&gate, FlockOperation::LockExclusive).unwrap();
        let waits = script(
            "echo begins > $1; flock --shared $2 true; echo ends > $1",
            &[&reports.path(), &reports.folder.path().join("gate")],
        );
        let tasks = Tasks::default();
        let programs = Programs::new(vec![waits], tasks.clone());
        for _ in 0..MAX_RUNNING {
            programs.deliver(&notice());
        }
        for _ in 0..MAX_RUNNING {
            assert_eq!(reports.line().await.as_deref(), Some("begins"));
        }
        for _ in 0..MAX_WAITING + 10 {
            programs.deliver(&notice());
        }
        flock(&gate, FlockOperation::Unlock).unwrap();
        timeout(LIMIT, tasks.wait()).await.expect("all of them end");
        drop(writer);
        let (mut running, mut started) = (MAX_RUNNING, MAX_RUNNING);
        while let Some(line) = reports.line().await {
            match line.as_str() {
                "begins" => (running, started) = (running + 1, started + 1),
                _ => running -= 1,
            }
            assert!(running <= MAX_RUNNING, "{running} run at once");
        }
        assert_eq!((running, started), (0, MAX_RUNNING + MAX_WAITING), "notices over the limit are dropped");
    }
}
