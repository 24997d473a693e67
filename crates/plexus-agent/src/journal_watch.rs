//! Wakes readers of journals that may have grown. All journals share one inotify instance, because a thousand instances
//! would exceed the kernel's limit. An agent can exhaust its user's inotify instances and watches; a journal without an
//! inotify watch is polled instead.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, watch};

use crate::readable::readable;

/// How often a journal without an inotify watch is polled.
const CHECK_EVERY: Duration = Duration::from_millis(250);

/// Watches the journals of all runs. Clones share one watch, which ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct JournalWatch {
    shared: Arc<Shared>,
    _tasks: Arc<Tasks>,
}

#[derive(Debug)]
struct Shared {
    /// `None` if the kernel grants no instance.
    inotify: Option<AsyncFd<OwnedFd>>,
    journals: Mutex<Journals>,
    /// Notified when a polled journal was added.
    check: Notify,
}

#[derive(Debug, Default)]
struct Journals {
    /// Keyed by watch descriptor. Two readers of one file share a descriptor and a sender.
    watched: HashMap<i32, watch::Sender<()>>,
    /// Keyed by an internal number.
    checked: HashMap<u64, Checked>,
    next: u64,
}

/// A journal that is polled.
#[derive(Debug)]
struct Checked {
    path: PathBuf,
    size: u64,
    grown: watch::Sender<()>,
}

impl Checked {
    fn check(&mut self) {
        let size = size_of(&self.path);
        if size != self.size {
            self.size = size;
            self.grown.send_replace(());
        }
    }
}

fn size_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |found| found.len())
}

#[derive(Debug)]
struct Tasks(Vec<tokio::task::AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

/// Tests whether the kernel grants this user an inotify instance and a watch.
///
/// # Errors
///
/// When all of them are in use.
pub fn try_inotify() -> io::Result<()> {
    let inotify = init(CreateFlags::CLOEXEC)?;
    add_watch(&inotify, "/", WatchFlags::MODIFY)?;
    Ok(())
}

impl JournalWatch {
    /// Creates a watch without any files. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// When tokio cannot wait for the instance.
    pub fn new() -> io::Result<Self> {
        match init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
            Ok(inotify) => Ok(Self::start(Some(readable(inotify)?))),
            Err(error) => {
                tracing::warn!(
                    %error,
                    "this user has no inotify instance left: the hub checks journals every {} ms instead; \
                     see `plexus doctor`",
                    CHECK_EVERY.as_millis()
                );
                Ok(Self::start(None))
            }
        }
    }

    fn start(inotify: Option<AsyncFd<OwnedFd>>) -> Self {
        let shared = Arc::new(Shared { inotify, journals: Mutex::default(), check: Notify::new() });
        let tasks =
            [tokio::spawn(forward_events(Arc::clone(&shared))), tokio::spawn(check(Arc::clone(&shared)))];
        let tasks = tasks.iter().map(tokio::task::JoinHandle::abort_handle).collect();
        Self { shared, _tasks: Arc::new(Tasks(tasks)) }
    }

    /// Starts watching one file.
    pub(crate) fn add(&self, path: &Path) -> Watched {
        // Locked during both steps, so that every event finds its descriptor registered.
        let mut journals = self.shared.journals();
        let (key, grown) = match self.shared.descriptor(path) {
            Some(descriptor) => {
                let sender = journals.watched.entry(descriptor).or_insert_with(|| watch::Sender::new(()));
                (Key::Descriptor(descriptor), sender.subscribe())
            }
            None => {
                let number = journals.next;
                journals.next += 1;
                let (sender, grown) = watch::channel(());
                let checked = Checked { path: path.to_owned(), size: size_of(path), grown: sender };
                journals.checked.insert(number, checked);
                self.shared.check.notify_one();
                (Key::Number(number), grown)
            }
        };
        drop(journals);
        Watched { watch: self.clone(), key, grown }
    }
}

#[derive(Debug, Clone, Copy)]
enum Key {
    Descriptor(i32),
    Number(u64),
}

/// One watched file. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct Watched {
    watch: JournalWatch,
    key: Key,
    grown: watch::Receiver<()>,
}

impl Watched {
    /// Reports only growth from now on. Call this before reading the file.
    pub(crate) fn mark_seen(&mut self) {
        self.grown.mark_unchanged();
    }

