//! Hubs, one after another, and calls to the running one. A call that is cancelled, by a kill or by its caller, is
//! repeated, as a client would.

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

/// Measures nothing.
struct NoMeter;

impl Meter for NoMeter {
    fn committed(&self, _after: Duration, _outcome: &Result<Committed, StoreError>) {}

    fn hold(&self) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

/// One hub, from its start until it is killed.
pub(crate) struct Hub {
    pub(crate) commits: Arc<Commits>,
    pub(crate) book: Book,
    pub(crate) connection: Connection,
    /// Held while an approval is created, because one task owns a session.
    pub(crate) owner: tokio::sync::Mutex<()>,
    tasks: Mutex<Option<Vec<AbortHandle>>>,
}

impl Hub {
    async fn start(disk: &Arc<Mutex<Disk>>) -> Arc<Self> {
        let connection = Connection::to(disk);
        let commits = Arc::new(Commits::new(Arc::new(connection.clone()), Arc::new(NoMeter)));
        let book = Book::new(Arc::clone(&commits));
        let owner = tokio::sync::Mutex::new(());
        let hub = Arc::new(Self { commits, book, connection, owner, tasks: Mutex::new(Some(Vec::new())) });
        let this = Arc::downgrade(&hub);
        hub.connection.observe(Box::new(move |committed| {
            if let Some(hub) = this.upgrade() {
                hub.book.on_commit(committed);
                hub.commits.publish(committed);
            }
        }));
        hub.commits.retry(|| hub.book.recover()).await;
        let deadlines = Arc::clone(&hub);
        hub.own(&tokio::spawn(async move { deadlines.book.run_expiry().await }).abort_handle());
        hub
    }

    /// Aborts the task when this hub is killed; at once if it already was.
    pub(crate) fn own(&self, task: &AbortHandle) {
        let task = task.clone();
        // Aborting lets another task continue, so no lock may be held meanwhile.
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
        self.connection.close();
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).take();
        tasks.into_iter().flatten().for_each(|task| task.abort());
    }
}

/// What a caller does while its call is in progress.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// It may disconnect, once.
    MayDisconnect,
    /// It waits for the answer.
    Waits,
}

/// The disk, and the running hub, if there is one.
pub(crate) struct World {
    disk: Arc<Mutex<Disk>>,
    hub: watch::Sender<Option<Arc<Hub>>>,
    cancelled_calls: std::sync::atomic::AtomicU32,
}

impl World {
    pub(crate) async fn new() -> Arc<Self> {
        let disk = Arc::new(Mutex::new(Disk::new(new_session())));
        let hub = Hub::start(&disk).await;
        Arc::new(Self { disk, hub: watch::channel(Some(hub)).0, cancelled_calls: 0.into() })
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

    pub(crate) fn inspect<T>(&self, inspect: impl FnOnce(&Disk) -> T) -> T {
        inspect(&self.disk.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of cancelled calls.
    pub(crate) fn cancelled_calls(&self) -> u32 {
        self.cancelled_calls.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Calls the hub until it answers.
    pub(crate) async fn call<T, F>(&self, mut caller: Caller, call_hub: impl Fn(Arc<Hub>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let mut connected = self.hub.subscribe();
        loop {
            let hub = connected.wait_for(Option::is_some).await.expect("the world is there").clone();
            let hub = hub.expect("waited for");
            let call = tokio::spawn(call_hub(Arc::clone(&hub)));
            hub.own(&call.abort_handle());
            if caller == Caller::MayDisconnect && shuttle::rand::thread_rng().gen_ratio(1, 3) {
                caller = Caller::Waits;
                tokio::task::yield_now().await;
                call.abort();
            }
            if let Ok(answer) = call.await {
                return answer;
            }
            self.cancelled_calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
}
