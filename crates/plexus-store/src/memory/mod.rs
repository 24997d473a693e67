//! A store in memory, for tests. It applies the same domain rules as every backend and passes the same contract suite, but
//! nothing survives the process. A commit takes microseconds and needs no async runtime.

mod arbor;
mod history;
mod reads;
mod rows;
mod table;
mod tables;

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use plexus_protocol::{ApprovalId, UnixSeconds};

pub(crate) use tables::Tables;

use crate::{ApprovalRow, Change, Committed, FeedRow, Ledger, Observer, OpenFilter, StoreError, domain};

/// A [`crate::Store`] in memory. The futures of its trait methods are ready when they are polled first.
#[derive(Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
    /// Locked for a whole commit, so that the observer sees commits in their order.
    observer: Mutex<Option<Observer>>,
}

impl MemoryStore {
    /// Applies all of `changes`, or none of them, and notifies the observer before it returns.
    ///
    /// # Errors
    /// [`StoreError::Refused`] when a change is refused.
    pub fn apply(&self, at: UnixSeconds, changes: &[Change]) -> Result<Committed, StoreError> {
        let observer = lock(&self.observer);
        let committed = {
            let mut tables = self.tables();
            let applied = domain::apply(&mut *tables, at, changes);
            match &applied {
                Ok(_) => tables.commit(),
                Err(_) => tables.roll_back(),
            }
            applied?
        };
        if let Some(observer) = observer.as_ref() {
            observer(&committed);
        }
        Ok(committed)
    }

    /// One approval.
    pub fn approval_row(&self, id: ApprovalId) -> Option<ApprovalRow> {
        self.tables().approval_row(id)
    }

    /// The pending approvals that `which` names, oldest first.
    pub fn open_approval_rows(&self, which: &OpenFilter) -> Vec<ApprovalRow> {
        self.tables().open_approvals(which)
    }

    /// The feed of one addressee after number `after`, at most `limit` entries.
    pub fn feed_rows(&self, to: &str, after: u64, limit: u64) -> Vec<FeedRow> {
        self.tables().feed_after(after, limit, |row| row.to == to)
    }

    pub(crate) fn tables(&self) -> MutexGuard<'_, Tables> {
        lock(&self.tables)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Ledger for MemoryStore {
    async fn commit(&self, at: UnixSeconds, changes: Vec<Change>) -> Result<Committed, StoreError> {
        self.apply(at, &changes)
    }

    fn observe(&self, observer: Observer) {
        *lock(&self.observer) = Some(observer);
    }

    async fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError> {
        Ok(self.approval_row(id))
    }

    async fn open_approvals(&self, which: OpenFilter) -> Result<Vec<ApprovalRow>, StoreError> {
        Ok(self.open_approval_rows(&which))
    }

    async fn feed(&self, to: &str, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError> {
        Ok(self.feed_rows(to, after, limit))
    }
}