    /// Returns when the file may have grown since it was marked as seen. Cancel safe.
    pub(crate) async fn grown(&mut self) {
        if self.grown.changed().await.is_err() {
            // The file was deleted, so it never grows again.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut journals = self.watch.shared.journals();
        match self.key {
            Key::Number(number) => _ = journals.checked.remove(&number),
            // One receiver belongs to this value. A descriptor that the kernel has released is no longer in the map.
            Key::Descriptor(descriptor) => {
                let last = |sender: &watch::Sender<()>| sender.receiver_count() == 1;
                if journals.watched.get(&descriptor).is_some_and(last) {
                    journals.watched.remove(&descriptor);
                    if let Some(inotify) = &self.watch.shared.inotify {
                        let _ = remove_watch(inotify, descriptor);
                    }
                }
            }
        }
    }
}

impl Shared {
    fn journals(&self) -> MutexGuard<'_, Journals> {
        // The maps are consistent after every step, so a panic elsewhere cannot have corrupted them.
        self.journals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an inotify watch for a file; `None` if the kernel grants none.
    fn descriptor(&self, path: &Path) -> Option<i32> {
        match add_watch(self.inotify.as_ref()?, path, WatchFlags::MODIFY) {
            Ok(descriptor) => Some(descriptor),
            Err(error) => {
                let every = CHECK_EVERY.as_millis();
                tracing::warn!(%error, "inotify cannot watch a journal: the hub checks it every {every} ms \
                    instead");
                None
            }
        }
    }

    fn wake_all(&self) {
        self.journals().watched.values().for_each(|sender| {
            sender.send_replace(());
        });
    }

    /// Forwards all pending events; returns `WouldBlock` when none is left.
    fn wake_readers(&self, inotify: &OwnedFd) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(inotify, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.wake_all();
            } else if event.events().contains(ReadFlags::IGNORED) {
                self.journals().watched.remove(&event.wd());
            } else if let Some(sender) = self.journals().watched.get(&event.wd()) {
                sender.send_replace(());
            }
        }
    }
}

async fn forward_events(shared: Arc<Shared>) {
    let Some(inotify) = &shared.inotify else { return };
    loop {
        let Ok(mut guard) = inotify.readable().await else { return };
        if let Ok(Err(error)) = guard.try_io(|inotify| shared.wake_readers(inotify.get_ref())) {
            tracing::error!(%error, "cannot read inotify events; the hub checks journals at intervals instead");
            shared.wake_all();
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }
}

/// Polls the journals without an inotify watch, as long as any exist.
async fn check(shared: Arc<Shared>) {
    loop {
        shared.check.notified().await;
        while !shared.journals().checked.is_empty() {
            tokio::time::sleep(CHECK_EVERY).await;
            shared.journals().checked.values_mut().for_each(Checked::check);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[tokio::test]
    async fn growth_is_detected_without_inotify() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut file = std::fs::File::create(&path).unwrap();
        let watch = JournalWatch::start(None);
        let (mut one, mut two) = (watch.add(&path), watch.add(&path));
        for _ in 0..2 {
            file.write_all(b"line\n").unwrap();
            one.grown().await;
            two.grown().await;
        }
        drop(two);
        file.write_all(b"line\n").unwrap();
        one.grown().await;
        drop(one);
        assert!(watch.shared.journals().checked.is_empty());
    }

    #[test]
    fn only_a_journal_that_has_grown_wakes_its_reader() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (grown, mut reader) = watch::channel(());
        let mut checked = Checked { path: path.clone(), size: 0, grown };
        for (content, wakes) in [("", false), ("line\n", true), ("line\n", false), ("line\nline\n", true)] {
            std::fs::write(&path, content).unwrap();
            checked.check();
            assert_eq!(reader.has_changed().unwrap(), wakes, "{content:?}");
            reader.mark_unchanged();
        }
    }

    #[tokio::test]
    async fn a_file_that_inotify_cannot_watch_is_polled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let watch = JournalWatch::new().unwrap();
        // inotify rejects a missing file, as it rejects a watch above the limit.
        let mut watched = watch.add(&path);
        std::fs::write(&path, "line\n").unwrap();
        watched.grown().await;
    }
}
