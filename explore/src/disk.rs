//! The durable state, and a hub's connection to it. The store in memory applies the domain rules. A commit is atomic, even
//! if its caller is gone; a read may be outdated when it returns; both may fail for a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use plexus_protocol::{ApprovalId, UnixSeconds};
use plexus_store::{
    ApprovalRow, Change, Changed, Committed, FeedRow, Ledger, MemoryStore, NewSession, Observer, OpenFilter,
    StoreError,
};
use shuttle::rand::Rng as _;
use tokio::task::yield_now;

use crate::wakes::Wakes;

/// The maximum number of failures in one schedule, so that the schedule ends.
const FAILURES: u32 = 3;

/// The durable state, which two hubs share.
pub(crate) struct Disk {
    store: MemoryStore,
    failed: u32,
    /// What each commit has changed, and the host whose hub has committed it.
    log: Vec<(Host, Changed)>,
}

/// A machine with a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    /// The one that runs the agents. Only its hub allows their calls and lets their approvals expire.
    Owner,
    /// Another one.
    Other,
}

impl Host {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Owner => Self::Other,
            Self::Other => Self::Owner,
        }
    }
}

impl Disk {
    /// A disk with one session.
    pub(crate) fn new(session: NewSession) -> Self {
        let store = MemoryStore::default();
        let created = store.apply(0, &[Change::CreateSession(Box::new(session))]);
        created.expect("an empty store takes any session");
        Self { store, failed: 0, log: Vec::new() }
    }

    pub(crate) fn approval(&self, id: ApprovalId) -> Option<ApprovalRow> {
        self.store.approval_row(id)
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failed
    }
}

/// A hub's connection to the disk. It is closed when the hub is killed: pending operations then have no effect and never
/// return.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Shared>);

struct Shared {
    host: Host,
    disk: Arc<Mutex<Disk>>,
    wakes: Arc<Wakes>,
    /// Held while a commit is written and published, because the store has one thread for both.
    writer: tokio::sync::Mutex<()>,
    observer: Mutex<Option<Observer>>,
    closed: AtomicBool,
}

impl Connection {
    pub(crate) fn to(disk: &Arc<Mutex<Disk>>, host: Host, wakes: &Arc<Wakes>) -> Self {
        let (disk, wakes, writer) = (Arc::clone(disk), Arc::clone(wakes), tokio::sync::Mutex::new(()));
        Self(Arc::new(Shared { host, disk, wakes, writer, observer: Mutex::default(), closed: false.into() }))
    }

    pub(crate) fn host(&self) -> Host {
        self.0.host
    }

    /// What other hubs have committed after the first `seen` commits, and the number of all commits.
    pub(crate) async fn commits_after(&self, seen: usize) -> Result<(usize, Changed), StoreError> {
        let host = self.0.host;
        self.read_disk(|disk| {
            let mut changed = Changed::default();
            let others = disk.log.iter().skip(seen).filter(|(by, _)| *by != host);
            others.for_each(|(_, change)| changed.add(change.clone()));
            (disk.log.len(), changed)
        })
        .await
    }

    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
    }

    /// Reads atomically, at some moment within this call.
    async fn read<T>(&self, read: impl FnOnce(&MemoryStore) -> T) -> Result<T, StoreError> {
        self.read_disk(|disk| read(&disk.store)).await
    }

    async fn read_disk<T>(&self, read: impl FnOnce(&Disk) -> T) -> Result<T, StoreError> {
        yield_now().await;
        let found = self.0.atomically(|disk| Ok(read(disk)));
        yield_now().await;
        match found {
            Some(found) => found,
            None => std::future::pending().await,
        }
    }
}

impl Shared {
    /// `None` if the connection is closed.
    fn atomically<T>(
        &self,
        read: impl FnOnce(&mut Disk) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let fails = shuttle::rand::thread_rng().gen_ratio(1, 12);
        if self.closed.load(Ordering::SeqCst) {
            return None;
        }
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        if fails && disk.failed < FAILURES {
            disk.failed += 1;
            return Some(Err(StoreError::Unavailable("as chance has it".to_owned())));
        }
        Some(read(&mut disk))
    }

    async fn write(&self, at: UnixSeconds, changes: Vec<Change>) -> Option<Result<Committed, StoreError>> {
        let _writing = self.writer.lock().await;
        yield_now().await;
        let answer = self.atomically(|disk| {
            let committed = disk.store.apply(at, &changes)?;
            disk.log.push((self.host, Changed::by(&mut std::iter::once(&committed))));
            Ok(committed)
        })?;
        if answer.is_ok() {
            self.wakes.poll_other(self.host);
        }
        yield_now().await;
        if let Ok(committed) = &answer {
            // The observer is taken out, because no lock may be held while it wakes tasks.
            let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(observer) = observer {
                observer(committed);
                *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
            }
        }
        Some(answer)
    }
}

#[async_trait]
impl Ledger for Connection {
    async fn commit(&self, at: UnixSeconds, changes: Vec<Change>) -> Result<Committed, StoreError> {
        // A separate task, like the store's thread: a caller that disconnects does not cancel the commit.
        let inner = Arc::clone(&self.0);
        let written = tokio::spawn(async move { inner.write(at, changes).await }).await;
        match written.expect("nobody stops the writer") {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    fn observe(&self, observer: Observer) {
        *self.0.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    async fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError> {
        self.read(|store| store.approval_row(id)).await
    }

    async fn open_approvals(&self, which: OpenFilter) -> Result<Vec<ApprovalRow>, StoreError> {
        self.read(|store| store.open_approval_rows(&which)).await
    }

    async fn feed(&self, to: &str, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError> {
        self.read(|store| store.feed_rows(to, after, limit)).await
    }
}
