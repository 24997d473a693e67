//! What survives a kill, and a hub's connection to it: the ledger in memory. A commit happens at one instant, whoever
//! still waits for it; what is read may be old by the time it is looked at; both may fail for a while.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use plexus_protocol::{ApprovalId, ApprovalStatus, Decision, UnixSeconds};
use plexus_store::{
    ApprovalRow, Change, Committed, FeedKind, FeedRow, Ledger, NewApproval, Observer, Open, Refusal,
    StoreError,
};
use serde_json::{Value, json};
use shuttle::rand::Rng as _;
use tokio::task::yield_now;

/// How often a disk fails in one schedule, at most: it has to end.
const FAILURES: u32 = 3;

/// What is durable.
#[derive(Default)]
pub(crate) struct Disk {
    approvals: BTreeMap<ApprovalId, ApprovalRow>,
    feed: Vec<FeedRow>,
    failed: u32,
}

impl Disk {
    pub(crate) fn approval(&self, id: ApprovalId) -> Option<&ApprovalRow> {
        self.approvals.get(&id)
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failed
    }

    fn apply(&mut self, at: UnixSeconds, changes: Vec<Change>) -> Result<Committed, StoreError> {
        // One change each is all that the book and this scenario ever ask for: nothing to undo.
        assert_eq!(changes.len(), 1, "{changes:?}");
        let mut made = Committed::default();
        for change in changes {
            match change {
                Change::Ask(new) => self.ask(*new, &mut made),
                Change::Resolve { approval, status, decision } => {
                    self.resolve(approval, status, *decision, at, &mut made)?;
                }
                Change::ResolveIfPending { approval, status, decision } => {
                    let expires_at = self.approvals.get(&approval).and_then(|row| row.approval.expires_at);
                    if status == ApprovalStatus::Expired && expires_at.is_none_or(|due| due > at) {
                        continue;
                    }
                    match self.resolve(approval, status, *decision, at, &mut made) {
                        Err(StoreError::Refused(Refusal::AlreadyResolved(_))) => {}
                        done => done?,
                    }
                }
                Change::Extend { approval, expires_at } => {
                    let row = self.approvals.get_mut(&approval).ok_or(Refusal::NoSuchApproval(approval))?;
                    if row.approval.status == ApprovalStatus::Pending {
                        row.approval.expires_at = Some(expires_at);
                        made.approvals.push(row.clone());
                    }
                }
                Change::Delivered(approval) => {
                    let row = self.approvals.get_mut(&approval).ok_or(Refusal::NoSuchApproval(approval))?;
                    row.approval.delivered_at.get_or_insert(at);
                }
                other => unreachable!("the book does not ask for this: {other:?}"),
            }
        }
        Ok(made)
    }

    fn ask(&mut self, new: NewApproval, made: &mut Committed) {
        let number = self.tell(FeedKind::Asked, &new.approval, Value::Null, made);
        let NewApproval { approval, run, turn, channel, request_id } = new;
        let row = ApprovalRow { approval, run, turn, channel, request_id, number };
        made.approvals.push(row.clone());
        let before = self.approvals.insert(row.approval.id, row);
        assert!(before.is_none(), "asked twice: {before:?}");
    }

    fn resolve(
        &mut self,
        approval: ApprovalId,
        status: ApprovalStatus,
        decision: Decision,
        at: UnixSeconds,
        made: &mut Committed,
    ) -> Result<(), StoreError> {
        let row = self.approvals.get_mut(&approval).ok_or(Refusal::NoSuchApproval(approval))?;
        if row.approval.status != ApprovalStatus::Pending {
            return Err(Refusal::AlreadyResolved(Box::new(row.clone())).into());
        }
        row.approval.status = status;
        row.approval.resolved_at = Some(at);
        row.approval.decision = Some(decision);
        let row = row.clone();
        self.tell(FeedKind::Resolved, &row.approval, json!({"status": status}), made);
        made.approvals.push(row);
        Ok(())
    }

    fn tell(
        &mut self,
        kind: FeedKind,
        about: &plexus_protocol::Approval,
        data: Value,
        made: &mut Committed,
    ) -> u64 {
        let number = self.feed.len() as u64 + 1;
        let entry = FeedRow {
            number,
            to: about.asked_of.key(),
            kind,
            session: about.session_id,
            approval: Some(about.id),
            turn: None,
            data,
        };
        self.feed.push(entry.clone());
        made.feed.push(entry);
        number
    }
}

/// A hub's way to the disk. With the hub it dies: what is under way then has no effect, and is never answered.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Inner>);

struct Inner {
    disk: Arc<Mutex<Disk>>,
    /// Held by whoever writes and tells, as the store has one thread for both.
    writer: tokio::sync::Mutex<()>,
    observer: Mutex<Option<Observer>>,
    dead: AtomicBool,
}

impl Connection {
    pub(crate) fn to(disk: &Arc<Mutex<Disk>>) -> Self {
        let (disk, writer) = (Arc::clone(disk), tokio::sync::Mutex::new(()));
        Self(Arc::new(Inner { disk, writer, observer: Mutex::default(), dead: false.into() }))
    }

    pub(crate) fn die(&self) {
        self.0.dead.store(true, Ordering::SeqCst);
    }

    /// Reads at one instant somewhere within this call.
    async fn read<T>(&self, look: impl FnOnce(&Disk) -> T) -> Result<T, StoreError> {
        yield_now().await;
        let found = self.0.at_this_instant(|disk| Ok(look(disk)));
        yield_now().await;
        match found {
            Some(found) => found,
            None => std::future::pending().await,
        }
    }
}

impl Inner {
    /// `None` when it is too late.
    fn at_this_instant<T>(
        &self,
        look: impl FnOnce(&mut Disk) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let fails = shuttle::rand::thread_rng().gen_ratio(1, 12);
        if self.dead.load(Ordering::SeqCst) {
            return None;
        }
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        if fails && disk.failed < FAILURES {
            disk.failed += 1;
            return Some(Err(StoreError::Unavailable("as chance has it".to_owned())));
        }
        Some(look(&mut disk))
    }

    async fn write(&self, at: UnixSeconds, changes: Vec<Change>) -> Option<Result<Committed, StoreError>> {
        let _writing = self.writer.lock().await;
        yield_now().await;
        let answer = self.at_this_instant(|disk| disk.apply(at, changes))?;
        yield_now().await;
        if let Ok(committed) = &answer {
            // Taken out, for no lock may be held while telling: whoever is told may go on at once.
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
        // A task of its own, as the store's thread is: a caller that vanishes stops nothing.
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
        self.read(|disk| disk.approval(id).cloned()).await
    }

    async fn open_approvals(&self, which: Open) -> Result<Vec<ApprovalRow>, StoreError> {
        assert!(matches!(which, Open::All), "the book does not ask for this: {which:?}");
        let open = |row: &&ApprovalRow| row.approval.status == ApprovalStatus::Pending;
        self.read(|disk| disk.approvals.values().filter(open).cloned().collect()).await
    }

    async fn feed(&self, to: &str, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError> {
        let wanted = |row: &&FeedRow| row.to == to && row.number > after;
        let limit = limit.try_into().unwrap_or(usize::MAX);
        self.read(|disk| disk.feed.iter().filter(wanted).take(limit).cloned().collect()).await
    }
}
