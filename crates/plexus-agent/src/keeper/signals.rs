//! The signals the keeper hears, turned into something `poll` can wait for.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGIO, SIGTERM};
use signal_hook::low_level::pipe;

/// Readable whenever a signal has come.
pub(super) struct Signals {
    pipe: UnixStream,
    terminate: Arc<AtomicBool>,
    directory_changed: Arc<AtomicBool>,
}

impl Signals {
    /// From here on SIGTERM, SIGCHLD and SIGIO wake the keeper, SIGHUP and SIGINT do nothing.
    ///
    /// The last two are caught rather than ignored: a signal that is ignored stays so in the child and in
    /// every command it runs, one that is caught does not.
    pub(super) fn catch() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        let terminate = Arc::new(AtomicBool::new(false));
        // Before the pipe: whoever is woken by it finds the flag set.
        signal_hook::flag::register(SIGTERM, Arc::clone(&terminate))?;
        // Set, so that it is looked at once: it may have gone before it was watched.
        let directory_changed = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register(SIGIO, Arc::clone(&directory_changed))?;
        for signal in [SIGTERM, SIGCHLD, SIGHUP, SIGINT, SIGIO] {
            pipe::register(signal, writer.try_clone()?)?;
        }
        Ok(Self { pipe: reader, terminate, directory_changed })
    }

    /// Forgets that it was woken.
    pub(super) fn drain(&self) {
        let mut bytes = [0; 512];
        while (&self.pipe).read(&mut bytes).is_ok_and(|read| read > 0) {}
    }

    /// Whether a SIGTERM has come, now or before.
    pub(super) fn terminate(&self) -> bool {
        self.terminate.load(Ordering::Relaxed)
    }

    /// Whether a watched directory may have changed since this was asked last.
    pub(super) fn take_directory_changed(&self) -> bool {
        self.directory_changed.swap(false, Ordering::Relaxed)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
