//! Limits libgit2 to the configuration of the repository. Every command of every session can write the user's
//! configuration (`~/.gitconfig`), and libgit2 opens every file that it includes: a FIFO there would block the
//! worktrees of all sessions. This module also makes libgit2 sync what it writes.

use std::ffi::c_int;

use git2::{ConfigLevel, opts};
use libgit2_sys::GIT_OPT_ENABLE_FSYNC_GITDIR;

use crate::Result;

/// Makes libgit2 ignore the configuration, ignore and attributes files of the user and the system in this process, and
/// sync what it writes to a repository.
///
/// A repository of another user opens without `safe.directory`, which only those files can contain: this also disables
/// the owner check. The check exists because git runs programs that a repository names; libgit2 runs none.
///
/// # Safety
/// No other thread may use libgit2 meanwhile: these are global variables of the library.
pub unsafe fn read_repository_configuration_only() -> Result<()> {
    for level in [ConfigLevel::ProgramData, ConfigLevel::System, ConfigLevel::XDG, ConfigLevel::Global] {
        // SAFETY: the caller ensures that no other thread uses the library.
        unsafe { opts::set_search_path(level, "") }?;
    }
    // SAFETY: as above. This option takes one `int`. libgit2 then syncs objects and references before it renames them:
    // after a power failure, a branch must not be an empty file.
    let synced = unsafe { libgit2_sys::git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR as c_int, 1 as c_int) };
    if synced < 0 {
        return Err(git2::Error::last_error(synced).into());
    }
    // SAFETY: as above.
    Ok(unsafe { opts::set_verify_owner_validation(false) }?)
}
