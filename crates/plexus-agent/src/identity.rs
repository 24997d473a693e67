//! Which process is meant, beyond doubt: a pid comes back after a while, a pid with its start time and the
//! boot it belongs to does not. The hub keeps this in its database and finds its keepers again by it.

use std::io;

use serde::{Deserialize, Serialize};

use crate::proc::{self, State};

/// One process of one start of the machine.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct ProcessIdentity {
    /// Its process id.
    pub pid: i32,
    /// When it started, in clock ticks after boot.
    pub start_time: u64,
    /// The start of the machine that both belong to.
    pub boot_id: String,
}

impl ProcessIdentity {
    /// Who has this pid now. `NotFound` when nobody has.
    pub fn of(pid: i32) -> io::Result<Self> {
        Ok(Self { pid, start_time: proc::stat(pid)?.start_time, boot_id: proc::boot_id()? })
    }

    /// Whether that very process still runs. A zombie does not.
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
    fn a_pid_alone_is_not_enough() {
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
