//! The attacker: a thread that renames and links paths in the working directory, the repository and the worktrees, as fast as it can.
//! Any command of an agent could do the same. It never accesses the data directory directly.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Repeats an attack until it is dropped.
pub struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    pub fn start(mut attack: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                attack();
            }
        });
        Self { stop, thread: Some(thread) }
    }

    /// Swaps one path of a child for a link to `target`, back and forth.
    pub fn between(path: PathBuf, link: PathBuf, target: &Path) -> anyhow::Result<Self> {
        symlink(target, &link)?;
        Ok(Self::start(move || exchange(&path, &link)))
    }

    /// The same for the path `inside` in each new worktree in `worktrees`. If `inside` is empty, it swaps the worktree itself.
    pub fn in_new_worktrees(worktrees: PathBuf, inside: &'static str, target: PathBuf) -> Self {
        let mut known = BTreeSet::new();
        Self::start(move || {
            for entry in worktrees.read_dir().into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with(['.', '!']) {
                    continue;
                }
                let link = worktrees.join(format!("!{name}"));
                if known.insert(name) {
                    let _ = symlink(&target, &link);
                }
                exchange(&entry.path().join(inside), &link);
            }
        })
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Exchanges two paths atomically, if both exist.
pub fn exchange(one: &Path, other: &Path) {
    let path = |path: &Path| PathBuf::from(path.to_string_lossy().trim_end_matches('/'));
    let _ = renameat_with(CWD, path(one), CWD, path(other), RenameFlags::EXCHANGE);
}
