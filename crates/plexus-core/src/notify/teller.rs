//! Programs that tell: started without a shell, given the notice on stdin, ended when they take too long. Only so many run
//! at once and only so many wait; nobody waits for them.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Telling;
use super::notice::Notice;

/// How many programs run at once.
const AT_ONCE: usize = 4;
/// How many wait for their turn; what comes beyond is not told.
const WAITING: usize = 64;
/// How long one may take.
const WITHIN: Duration = Duration::from_secs(10);

/// The programs.
pub(super) struct Tellers {
    by: Vec<Telling>,
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Tellers {
    pub(super) fn new(by: Vec<Telling>, tasks: TaskTracker, closing: CancellationToken) -> Self {
        let (running, waiting) = (Arc::new(Semaphore::new(AT_ONCE)), Arc::new(Semaphore::new(WAITING)));
        Self { by, running, waiting, tasks, closing }
    }

    /// Tells it every way, some time soon.
    pub(super) fn tell(&self, notice: &Notice) {
        for telling in &self.by {
            let Ok(place) = Arc::clone(&self.waiting).try_acquire_owned() else {
                tracing::warn!(notice = notice.title, "not told: too many notices wait");
                continue;
            };
            let (command, input) = command(telling, notice);
            let running = Arc::clone(&self.running);
            let program = command.as_std().get_program().to_string_lossy().into_owned();
            let told = async move {
                // It is never closed.
                let turn = running.acquire_owned().await;
                drop(place);
                if let Err(error) = run(command, &input).await {
                    tracing::warn!(program, %error, "a notice was not told");
                }
                drop(turn);
            };
            let closing = self.closing.clone();
            // A hub that goes away does not wait for them: they are ended.
            self.tasks.spawn(async move { closing.run_until_cancelled(told).await });
        }
    }
}

fn command(telling: &Telling, notice: &Notice) -> (Command, Vec<u8>) {
    let mut command = match telling {
        Telling::Command(words) => {
            let mut words = words.iter();
            let mut command = Command::new(words.next().map_or("", String::as_str));
            command.args(words);
            command
        }
        Telling::Desktop => {
            let mut command = Command::new("notify-send");
            // Desktops read the text as markup.
            let text = notice.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            command.args(["--app-name=plexus", "--", &notice.title, &text]);
            command
        }
    };
    command
        .env("PLEXUS_NOTICE", notice.kind)
        .env("PLEXUS_NOTICE_SESSION", &notice.session)
        .env("PLEXUS_NOTICE_TITLE", &notice.title)
        .env("PLEXUS_NOTICE_TEXT", &notice.text)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Apart from the hub: a Ctrl-C there is not meant for it.
        .process_group(0)
        .kill_on_drop(true);
    (command, notice.data.to_string().into_bytes())
}

async fn run(mut command: Command, input: &[u8]) -> Result<(), String> {
    let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
    let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let stdin = child.stdin.take();
    let told = async {
        if let Some(mut stdin) = stdin {
            // Whoever does not read it does not want it.
            let _ = stdin.write_all(input).await;
        }
        child.wait().await
    };
    match timeout(WITHIN, told).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("it ended with {status}")),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => {
            // It has not been reaped: the group is its own.
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            Err(format!("it took longer than {} s", WITHIN.as_secs()))
        }
    }
}
