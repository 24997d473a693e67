//! Finds the processes of a session beyond its keeper. Normally the keeper stops all descendants of its child. If the
//! keeper itself was killed, the session's id in the environment of every descendant still identifies them.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::proc;

/// The variable in the environment of every descendant of a child.
pub const SESSION_ID_VARIABLE: &str = "PLEXUS_SESSION_ID";

/// The longest walk up the tree. It is deeper than any real tree and guarantees that a walk ends.
const MAX_DEPTH: usize = 10_000;

/// Kills (SIGKILL) every process whose environment holds `PLEXUS_SESSION_ID=<session_id>`, but never the caller. Only
/// root can read the environment of the session's keepers; they are found by their identity instead. Returns the number
/// of processes found: zero means that the tree is empty.
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

/// Sends a signal to all descendants of this process, wherever they moved, but not to this process.
pub(crate) fn signal_below(signal: Signal) {
    let own = std::process::id().cast_signed();
    let mut found = proc::children(own);
    let mut checked = 0;
    // The list grows during the walk: first the children, then their children.
    while let Some(&pid) = found.get(checked) {
        checked += 1;
        let below = proc::children(pid).into_iter().filter(|child| !found.contains(child));
        found.extend(below.collect::<Vec<_>>());
    }
    for pid in found {
        // A process that cannot be signalled is found again in the next step, and by the final sweep.
        let _ = signal_if(pid, signal, |pid| pid != own && descends_from(pid, &[own]));
    }
}

/// Signals a process if `is_ours` still holds once its pidfd is open. Returns whether it did.
///
/// The check follows the opening of the pidfd. Only then is it certain that pid and pidfd are the same process, or that
/// the signal has no effect.
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

/// Whether `pid` is one of `ancestors` or a descendant of one.
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
        // Another run of this test may be in progress on the same machine.
        let session = format!("tree-test-{}", std::process::id());
        let mut swept = waiting(&session);
        let mut spared = waiting(&format!("{session}-b"));
        assert_eq!(sweep(&session).unwrap(), 1);
        assert!(!swept.wait().unwrap().success());
        assert_eq!(sweep(&session).unwrap(), 0);
        assert_eq!(spared.try_wait().unwrap(), None, "another session's process still runs");
        drop(spared.stdin.take());
        assert!(spared.wait().unwrap().success());
    }

    #[test]
    fn a_process_descends_from_itself_and_all_its_ancestors() {
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
