//! The `wake` FIFO as the keeper reads it. A byte in it means that the outbox may have grown. A hub keeps it open for writing
//! as long as it has the run, so the keeper also learns from it whether there is a hub.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::OFlags;

use crate::run_dir::RunDir;

/// Whether a hub has the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hub {
    Present,
    Absent,
}

/// Readable when a byte has come, or the hub has gone.
pub(super) struct Wake {
    fifo: File,
    /// Reports each change once: the FIFO itself stays readable for as long as there is no hub.
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

    /// Forgets that it was woken.
    pub(super) fn drain(&self) {
        let mut events = Vec::with_capacity(1);
        let _ = epoll::wait(&self.changes, spare_capacity(&mut events), Some(&Timespec::default()));
        let mut bytes = [0; 512];
        while (&self.fifo).read(&mut bytes).is_ok_and(|read| read > 0) {}
    }

    /// Whether there is a hub. Before the first one came, it counts as present.
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
    fn hubs_come_and_go() {
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
