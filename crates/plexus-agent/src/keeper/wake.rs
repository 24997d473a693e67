//! The keeper's end of the `wake` FIFO. A byte in it means that the outbox may have grown. The hub keeps the FIFO open
//! for writing while it owns the run, so the keeper also detects whether a hub is connected.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::OFlags;

use crate::run_dir::RunDir;

/// Whether a hub is connected to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hub {
    Present,
    Absent,
}

/// Readable when a byte has arrived or the hub has disconnected.
pub(super) struct Wake {
    fifo: File,
    /// Reports each change once. The FIFO itself stays readable while no hub is connected.
    changes: OwnedFd,
}

impl Wake {
    pub(super) fn open(dir: &RunDir) -> io::Result<Self> {
        let fifo =
            File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(dir.wake())?;
        let changes = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &changes,
            &fifo,
            epoll::EventData::new_u64(0),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        Ok(Self { fifo, changes })
    }

    /// Clears pending wakes.
    pub(super) fn drain(&self) {
        let mut events = Vec::with_capacity(1);
        let _ = epoll::wait(&self.changes, spare_capacity(&mut events), Some(&Timespec::default()));
        let mut bytes = [0; 512];
        while (&self.fifo).read(&mut bytes).is_ok_and(|read| read > 0) {}
    }

    /// Whether a hub is connected. Before the first one connects, it counts as present.
    pub(super) fn hub(&self) -> Hub {
        let mut fds = [PollFd::new(&self.fifo, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&Timespec::default()));
        if fds[0].revents().contains(PollFlags::HUP) { Hub::Absent } else { Hub::Present }
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn readable(wake: &Wake) -> bool {
        let mut fds = [PollFd::new(wake, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).unwrap() > 0
    }

    #[test]
    fn hubs_can_connect_and_disconnect_repeatedly() {
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().join("1"));
        dir.create().unwrap();
        let wake = Wake::open(&dir).unwrap();
        assert_eq!((wake.hub(), readable(&wake)), (Hub::Present, false));
        for _ in 0..2 {
            let mut hub = File::options().read(true).write(true).open(dir.wake()).unwrap();
            hub.write_all(b".").unwrap();
            assert!(readable(&wake));
            wake.drain();
            assert_eq!((wake.hub(), readable(&wake)), (Hub::Present, false));
            drop(hub);
            assert!(readable(&wake), "the end of a hub wakes the keeper");
            wake.drain();
            assert_eq!((wake.hub(), readable(&wake)), (Hub::Absent, false), "and wakes it once");
        }
    }
}
