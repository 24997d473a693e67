//! The end of a worktree: its files, what git keeps of it, and its branch. Only paths the hub itself remembers are
//! touched. The files are set aside in one step before the first of them goes, so that a hub that dies on the way
//! leaves nothing that looks like somebody's changes.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use plexus_protocol::worktree::Worktree;

use crate::error::at;
use crate::files::missing_is_fine;
use crate::{Result, admin_dir, name, open};

/// Removes a worktree with its branch, whatever is in it; what is gone already is no error.
pub fn remove(worktree: &Worktree) -> Result<()> {
    let path = Path::new(&worktree.path);
    let aside = path.with_file_name(format!(".removing-{}", name(worktree)?));
    missing_is_fine(std::fs::rename(path, &aside)).map_err(at(path))?;
    remove_tree(&aside).map_err(at(&aside))?;
    let admin = admin_dir(worktree)?;
    remove_tree(&admin).map_err(at(&admin))?;
    match open(&worktree.repo)?.find_reference(&format!("refs/heads/{}", worktree.branch)) {
        Ok(mut branch) => branch.delete()?,
        Err(error) if error.code() == git2::ErrorCode::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    for emptied in [path.parent(), admin.parent()].into_iter().flatten() {
        // Others may be in it.
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
