//! Turns the keeper's signals into a descriptor that `poll` can wait for.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGIO, SIGTERM};
use signal_hook::low_level::pipe;

/// Readable after a signal has arrived.
pub(super) struct Signals {
    pipe: UnixStream,
    terminate: Arc<AtomicBool>,
    directory_changed: Arc<AtomicBool>,
}

impl Signals {
    /// From now on SIGTERM, SIGCHLD and SIGIO wake the keeper, and SIGHUP and SIGINT have no effect.
    ///
    /// The last two are caught rather than ignored: the child and all its commands inherit an ignored signal, but not a
    /// caught one.
    pub(super) fn catch() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        let terminate = Arc::new(AtomicBool::new(false));
        // Registered before the pipe, so that the flag is set when the pipe wakes the keeper.
        signal_hook::flag::register(SIGTERM, Arc::clone(&terminate))?;
        // Initially set, so that the directory is checked once: it may have disappeared before it was watched.
        let directory_changed = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register(SIGIO, Arc::clone(&directory_changed))?;
        for signal in [SIGTERM, SIGCHLD, SIGHUP, SIGINT, SIGIO] {
            pipe::register(signal, writer.try_clone()?)?;
        }
        Ok(Self { pipe: reader, terminate, directory_changed })
    }

    /// Clears pending wakes.
    pub(super) fn drain(&self) {
        let mut bytes = [0; 512];
        while (&self.pipe).read(&mut bytes).is_ok_and(|read| read > 0) {}
    }

    /// Whether SIGTERM has arrived at any time.
    pub(super) fn terminate(&self) -> bool {
        self.terminate.load(Ordering::Relaxed)
    }

    /// Whether a watched directory may have changed since the last call.
    pub(super) fn take_directory_changed(&self) -> bool {
        self.directory_changed.swap(false, Ordering::Relaxed)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
