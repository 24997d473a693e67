//! Limits libgit2 to the configuration of the repository. Every command of every session can write the user's
//! configuration (`~/.gitconfig`), and libgit2 opens every file that it includes: a FIFO there would block the
//! worktrees of all sessions.

use git2::{ConfigLevel, opts};

use crate::Result;

/// Makes libgit2 ignore the configuration, ignore and attributes files of the user and the system in this process.
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
    // SAFETY: as above.
    Ok(unsafe { opts::set_verify_owner_validation(false) }?)
}
