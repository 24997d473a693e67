//! Detects without polling that a directory was deleted, renamed or replaced. The kernel sends SIGIO when an entry of
//! the directory or of one of its ancestors is removed or renamed (`F_NOTIFY`). inotify would also work, but a user has
//! few instances (128 by default) and a hub may have a thousand keepers.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat, open, readlink};

/// `DN_DELETE | DN_RENAME | DN_MULTISHOT` of `fcntl.h`, which `libc` does not define.
const REMOVED_OR_RENAMED: libc::c_uint = 0x0000_0008 | 0x0000_0010 | 0x8000_0000;

/// Watches a directory until dropped.
#[derive(Debug)]
pub struct DirWatch {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    /// The path that the kernel reports, with links resolved.
    path_at_start: Option<CString>,
    dir: OwnedFd,
    _above: Vec<OwnedFd>,
}

/// Whether a directory is still at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirState {
    /// It is still at its path.
    Present,
    /// The path is missing or leads to another directory.
    Gone,
}

impl DirWatch {
    /// Watches `dir` and all its ancestors. From now on this process receives SIGIO when something may have changed. It
    /// must have a handler: without one the signal terminates the process.
    ///
    /// On a system without `F_NOTIFY` no signal arrives, but [`DirWatch::state`] still works.
    ///
    /// # Errors
    ///
    /// When the directory does not exist or cannot be read.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let path = std::path::absolute(dir)?;
        let dir = watch(&path)?;
        let resolved = path.canonicalize()?;
        // The path may contain links, and the directories they point to can also be renamed.
        let folders: BTreeSet<&Path> = path.ancestors().skip(1).chain(resolved.ancestors().skip(1)).collect();
        // Skips directories that can be entered but not read: their entries cannot be watched.
        let above = folders.into_iter().filter_map(|folder| watch(folder).ok()).collect();
        let found = fstat(&dir)?;
        let path_at_start = current_path(&dir);
        Ok(Self { path, identity: (found.st_dev, found.st_ino), path_at_start, dir, _above: above })
    }

    /// Whether the directory is still at its path.
    pub fn state(&self) -> DirState {
        let same = match self.path.metadata() {
            Ok(found) => (found.dev(), found.ino()) == self.identity,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::StaleNetworkFileHandle => false,
                // For example, an ancestor temporarily denies access. The directory's own descriptor still shows
                // whether it was renamed or deleted, which requires no permission.
                _ => current_path(&self.dir) == self.path_at_start,
            },
        };
        if same { DirState::Present } else { DirState::Gone }
    }
}

/// Opens a directory and makes the kernel report removed and renamed entries.
fn watch(dir: &Path) -> io::Result<OwnedFd> {
    let dir = open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: the descriptor is open, and the call takes two numbers.
    unsafe { libc::fcntl(dir.as_raw_fd(), libc::F_NOTIFY, REMOVED_OR_RENAMED) };
    Ok(dir)
}

/// The path that the kernel reports for an open directory; a deleted one has a distinct name. `None` without `/proc`.
fn current_path(dir: &OwnedFd) -> Option<CString> {
    readlink(format!("/proc/self/fd/{}", dir.as_raw_fd()), Vec::new()).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Watches `home/a/b`, applies a change, and waits for the signal.
    fn after(change: impl FnOnce(&Path)) -> DirState {
        after_in("a/b", change)
    }

    /// Watches this directory below a home directory, applies a change, and waits for the signal.
    fn after_in(watched: &str, change: impl FnOnce(&Path)) -> DirState {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(watched);
        std::fs::create_dir_all(&dir).unwrap();
        let signalled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGIO, Arc::clone(&signalled)).unwrap();
        let watch = DirWatch::new(&dir).unwrap();
        assert_eq!(watch.state(), DirState::Present);
        change(home.path());
        while !signalled.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        watch.state()
    }

    #[test]
    fn a_deleted_renamed_or_replaced_directory_is_gone() {
        assert_eq!(after(|home| std::fs::remove_dir_all(home.join("a")).unwrap()), DirState::Gone);
        assert_eq!(
            after(|home| std::fs::rename(home.join("a/b"), home.join("a/c")).unwrap()),
            DirState::Gone
        );
        assert_eq!(after(|home| std::fs::rename(home.join("a"), home.join("c")).unwrap()), DirState::Gone);
        assert_eq!(
            after(|home| {
                std::fs::rename(home.join("a"), home.join("c")).unwrap();
                std::fs::create_dir_all(home.join("a/b")).unwrap();
            }),
            DirState::Gone
        );
    }

    /// A run directory is seven levels below the parent of the data directory's parent.
    #[test]
    fn a_renamed_ancestor_at_any_level_is_detected() {
        let moved = |home: &Path| std::fs::rename(home.join("a"), home.join("z")).unwrap();
        assert_eq!(after_in("a/b/c/d/e/f/g/h/i", moved), DirState::Gone);
    }

    #[test]
    fn the_target_of_a_link_is_watched_as_well() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join("real/deep/dir")).unwrap();
        std::os::unix::fs::symlink(home.path().join("real/deep"), home.path().join("link")).unwrap();
        let signalled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGIO, Arc::clone(&signalled)).unwrap();
        let watch = DirWatch::new(&home.path().join("link/dir")).unwrap();
        std::fs::rename(home.path().join("real"), home.path().join("moved")).unwrap();
        while !signalled.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        assert_eq!(watch.state(), DirState::Gone);
    }

    #[test]
    fn an_inaccessible_directory_is_gone_only_if_it_was_renamed_or_deleted() {
        // A link to itself cannot be followed. The error does not reveal whether the directory exists.
        let unreachable = |home: &Path, instead: &str| {
            std::fs::rename(home.join("a"), home.join(instead)).unwrap();
            std::os::unix::fs::symlink(home.join("a"), home.join("a")).unwrap();
        };
        assert_eq!(after(|home| unreachable(home, "c")), DirState::Gone);
        let (home, forbidden) = (tempfile::tempdir().unwrap(), std::fs::Permissions::from_mode(0o000));
        let dir = home.path().join("a/b");
        std::fs::create_dir_all(&dir).unwrap();
        signal_hook::flag::register(signal_hook::consts::SIGIO, Arc::default()).unwrap();
        let watch = DirWatch::new(&dir).unwrap();
        std::fs::set_permissions(home.path().join("a"), forbidden).unwrap();
        let state = watch.state();
        std::fs::set_permissions(home.path().join("a"), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(state, DirState::Present, "its permissions may be restored");
    }

    #[test]
    fn changes_beside_the_directory_do_not_affect_it() {
        let removed = |home: &Path| {
            std::fs::write(home.join("a/file"), "").unwrap();
            std::fs::remove_file(home.join("a/file")).unwrap();
        };
        assert_eq!(after(removed), DirState::Present);
    }
}
