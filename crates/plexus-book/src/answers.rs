//! The tasks that wait for the answer to an approval. A commit of this hub passes them the resolved approval, so that they need not read it. After a commit
//! of another hub they are woken, and read the ledger.

use std::collections::HashMap;
use std::sync::Arc;

use plexus_protocol::ApprovalId;
use plexus_store::ApprovalRow;
use tokio::sync::watch;

use crate::runtime::{Mutex, MutexGuard, PoisonError};

/// The resolved approval; `None` if the task must read the ledger.
type Passed = Option<Arc<ApprovalRow>>;

/// The waiting tasks, by approval. An approval without waiting tasks is not in the map.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    waiting: Mutex<HashMap<ApprovalId, watch::Sender<Passed>>>,
}

/// A task that waits for the answer to an approval.
pub(crate) struct Waiting<'a> {
    passed: watch::Receiver<Passed>,
    /// Dropped after `passed`, so that the last of several tasks finds no other one.
    _entry: Entry<'a>,
}

/// Removes the approval from the map if no task waits for it any more.
struct Entry<'a> {
    answers: &'a Answers,
    approval: ApprovalId,
}

impl Answers {
    /// Registers a task that waits for this approval. It misses no answer from here on.
    pub(crate) fn wait_for(&self, approval: ApprovalId) -> Waiting<'_> {
        let passed = self.lock().entry(approval).or_insert_with(|| watch::channel(None).0).subscribe();
        Waiting { passed, _entry: Entry { answers: self, approval } }
    }

    /// Passes a resolved approval to the tasks that wait for it.
    pub(crate) fn pass(&self, row: &ApprovalRow) {
        if let Some(waiting) = self.lock().get(&row.approval.id) {
            waiting.send_replace(Some(Arc::new(row.clone())));
        }
    }

    /// Wakes the tasks that wait for this approval.
    pub(crate) fn wake(&self, approval: ApprovalId) {
        self.lock().get(&approval).into_iter().for_each(wake_to_read);
    }

    /// Wakes all waiting tasks.
    pub(crate) fn wake_all(&self) {
        self.lock().values().for_each(wake_to_read);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ApprovalId, watch::Sender<Passed>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake_to_read(waiting: &watch::Sender<Passed>) {
    waiting.send_replace(None);
}

impl Waiting<'_> {
    /// Waits for the answer, or until the ledger must be read. When the hub ends, its waiting tasks are cancelled.
    pub(crate) async fn next(&mut self) -> Passed {
        if self.passed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.passed.borrow_and_update().clone()
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut waiting = self.answers.lock();
        if waiting.get(&self.approval).is_some_and(|sender| sender.receiver_count() == 0) {
            waiting.remove(&self.approval);
        }
    }
}
