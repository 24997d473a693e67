//! The hub's hold on a keeper: it starts one, finds one again after a restart, learns of its end, and ends
//! it for certain. Whether a run should start or end is decided elsewhere.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;

use crate::identity::ProcessIdentity;
use crate::launch::Launch;
use crate::readable::readable;
use crate::run_dir::{RunDir, append_to};
use crate::tree::sweep;

/// Longer than a keeper takes to end its child by its own limits, disk troubles aside.
const STOP_LIMIT: Duration = Duration::from_secs(10);
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// A keeper process, held by a pidfd: no signal of ours can reach a stranger that was given its pid.
#[derive(Debug)]
pub struct Keeper {
    identity: ProcessIdentity,
    pidfd: Arc<AsyncFd<OwnedFd>>,
}

impl Keeper {
    /// Writes `launch.json` and starts `plexus keep DIR` with exactly the environment `env`, which is the
    /// child's. Nothing else starts until the word to go is in the outbox. Needs a tokio runtime.
    pub fn start(
        plexus: &Path,
        dir: &RunDir,
        launch: &Launch,
        env: &BTreeMap<OsString, OsString>,
    ) -> io::Result<Self> {
        launch.write(dir)?;
        let stderr = append_to(&dir.stderr())?;
        let run = std::path::absolute(dir.path())?;
        // It leaves our process session by itself: asked for here, that would cost a fork of the whole hub.
        let mut child = Command::new(std::path::absolute(plexus)?)
            .arg0("plexus")
            .arg("keep")
            .arg(&run)
            .current_dir(&run)
            .env_clear()
            .envs(env)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()?;
        // Not reaped yet, so the pid is the child's even if it has ended already.
        let held = Pid::from_raw(child.id().cast_signed())
            .ok_or_else(|| io::Error::from(Errno::SRCH))
            .and_then(|pid| Ok(Self { identity: ProcessIdentity::of(pid.as_raw_pid())?, pidfd: hold(pid)? }));
        match held {
            Ok(keeper) => {
                let pidfd = Arc::clone(&keeper.pidfd);
                // It ends when the keeper does, and with the runtime; there is nothing in it to wait for.
                tokio::spawn(async move {
                    ended(&pidfd).await;
                    let _ = child.wait();
                });
                Ok(keeper)
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Takes hold of a keeper that an earlier hub started; `None` when that process is gone. Needs a tokio
    /// runtime.
    pub fn attach(identity: &ProcessIdentity) -> io::Result<Option<Self>> {
        let Some(pid) = Pid::from_raw(identity.pid) else { return Ok(None) };
        let pidfd = match hold(pid) {
            Ok(pidfd) => pidfd,
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Asked after the pidfd was opened: from here on the two are the same process.
        Ok(identity.is_alive().then(|| Self { identity: identity.clone(), pidfd }))
    }

    /// Which process it is, to be found again by.
    pub fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// Returns once the keeper has ended, at once if it has already. Cancel safe.
    pub async fn ended(&self) {
        ended(&self.pidfd).await;
    }

    /// Asks the keeper to end its child and then itself (SIGTERM). One that is gone is no error.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Kills the keeper; its child dies with it, though what that started does not: see [`sweep`].
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// Ends the keeper, its child and all that stems from it, and returns when nothing of it is left.
    ///
    /// The keeper is given the time to do it in order; then everything that carries the session's id in its
    /// environment is killed until there is no more.
    pub async fn stop(&self, dir: &RunDir, session_id: &str) {
        if let Err(error) = self.terminate() {
            tracing::warn!(session_id, %error, "a keeper could not be asked to end");
        }
        if tokio::time::timeout(STOP_LIMIT, self.ended()).await.is_err() {
            tracing::warn!(session_id, pid = self.identity.pid, "a keeper does not end and is killed");
            if let Err(error) = self.kill() {
                tracing::warn!(session_id, %error, "a keeper could not be killed");
            }
        }
        sweep_all(session_id).await;
        if let Err(error) = dir.remove_secrets() {
            tracing::warn!(session_id, %error, "the run's MCP config could not be removed");
        }
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(self.pidfd.get_ref(), signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Kills everything that carries the session's id in its environment, and returns when nothing of it is left.
pub async fn sweep_all(session_id: &str) {
    let mut look = FIRST_LOOK;
    loop {
        let id = session_id.to_owned();
        match tokio::task::spawn_blocking(move || sweep(&id)).await {
            Ok(Ok(0)) => break,
            Ok(Ok(swept)) => tracing::debug!(session_id, swept, "stragglers were killed"),
            Ok(Err(error)) => tracing::warn!(session_id, %error, "stragglers cannot be looked for"),
            Err(error) => tracing::warn!(session_id, %error, "stragglers cannot be looked for"),
        }
        tokio::time::sleep(look).await;
        look = (look * 2).min(LONGEST_LOOK);
    }
}

/// Returns once the process that started this one has ended; never where that process cannot be seen. Needs a tokio runtime.
pub async fn parent_ended() {
    let Some(parent) = getppid() else { return std::future::pending().await };
    match hold(parent) {
        // Asked after the pidfd was opened: from here on the two are the same process.
        Ok(pidfd) if getppid() == Some(parent) => ended(&pidfd).await,
        Err(_) if getppid() == Some(parent) => std::future::pending().await,
        Ok(_) | Err(_) => {}
    }
}

fn hold(pid: Pid) -> io::Result<Arc<AsyncFd<OwnedFd>>> {
    Ok(Arc::new(readable(pidfd_open(pid, PidfdFlags::empty())?)?))
}

async fn ended(pidfd: &AsyncFd<OwnedFd>) {
    loop {
        // It fails only while the runtime is being torn down, and this future with it.
        let Ok(mut guard) = pidfd.readable().await else { return std::future::pending().await };
        // Readiness may be reported in error; a pidfd is readable exactly when its process has ended.
        let looked = guard.try_io(|pidfd| {
            let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
            match poll(&mut fds, Some(&Timespec::default()))? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        if let Ok(Ok(())) = looked {
            return;
        }
    }
}
