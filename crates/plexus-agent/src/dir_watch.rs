//! Notices that a directory was deleted, renamed or replaced, without polling: the kernel sends SIGIO when an entry of the
//! directory, or of those above it, is removed or renamed (`F_NOTIFY`). inotify would do as well, but a user has few
//! instances of it (128 by default), and a hub may have a thousand keepers.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat, open};

/// `DN_DELETE | DN_RENAME | DN_MULTISHOT` of `fcntl.h`, which `libc` does not have.
const REMOVED_OR_RENAMED: libc::c_uint = 0x0000_0008 | 0x0000_0010 | 0x8000_0000;

/// A directory that is watched while this lives.
#[derive(Debug)]
pub struct DirWatch {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    _watched: Vec<OwnedFd>,
}

/// Whether a directory is still where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirState {
    /// It is.
    There,
    /// Nothing is, or another one.
    Gone,
}

impl DirWatch {
    /// Watches `dir` and that many of the directories above it. From here on this process gets SIGIO when something may have
    /// changed, for which it has to have a handler: without one the signal ends the process.
    ///
    /// A system without `F_NOTIFY` sends nothing; the state can still be asked for.
    pub fn new(dir: &Path, above: usize) -> io::Result<Self> {
        let path = std::path::absolute(dir)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut watched = Vec::new();
        for folder in path.ancestors().take(above + 1) {
            match open(folder, flags, Mode::empty()) {
                Ok(folder) => watched.push(folder),
                // One that may be entered and not read; what happens in it is not ours to see.
                Err(_) if !watched.is_empty() => continue,
                Err(error) => return Err(error.into()),
            }
        }
        for folder in &watched {
            // SAFETY: the descriptor is open, and the call takes two numbers.
            unsafe { libc::fcntl(folder.as_raw_fd(), libc::F_NOTIFY, REMOVED_OR_RENAMED) };
        }
        let first = watched.first().ok_or(io::ErrorKind::NotFound)?;
        let found = fstat(first)?;
        Ok(Self { path, identity: (found.st_dev, found.st_ino), _watched: watched })
    }

    /// Whether it is still there. What cannot be looked at for another reason counts as there.
    pub fn state(&self) -> DirState {
        match self.path.metadata() {
            Ok(found) if (found.dev(), found.ino()) == self.identity => DirState::There,
            Ok(_) => DirState::Gone,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => DirState::Gone,
                _ => DirState::There,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Watches `home/a/b`, does something, and waits for the signal.
    fn after(change: impl FnOnce(&Path)) -> DirState {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a/b");
        std::fs::create_dir_all(&dir).unwrap();
        let signalled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGIO, Arc::clone(&signalled)).unwrap();
        let watch = DirWatch::new(&dir, 2).unwrap();
        assert_eq!(watch.state(), DirState::There);
        change(home.path());
        while !signalled.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        watch.state()
    }

    #[test]
    fn what_is_deleted_renamed_or_replaced_is_gone() {
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

    #[test]
    fn what_happens_beside_it_leaves_it_there() {
        let removed = |home: &Path| {
            std::fs::write(home.join("a/file"), "").unwrap();
            std::fs::remove_file(home.join("a/file")).unwrap();
        };
        assert_eq!(after(removed), DirState::There);
    }
}
