//! Landlock's signal scope, for systems that deny a PID namespace. The processes of a child can signal only each other.
//! It requires Linux 6.12 and does not hide outside processes.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The kernel's `struct landlock_ruleset_attr`.
#[repr(C)]
struct Ruleset {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

const LANDLOCK_SCOPE_SIGNAL: u64 = 1 << 1;

/// Puts this process and all its descendants into a domain that no signal leaves. Needs CAP_SYS_ADMIN in the user
/// namespace, which avoids `no_new_privs`. An older kernel does not support the scope and returns an error.
pub(super) fn restrict() -> io::Result<()> {
    let ruleset = Ruleset { handled_access_fs: 0, handled_access_net: 0, scoped: LANDLOCK_SCOPE_SIGNAL };
    // SAFETY: the kernel reads the structure, whose size is passed.
    let created = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const ruleset, size_of::<Ruleset>(), 0_u32)
    };
    let Ok(descriptor @ 0..) = i32::try_from(created) else { return Err(io::Error::last_os_error()) };
    // SAFETY: the kernel has just created this descriptor for us.
    let ruleset = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: the call takes a descriptor and a number.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
