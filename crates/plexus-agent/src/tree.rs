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

/// Kills (SIGKILL) every process whose environment holds `PLEXUS_SESSION_ID=<session_id>`, the session's
/// keepers included, and never the caller itself. Returns how many there were: at zero the tree is empty.
pub fn sweep(session_id: &str) -> io::Result<usize> {
    let variable = format!("{SESSION_ID_VARIABLE}={session_id}");
    let own = std::process::id();
    let mut swept = 0;
    for pid in proc::pids()? {
        if pid.unsigned_abs() == own || !proc::environment_holds(pid, variable.as_bytes()) {
            continue;
        }
        let Some(pid) = Pid::from_raw(pid) else { continue };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(Errno::SRCH) => continue,
            Err(error) => return Err(error.into()),
        };
        // Looked at again: only now is it certain that the pid and the pidfd are the same process, or that
        // the signal goes nowhere.
        if !proc::environment_holds(pid.as_raw_pid(), variable.as_bytes()) {
            continue;
        }
        match pidfd_send_signal(&pidfd, Signal::KILL) {
            Ok(()) => swept += 1,
            Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(swept)
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
        let mut swept = waiting("tree-test-a");
        let mut spared = waiting("tree-test-ab");
        assert_eq!(sweep("tree-test-a").unwrap(), 1);
        assert!(!swept.wait().unwrap().success());
        assert_eq!(sweep("tree-test-a").unwrap(), 0);
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
