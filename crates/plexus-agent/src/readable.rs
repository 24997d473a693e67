//! File descriptors that tokio waits for: pidfds and inotify, which it has no types of its own for.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Has tokio watch when `fd` can be read. Needs a tokio runtime.
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open for as long as it lives and never becomes another descriptor, and nobody
    // gets it out of the `AsyncFd` by `get_mut`.
    let watched = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    Ok(watched?)
}
