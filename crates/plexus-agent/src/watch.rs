//! One inotify instance for all journals (a thousand of them would be too many for the kernel's limit), and
//! the task that turns its events into wakes. It says that a journal may have grown, never by what.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use crate::readable::readable;

/// Never reached in practice; a reader is then woken this often instead.
const WITHOUT_INOTIFY: Duration = Duration::from_millis(100);

/// Watches the journals of all runs. Clones are the same watch; it ends with the last of them.
#[derive(Clone, Debug)]
pub struct JournalWatch {
    shared: Arc<Shared>,
    _task: Arc<Task>,
}

#[derive(Debug)]
struct Shared {
    inotify: AsyncFd<OwnedFd>,
    /// By watch descriptor. Two journals of one file have one descriptor, and one sender.
    watched: Mutex<HashMap<i32, watch::Sender<()>>>,
}

#[derive(Debug)]
struct Task(tokio::task::AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl JournalWatch {
    /// Starts watching, with nothing to watch yet. Needs a tokio runtime.
    pub fn new() -> io::Result<Self> {
        let inotify = readable(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?)?;
        let shared = Arc::new(Shared { inotify, watched: Mutex::default() });
        let task = tokio::spawn(pass_on_wakes(Arc::clone(&shared)));
        Ok(Self { shared, _task: Arc::new(Task(task.abort_handle())) })
    }

    /// Watches one file from now on.
    pub(crate) fn add(&self, path: &Path) -> io::Result<Watched> {
        // Held over both steps, so that an event never finds its descriptor unknown.
        let mut watched = self.shared.watched();
        let descriptor = add_watch(&self.shared.inotify, path, WatchFlags::MODIFY)?;
        let grown = watched.entry(descriptor).or_insert_with(|| watch::Sender::new(())).subscribe();
        drop(watched);
        Ok(Watched { watch: self.clone(), descriptor, grown })
    }
}

/// One watched file; the watch ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    watch: JournalWatch,
    descriptor: i32,
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
        let mut watched = self.watch.shared.watched();
        // One receiver is ours. A descriptor that the kernel has let go is not in the map any more.
        if watched.get(&self.descriptor).is_some_and(|sender| sender.receiver_count() == 1) {
            watched.remove(&self.descriptor);
            let _ = remove_watch(&self.watch.shared.inotify, self.descriptor);
        }
    }
}

impl Shared {
    fn watched(&self) -> MutexGuard<'_, HashMap<i32, watch::Sender<()>>> {
        // The map is whole at every step, so a panic elsewhere has not harmed it.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_all(&self) {
        self.watched().values().for_each(|sender| {
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
                self.watched().remove(&event.wd());
            } else if let Some(sender) = self.watched().get(&event.wd()) {
                sender.send_replace(());
            }
        }
    }
}

async fn pass_on_wakes(shared: Arc<Shared>) {
    loop {
        let Ok(mut guard) = shared.inotify.readable().await else { return };
        if let Ok(Err(error)) = guard.try_io(|inotify| shared.pass_on(inotify.get_ref())) {
            tracing::error!(%error, "inotify cannot be read; journals are looked at by the clock");
            shared.wake_all();
            tokio::time::sleep(WITHOUT_INOTIFY).await;
        }
    }
}
