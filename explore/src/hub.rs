//! Hubs, one after the other, and calls to whichever is there. A call that is cut off, by a kill or by its caller, is
//! made again, as a client would.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plexus_book::{Book, Commits, Meter};
use plexus_store::{Committed, Ledger as _, StoreError};
use shuttle::rand::Rng as _;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::disk::{Connection, Disk};
use crate::scenario::new_session;

/// Nothing is measured here.
struct Unmetered;

impl Meter for Unmetered {
    fn committed(&self, _after: Duration, _outcome: &Result<Committed, StoreError>) {}

    fn hold(&self) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

/// One hub's life.
pub(crate) struct Hub {
    pub(crate) commits: Arc<Commits>,
    pub(crate) book: Book,
    pub(crate) connection: Connection,
    /// Whoever asks holds it, as one task owns a session.
    pub(crate) owner: tokio::sync::Mutex<()>,
    tasks: Mutex<Option<Vec<AbortHandle>>>,
}

impl Hub {
    async fn start(disk: &Arc<Mutex<Disk>>) -> Arc<Self> {
        let connection = Connection::to(disk);
        let commits = Arc::new(Commits::new(Arc::new(connection.clone()), Arc::new(Unmetered)));
        let book = Book::new(Arc::clone(&commits));
        let owner = tokio::sync::Mutex::new(());
        let hub = Arc::new(Self { commits, book, connection, owner, tasks: Mutex::new(Some(Vec::new())) });
        let told = Arc::downgrade(&hub);
        hub.connection.observe(Box::new(move |committed| {
            if let Some(hub) = told.upgrade() {
                hub.book.on_commit(committed);
                hub.commits.publish(committed);
            }
        }));
        hub.commits.retry(|| hub.book.recover()).await;
        let deadlines = Arc::clone(&hub);
        hub.own(&tokio::spawn(async move { deadlines.book.run_expiry().await }).abort_handle());
        hub
    }

    /// A task that ends with this hub; at once, if that is gone.
    pub(crate) fn own(&self, task: &AbortHandle) {
        let task = task.clone();
        // No lock may be held where another task could go on, and that is wherever one is ended.
        let late = match &mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(tasks) => {
                tasks.push(task);
                None
            }
            None => Some(task),
        };
        if let Some(task) = late {
            task.abort();
        }
    }

    fn kill(&self) {
        self.connection.die();
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).take();
        tasks.into_iter().flatten().for_each(|task| task.abort());
    }
}

/// The disk, and the hub that is there now, if one is.
pub(crate) struct World {
    disk: Arc<Mutex<Disk>>,
    hub: watch::Sender<Option<Arc<Hub>>>,
    cut_off: std::sync::atomic::AtomicU32,
}

impl World {
    pub(crate) async fn new() -> Arc<Self> {
        let disk = Arc::new(Mutex::new(Disk::new(new_session())));
        let hub = Hub::start(&disk).await;
        Arc::new(Self { disk, hub: watch::channel(Some(hub)).0, cut_off: 0.into() })
    }

    /// Kills the hub.
    pub(crate) fn kill(&self) {
        if let Some(hub) = self.hub.send_replace(None) {
            hub.kill();
        }
    }

    /// Starts the next one.
    pub(crate) async fn restart(&self) {
        let hub = Hub::start(&self.disk).await;
        self.hub.send_replace(Some(hub));
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&Disk) -> T) -> T {
        look(&self.disk.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many calls were cut off.
    pub(crate) fn cut_off(&self) -> u32 {
        self.cut_off.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Calls the hub until there is an answer. `hangs_up`: the caller may lose patience, once.
    pub(crate) async fn call<T, F>(&self, mut hangs_up: bool, what: impl Fn(Arc<Hub>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let mut there = self.hub.subscribe();
        loop {
            let hub = there.wait_for(Option::is_some).await.expect("the world is there").clone();
            let hub = hub.expect("waited for");
            let call = tokio::spawn(what(Arc::clone(&hub)));
            hub.own(&call.abort_handle());
            if hangs_up && shuttle::rand::thread_rng().gen_ratio(1, 3) {
                hangs_up = false;
                tokio::task::yield_now().await;
                call.abort();
            }
            if let Ok(answer) = call.await {
                return answer;
            }
            self.cut_off.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
}
