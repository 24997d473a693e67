//! The hub's handle on a keeper. It starts a keeper, attaches to it again after a restart, waits for its end and stops
//! it reliably. Other code decides when a run starts or ends.

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
use tracing::Level;

use crate::command_line::Launch;
use crate::identity::ProcessIdentity;
use crate::process_tree::sweep;
use crate::readable::readable;
use crate::run_dir::{RunDir, append_to};
use crate::timing::{TIMING, TIMING_ARG};

/// Longer than a keeper needs to stop its child within its own limits, unless the disk is slow or full.
const STOP_LIMIT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// A keeper process, held by a pidfd so that a signal never reaches another process that reuses its pid.
#[derive(Debug)]
pub struct Keeper {
    identity: ProcessIdentity,
    pidfd: Arc<AsyncFd<OwnedFd>>,
}

impl Keeper {
    /// Writes `launch.json` and starts `plexus keep DIR` with exactly the environment `env`, which is the child's. The
    /// keeper starts the child only after the go line is in the outbox. Needs a tokio runtime.
    pub fn start(
        plexus: &Path,
        dir: &RunDir,
        launch: &Launch,
        env: &BTreeMap<OsString, OsString>,
    ) -> io::Result<Self> {
        launch.write(dir)?;
        let stderr = append_to(&dir.stderr())?;
        let run = std::path::absolute(dir.path())?;
        // The keeper calls `setsid` itself. Doing it here would require a fork of the whole hub.
        let mut child = Command::new(std::path::absolute(plexus)?)
            .arg0("plexus")
            .arg("keep")
            .arg(&run)
            .args(tracing::enabled!(target: TIMING, Level::TRACE).then_some(TIMING_ARG))
            .current_dir(&run)
            .env_clear()
            .envs(env)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()?;
        // The child is not reaped yet, so the pid is still its own even if it has already exited.
        let held = Pid::from_raw(child.id().cast_signed())
            .ok_or_else(|| io::Error::from(Errno::SRCH))
            .and_then(|pid| Ok(Self { identity: ProcessIdentity::of(pid.as_raw_pid())?, pidfd: hold(pid)? }));
        match held {
            Ok(keeper) => {
                let pidfd = Arc::clone(&keeper.pidfd);
                // The task ends with the keeper or with the runtime. Nothing needs to wait for it.
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

    /// Attaches to a keeper that an earlier hub started; `None` if that process has ended. Needs a tokio runtime.
    pub fn attach(identity: &ProcessIdentity) -> io::Result<Option<Self>> {
        let Some(pid) = Pid::from_raw(identity.pid) else { return Ok(None) };
        let pidfd = match hold(pid) {
            Ok(pidfd) => pidfd,
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Checked after opening the pidfd: only then are pid and pidfd known to be the same process.
        Ok(identity.is_alive().then(|| Self { identity: identity.clone(), pidfd }))
    }

    /// The identity by which a later hub finds this process.
    pub fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// Returns once the keeper has ended, immediately if it already has. Cancel safe.
    pub async fn ended(&self) {
        ended(&self.pidfd).await;
    }

    /// Asks the keeper to stop its child and then exit (SIGTERM). Succeeds if the keeper has already ended.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Kills the keeper. Its child dies with it, but the child's descendants do not: see [`sweep`].
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// Stops the keeper, its child and all descendants, and returns when none of them is left.
    ///
    /// The keeper first gets time for an orderly stop. Afterwards, every process with the session's id in its
    /// environment is killed, repeatedly until none is left.
    pub async fn stop(&self, dir: &RunDir, session_id: &str) {
        if let Err(error) = self.terminate() {
            tracing::warn!(session_id, %error, "cannot tell a keeper to stop");
        }
        if tokio::time::timeout(STOP_LIMIT, self.ended()).await.is_err() {
            tracing::warn!(session_id, pid = self.identity.pid, "a keeper did not stop in time; killing it");
            if let Err(error) = self.kill() {
                tracing::warn!(session_id, %error, "cannot kill a keeper");
            }
        }
        sweep_all(session_id).await;
        if let Err(error) = dir.remove_secrets() {
            tracing::warn!(session_id, %error, "cannot delete the MCP config of a run");
        }
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(self.pidfd.get_ref(), signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Kills every process with the session's id in its environment, and returns when none is left: whether there was one.
pub async fn sweep_all(session_id: &str) -> bool {
    let (mut pause, mut found) = (FIRST_PAUSE, false);
    loop {
        let id = session_id.to_owned();
        match tokio::task::spawn_blocking(move || sweep(&id)).await {
            Ok(Ok(0)) => return found,
            Ok(Ok(swept)) => {
                found = true;
                tracing::debug!(session_id, swept, "killed remaining processes of a session");
            }
            Ok(Err(error)) => {
                tracing::warn!(session_id, %error, "cannot search for remaining processes of a session")
            }
            Err(error) => {
                tracing::warn!(session_id, %error, "cannot search for remaining processes of a session")
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Returns once the parent of this process has ended; never if the parent is not visible. Needs a tokio runtime.
pub async fn parent_ended() {
    let Some(parent) = getppid() else { return std::future::pending().await };
    match hold(parent) {
        // Checked after opening the pidfd: only then are pid and pidfd known to be the same process.
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
        // Fails only during shutdown of the runtime, which also drops this future.
        let Ok(mut guard) = pidfd.readable().await else { return std::future::pending().await };
        // Reported readiness may be spurious. A pidfd is readable exactly when its process has ended.
        let polled = guard.try_io(|pidfd| {
            let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
            match poll(&mut fds, Some(&Timespec::default()))? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        if let Ok(Ok(())) = polled {
            return;
        }
    }
}
