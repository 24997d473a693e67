//! Checks the path of the data directory for symbolic links. The sandbox prevents agents from moving directories, but
//! not from replacing a link. An agent could use such a link to redirect the operator's next command to a directory of
//! its own.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The number of links to follow: the same as the kernel's limit.
const MAX_LINKS: usize = 40;

/// The first link in `path` that this user, and so an agent, can replace. Other links are followed. Components that do
/// not exist yet are not links.
///
/// # Errors
/// When a directory of the path cannot be searched, or links form a cycle.
pub(crate) fn replaceable_link(path: &Path) -> io::Result<Option<PathBuf>> {
    first_link(path, |folder| access(folder, Access::WRITE_OK).is_ok())
}

/// The first link in a directory for which `may_write` returns true.
fn first_link(path: &Path, may_write: impl Fn(&Path) -> bool) -> io::Result<Option<PathBuf>> {
    let mut walked = PathBuf::new();
    let mut ahead: Vec<PathBuf> = components(path);
    let mut links = 0;
    while let Some(component) = ahead.pop() {
        let writable = may_write(&walked);
        let here = walked.clone();
        walked.push(component);
        let found = match walked.symlink_metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !found.is_symlink() {
            continue;
        }
        links += 1;
        if writable {
            return Ok(Some(walked));
        }
        if links > MAX_LINKS {
            return Err(io::Error::other("too many symbolic links"));
        }
        ahead.extend(components(&walked.read_link()?));
        // An absolute target replaces the walked path; a relative one starts in the directory of the link.
        walked = here;
    }
    Ok(None)
}

/// The components of a path, in reverse order.
fn components(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|component| PathBuf::from(component.as_os_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_behind_one_that_cannot_be_replaced_is_found() {
        let (fixed, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = folder.path().join("link");
        std::fs::create_dir_all(folder.path().join("real/data")).unwrap();
        symlink("real", &link).unwrap();
        symlink(folder.path().join("link"), fixed.path().join("absolute")).unwrap();
        symlink(Path::new("..").join(folder.path().file_name().unwrap()), fixed.path().join("relative"))
            .unwrap();
        symlink("circle", fixed.path().join("circle")).unwrap();
        let is_folder = |dir: &Path| dir.canonicalize().ok() == folder.path().canonicalize().ok();
        let found = |path: &str| first_link(&fixed.path().join(path), is_folder);
        assert_eq!(found("absolute/data").unwrap(), Some(link));
        assert!(found("relative/link/data").unwrap().is_some());
        assert_eq!(found("relative/real/data").unwrap(), None);
        assert!(found("circle").is_err());
    }

    #[test]
    fn a_link_at_any_position_in_a_path_is_found() {
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
