//! Reports the free disk space, for the hub and the keeper.

use std::io;
use std::os::fd::AsFd;

/// The free bytes available to this user on the file system of an open file or directory.
pub fn free_bytes(file: impl AsFd) -> io::Result<u64> {
    let state = rustix::fs::fstatvfs(file)?;
    Ok(state.f_bavail.saturating_mul(state.f_frsize))
}
