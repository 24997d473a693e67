//! Identifies a process reliably. A pid is reused after a while; a pid with its start time and boot id is not. The hub
//! stores this identity in its database to find its keepers again.

use std::io;

use serde::{Deserialize, Serialize};

use crate::proc::{self, State};

/// One process of one boot.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: i32,
    /// The start time, in clock ticks after boot.
    pub start_time: u64,
    /// The boot that the pid and the start time belong to.
    pub boot_id: String,
}

impl ProcessIdentity {
    /// The process that currently has this pid. `NotFound` if no process has it.
    pub fn of(pid: i32) -> io::Result<Self> {
        Ok(Self { pid, start_time: proc::stat(pid)?.start_time, boot_id: proc::boot_id()? })
    }

    /// Whether this process is still running. A zombie is not.
    pub fn is_alive(&self) -> bool {
        proc::boot_id().is_ok_and(|boot_id| boot_id == self.boot_id)
            && proc::stat(self.pid)
                .is_ok_and(|stat| stat.start_time == self.start_time && stat.state == State::Alive)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::*;

    #[test]
    fn a_process_is_identified_by_pid_start_time_and_boot() {
        let own = ProcessIdentity::of(std::process::id() as i32).unwrap();
        assert!(own.is_alive());
        assert!(!ProcessIdentity { start_time: own.start_time + 1, ..own.clone() }.is_alive());
        assert!(!ProcessIdentity { boot_id: "another".to_owned(), ..own }.is_alive());
    }

    #[test]
    fn a_zombie_is_dead() {
        let mut child = Command::new("true").env_clear().env("PATH", "/usr/bin:/bin").spawn().unwrap();
        let identity = ProcessIdentity::of(child.id() as i32).unwrap();
        let pid = Pid::from_raw(identity.pid).unwrap();
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(!identity.is_alive(), "it has ended, though nobody has reaped it yet");
        child.wait().unwrap();
        assert_eq!(ProcessIdentity::of(identity.pid).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
