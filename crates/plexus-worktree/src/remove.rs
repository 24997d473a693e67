//! Deletes a worktree: its files, git's data about it, and its branch. It touches only paths that the hub recorded. It
//! first renames the directory in one step, so that a crash during deletion leaves nothing that looks like changes of a
//! session.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use plexus_protocol::worktree::Worktree;

use crate::error::at;
use crate::files::missing_is_fine;
use crate::layout::{check_admin_dir, check_references};
use crate::{Result, admin_dir, name, open};

/// Deletes a worktree with its branch, whatever its content. Missing parts are not an error.
pub fn remove(worktree: &Worktree) -> Result<()> {
    let path = Path::new(&worktree.path);
    let aside = path.with_file_name(format!(".removing-{}", name(worktree)?));
    missing_is_fine(std::fs::rename(path, &aside)).map_err(at(path))?;
    remove_tree(&aside).map_err(at(&aside))?;
    let admin = admin_dir(worktree)?;
    check_admin_dir(worktree.repo.as_ref(), name(worktree)?)?;
    remove_tree(&admin).map_err(at(&admin))?;
    check_references(worktree.repo.as_ref(), &worktree.branch)?;
    match open(&worktree.repo)?.find_reference(&format!("refs/heads/{}", worktree.branch)) {
        Ok(mut branch) => branch.delete()?,
        Err(error) if error.code() == git2::ErrorCode::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    for emptied in [path.parent(), admin.parent()].into_iter().flatten() {
        // The directory may contain other worktrees.
        let _ = std::fs::remove_dir(emptied);
    }
    Ok(())
}

fn remove_tree(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        // Some tools write-protect their directories.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mut waiting = vec![path.to_owned()];
            while let Some(dir) = waiting.pop() {
                std::fs::set_permissions(&dir, Permissions::from_mode(0o700))?;
                for entry in dir.read_dir()? {
                    let entry = entry?;
                    if entry.file_type()?.is_dir() {
                        waiting.push(entry.path());
                    }
                }
            }
            std::fs::remove_dir_all(path)
        }
        outcome => missing_is_fine(outcome),
    }
}
