//! Which git configuration libgit2 reads: that of the repository alone. Every command of every session can write the user's
//! (`~/.gitconfig`), and libgit2 opens every file that it includes: a FIFO there would block the worktrees of all sessions.

use git2::{ConfigLevel, opts};

use crate::Result;

/// Has libgit2 read no configuration, ignore or attributes file of the user or the system in this process.
///
/// A repository of another user is opened without `safe.directory`, which only those files can contain. The check is
/// there because git runs programs that a repository names; libgit2 runs none.
///
/// # Safety
/// No other thread may use libgit2 meanwhile: these are global variables of the library.
pub unsafe fn read_repository_configuration_only() -> Result<()> {
    for level in [ConfigLevel::ProgramData, ConfigLevel::System, ConfigLevel::XDG, ConfigLevel::Global] {
        // SAFETY: the caller sees to it that nobody else uses the library.
        unsafe { opts::set_search_path(level, "") }?;
    }
    // SAFETY: as above.
    Ok(unsafe { opts::set_verify_owner_validation(false) }?)
}
