//! Wakes the readers of journals when these may have grown. All journals share one inotify instance (a thousand would exceed
//! the kernel's limit). An agent can use up the instances and watches that its user may have; a journal that inotify does not
//! watch is then checked by the clock.

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

/// How often the size of a journal is checked that inotify does not watch.
const CHECK_EVERY: Duration = Duration::from_millis(250);

/// Watches the journals of all runs. Clones are the same watch; it ends with the last of them.
#[derive(Clone, Debug)]
pub struct JournalWatch {
    shared: Arc<Shared>,
    _tasks: Arc<Tasks>,
}

#[derive(Debug)]
struct Shared {
    /// `None` where the kernel grants no instance.
    inotify: Option<AsyncFd<OwnedFd>>,
    journals: Mutex<Journals>,
    /// A journal was added that is checked by the clock.
    check: Notify,
}

#[derive(Debug, Default)]
struct Journals {
    /// By watch descriptor. Two readers of one file share a descriptor and a sender.
    watched: HashMap<i32, watch::Sender<()>>,
    /// By a number of ours.
    checked: HashMap<u64, Checked>,
    next: u64,
}

/// A journal that is checked by the clock.
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

/// Tries whether the kernel grants this user an inotify instance and a watch.
///
/// # Errors
/// When all of them are in use.
pub fn try_inotify() -> io::Result<()> {
    let inotify = init(CreateFlags::CLOEXEC)?;
    add_watch(&inotify, "/", WatchFlags::MODIFY)?;
    Ok(())
}

impl JournalWatch {
    /// Starts watching, with nothing to watch yet. Needs a tokio runtime.
    ///
    /// # Errors
    /// When tokio cannot wait for the instance.
    pub fn new() -> io::Result<Self> {
        match init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
            Ok(inotify) => Ok(Self::start(Some(readable(inotify)?))),
            Err(error) => {
                tracing::warn!(
                    %error,
                    "no inotify instance is left for this user: journals are checked every {} ms; see `plexus doctor`",
                    CHECK_EVERY.as_millis()
                );
                Ok(Self::start(None))
            }
        }
    }

    fn start(inotify: Option<AsyncFd<OwnedFd>>) -> Self {
        let shared = Arc::new(Shared { inotify, journals: Mutex::default(), check: Notify::new() });
        let tasks =
            [tokio::spawn(pass_on_wakes(Arc::clone(&shared))), tokio::spawn(check(Arc::clone(&shared)))];
        let tasks = tasks.iter().map(tokio::task::JoinHandle::abort_handle).collect();
        Self { shared, _tasks: Arc::new(Tasks(tasks)) }
    }

    /// Watches one file from now on.
    pub(crate) fn add(&self, path: &Path) -> Watched {
        // Held over both steps, so that an event never finds its descriptor unknown.
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

/// One watched file; the watch ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    watch: JournalWatch,
    key: Key,
    grown: watch::Receiver<()>,
}

impl Watched {
    /// From here on only growth that is yet to come counts. To be called before the file is read.
    pub(crate) fn mark_seen(&mut self) {
        self.grown.mark_unchanged();
    }

    /// Returns when the file may have grown since it was marked as seen. Cancel safe.
    pub(crate) async fn grown(&mut self) {
        if self.grown.changed().await.is_err() {
            // The file is gone for good: nothing will come any more.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut journals = self.watch.shared.journals();
        match self.key {
            Key::Number(number) => _ = journals.checked.remove(&number),
            // One receiver is ours. A descriptor that the kernel has let go is not in the map any more.
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
        // The maps are whole at every step, so a panic elsewhere has not harmed them.
        self.journals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watch on a file; `None` where the kernel grants none.
    fn descriptor(&self, path: &Path) -> Option<i32> {
        match add_watch(self.inotify.as_ref()?, path, WatchFlags::MODIFY) {
            Ok(descriptor) => Some(descriptor),
            Err(error) => {
                let every = CHECK_EVERY.as_millis();
                tracing::warn!(%error, "inotify refuses to watch a journal: it is checked every {every} ms");
                None
            }
        }
    }

    fn wake_all(&self) {
        self.journals().watched.values().for_each(|sender| {
            sender.send_replace(());
        });
    }

    /// Passes on all events there are; ends in `WouldBlock` when there are no more.
    fn pass_on(&self, inotify: &OwnedFd) -> io::Result<()> {
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

async fn pass_on_wakes(shared: Arc<Shared>) {
    let Some(inotify) = &shared.inotify else { return };
    loop {
        let Ok(mut guard) = inotify.readable().await else { return };
        if let Ok(Err(error)) = guard.try_io(|inotify| shared.pass_on(inotify.get_ref())) {
            tracing::error!(%error, "inotify cannot be read; journals are looked at by the clock");
            shared.wake_all();
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }
}

/// Checks the journals that inotify does not watch, for as long as there are any.
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
    async fn without_inotify_growth_is_noticed_all_the_same() {
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
    async fn a_file_that_inotify_does_not_watch_is_checked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let watch = JournalWatch::new().unwrap();
        // inotify refuses what does not exist, as it refuses a watch too many.
        let mut watched = watch.add(&path);
        std::fs::write(&path, "line\n").unwrap();
        watched.grown().await;
    }
}
