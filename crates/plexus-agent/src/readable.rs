//! Lets tokio wait for file descriptors that it has no types for: pidfds and inotify.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers `fd` with tokio for readability. Needs a tokio runtime.
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open for its lifetime and never becomes another descriptor, and no code takes it out
    // of the `AsyncFd` through `get_mut`.
    let watched = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    Ok(watched?)
}
