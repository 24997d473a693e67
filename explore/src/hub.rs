//! Two hubs on one disk, each replaced by the next one when it is killed, and calls to those that run. A call that is cancelled, by a kill or by its
//! caller, is repeated, as a client would. After a commit a hub wakes the other one; the wake-up may be lost, late or doubled.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plexus_book::{Book, Commits, Meter};
use plexus_store::{ApprovalRow, Committed, Ledger as _, StoreError};
use shuttle::rand::Rng as _;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::disk::{Connection, Disk, Host};
use crate::scenario::new_session;
use crate::wakes::Wakes;

/// Any of the two hosts.
pub(crate) fn any_host() -> Host {
    if shuttle::rand::thread_rng().gen_ratio(1, 2) { Host::Owner } else { Host::Other }
}

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
    async fn start(disk: &Arc<Mutex<Disk>>, host: Host, wakes: &Arc<Wakes>) -> Arc<Self> {
        let connection = Connection::to(disk, host, wakes);
        let commits = Arc::new(Commits::new(Arc::new(connection.clone()), Arc::new(NoMeter)));
        let book = Book::new(Arc::clone(&commits));
        let owner = tokio::sync::Mutex::new(());
        let hub = Arc::new(Self { commits, book, connection, owner, tasks: Mutex::new(Some(Vec::new())) });
        let this = Arc::downgrade(&hub);
        let to_wake = Arc::clone(wakes);
        hub.connection.observe(Box::new(move |committed| {
            if let Some(hub) = this.upgrade() {
                hub.note_deadlines(&committed.approvals);
                hub.commits.publish(committed);
                to_wake.wake_other(host);
            }
        }));
        // Before the first read: what the other hub commits afterwards is read later.
        let (seen, _) = hub.commits.retry(|| hub.connection.commits_after(0)).await;
        if host == Host::Owner {
            hub.commits.retry(|| hub.book.recover(None)).await;
            let deadlines = Arc::clone(&hub);
            hub.own(&tokio::spawn(async move { deadlines.book.run_expiry().await }).abort_handle());
        }
        let follower = Arc::clone(&hub).follow(seen, Arc::clone(wakes));
        hub.own(&tokio::spawn(follower).abort_handle());
        hub
    }

    /// Only the hub of the host lets its approvals expire.
    fn note_deadlines(&self, rows: &[ApprovalRow]) {
        if self.connection.host() == Host::Owner {
            rows.iter().for_each(|row| self.book.note_deadline(row));
        }
    }

    /// Publishes what the other hub commits.
    async fn follow(self: Arc<Self>, mut seen: usize, wakes: Arc<Wakes>) {
        loop {
            wakes.of(self.connection.host()).notified().await;
            let (last, changed) = self.commits.retry(|| self.connection.commits_after(seen)).await;
            let mut rows = Vec::new();
            for id in changed.approvals.keys() {
                rows.extend(self.commits.retry(|| self.connection.approval(*id)).await);
            }
            self.note_deadlines(&rows);
            self.commits.publish_remote(&changed);
            seen = last;
        }
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

/// Which hub is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// That of the host which runs the agents.
    Owner,
    /// Any.
    Any,
}

/// What a caller does while its call is in progress.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// It may disconnect, once.
    MayDisconnect,
    /// It waits for the answer.
    Waits,
}

/// The disk, and the running hubs.
pub(crate) struct World {
    disk: Arc<Mutex<Disk>>,
    wakes: Arc<Wakes>,
    owner: watch::Sender<Option<Arc<Hub>>>,
    other: watch::Sender<Option<Arc<Hub>>>,
    cancelled_calls: std::sync::atomic::AtomicU32,
}

impl World {
    pub(crate) async fn new() -> Arc<Self> {
        let disk = Arc::new(Mutex::new(Disk::new(new_session())));
        let wakes = Arc::new(Wakes::default());
        let owner = watch::channel(Some(Hub::start(&disk, Host::Owner, &wakes).await)).0;
        let other = watch::channel(Some(Hub::start(&disk, Host::Other, &wakes).await)).0;
        Arc::new(Self { disk, wakes, owner, other, cancelled_calls: 0.into() })
    }

    fn hub_of(&self, host: Host) -> &watch::Sender<Option<Arc<Hub>>> {
        match host {
            Host::Owner => &self.owner,
            Host::Other => &self.other,
        }
    }

    /// Kills the hub of a host.
    pub(crate) fn kill(&self, host: Host) {
        if let Some(hub) = self.hub_of(host).send_replace(None) {
            hub.kill();
        }
    }

    /// Starts the next one.
    pub(crate) async fn restart(&self, host: Host) {
        let hub = Hub::start(&self.disk, host, &self.wakes).await;
        self.hub_of(host).send_replace(Some(hub));
    }

    pub(crate) fn inspect<T>(&self, inspect: impl FnOnce(&Disk) -> T) -> T {
        inspect(&self.disk.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of cancelled calls.
    pub(crate) fn cancelled_calls(&self) -> u32 {
        self.cancelled_calls.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Calls a hub until one answers.
    pub(crate) async fn call<T, F>(
        &self,
        mut caller: Caller,
        place: Place,
        call_hub: impl Fn(Arc<Hub>) -> F,
    ) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        loop {
            let host = if place == Place::Owner { Host::Owner } else { any_host() };
            let mut connected = self.hub_of(host).subscribe();
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
