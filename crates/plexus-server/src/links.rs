//! Symbolic links on the way to the data directory. A sandbox keeps agents from moving directories, but not from replacing a link, so
//! such a link would let an agent lead the operator's next command to a directory of its own.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The first link on the way to `path` that this user, and so an agent, can replace. Components that do not exist yet are no links.
///
/// # Errors
/// When a directory on the way cannot be searched.
pub(crate) fn replaceable_link(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut walked = PathBuf::new();
    for component in path.components() {
        let writable = access(&walked, Access::WRITE_OK).is_ok();
        walked.push(component);
        match walked.symlink_metadata() {
            Ok(found) if found.is_symlink() && writable => return Ok(Some(walked)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_anywhere_on_the_way_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::create_dir_all(real.join("below")).unwrap();
        symlink(&real, &link).unwrap();
        symlink("nowhere", folder.path().join("dangling")).unwrap();
        let found = |path: &str| replaceable_link(&folder.path().join(path)).unwrap();
        for path in ["link", "link/below", "link/missing/deeper", "link/../real", "real/../link"] {
            assert!(found(path).is_some_and(|found| found.ends_with("link")), "{path}");
        }
        assert!(found("dangling/data").is_some());
        for path in ["real", "real/below", "missing", "missing/link", "real/.."] {
            assert_eq!(found(path), None, "{path}");
        }
    }
}
