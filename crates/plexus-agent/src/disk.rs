//! How much room a disk has, for hub and keeper alike.

use std::io;
use std::os::fd::AsFd;

/// How many bytes the file system of an open file or directory has for us.
pub fn free_bytes(file: impl AsFd) -> io::Result<u64> {
    let state = rustix::fs::fstatvfs(file)?;
    Ok(state.f_bavail.saturating_mul(state.f_frsize))
}
