//! The processes of a session beyond its keeper: the second net for what slipped the first one. The keeper
//! ends all that stems from its child; where a keeper itself was killed, the session's id in the environment
//! of everything it started still names them.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::proc;

/// The variable that is in the environment of everything that stems from a child.
pub const SESSION_ID_VARIABLE: &str = "PLEXUS_SESSION_ID";

/// Longest walk up the tree; deeper than any tree there is, so that a walk always ends.
const MAX_DEPTH: usize = 10_000;

/// Kills (SIGKILL) every process whose environment holds `PLEXUS_SESSION_ID=<session_id>`, and never the caller
/// itself. The session's keepers, whose environment only root can read, are found by their identity. Returns how many there were: at zero the tree is empty.
pub fn sweep(session_id: &str) -> io::Result<usize> {
    let variable = format!("{SESSION_ID_VARIABLE}={session_id}");
    let own = std::process::id().cast_signed();
    let carries_it = |pid| pid != own && proc::environment_holds(pid, variable.as_bytes());
    let mut swept = 0;
    for pid in proc::pids()?.filter(|&pid| carries_it(pid)) {
        swept += usize::from(signal_if(pid, Signal::KILL, carries_it)?);
    }
    Ok(swept)
}

/// Sends a signal to everything that stems from this process, wherever it went; never to this process.
pub(crate) fn signal_below(signal: Signal) {
    let own = std::process::id().cast_signed();
    let mut found = proc::children(own);
    let mut looked_at = 0;
    // It grows while it is walked: first children, then theirs.
    while let Some(&pid) = found.get(looked_at) {
        looked_at += 1;
        let below = proc::children(pid).into_iter().filter(|child| !found.contains(child));
        found.extend(below.collect::<Vec<_>>());
    }
    for pid in found {
        // One that cannot be signalled is met again in the next step, and by the sweep in the end.
        let _ = signal_if(pid, signal, |pid| pid != own && descends_from(pid, &[own]));
    }
}

/// Signals a process that is still ours once it is held; says whether it was.
///
/// Asked after its pidfd was opened: only then is it certain that the pid and the pidfd are the same process, or
/// that the signal goes nowhere.
fn signal_if(pid: i32, signal: Signal, is_ours: impl Fn(i32) -> bool) -> io::Result<bool> {
    let Some(held) = Pid::from_raw(pid) else { return Ok(false) };
    let pidfd = match pidfd_open(held, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(Errno::SRCH) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    if !is_ours(pid) {
        return Ok(false);
    }
    match pidfd_send_signal(&pidfd, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether `pid` is one of `ancestors`, or stems from one of them.
pub fn descends_from(pid: i32, ancestors: &[i32]) -> bool {
    let mut pid = pid;
    for _ in 0..MAX_DEPTH {
        if ancestors.contains(&pid) {
            return true;
        }
        match proc::stat(pid) {
            Ok(stat) if stat.parent > 0 => pid = stat.parent,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn waiting(session: &str) -> std::process::Child {
        Command::new("/bin/cat")
            .env_clear()
            .env(SESSION_ID_VARIABLE, session)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    #[test]
    fn a_sweep_reaches_its_own_session_only() {
        // Another run of this test may be under way on the same machine.
        let session = format!("tree-test-{}", std::process::id());
        let mut swept = waiting(&session);
        let mut spared = waiting(&format!("{session}-b"));
        assert_eq!(sweep(&session).unwrap(), 1);
        assert!(!swept.wait().unwrap().success());
        assert_eq!(sweep(&session).unwrap(), 0);
        assert_eq!(spared.try_wait().unwrap(), None, "another session's process goes on");
        drop(spared.stdin.take());
        assert!(spared.wait().unwrap().success());
    }

    #[test]
    fn descent_is_seen_over_generations() {
        let own = std::process::id() as i32;
        let parent = rustix::process::getppid().unwrap().as_raw_pid();
        assert!(descends_from(own, &[parent]));
        assert!(descends_from(own, &[own]));
        let mut stranger = waiting("tree-test-c");
        assert!(!descends_from(own, &[stranger.id() as i32]));
        assert!(descends_from(stranger.id() as i32, &[own]));
        drop(stranger.stdin.take());
        stranger.wait().unwrap();
        assert!(!descends_from(i32::MAX, &[own]));
    }
}
