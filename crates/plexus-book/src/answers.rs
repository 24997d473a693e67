//! The tasks that wait for the answer to an approval. A commit of this hub passes them the resolved approval, so that they need not read it. After a commit
//! of another hub they are woken, and read the ledger.
//!
//! An approval that is requested over MCP is *expected* before it is committed: a task will wait for it. Until it is resolved, the task need not read it.

use std::collections::HashMap;
use std::sync::Arc;

use plexus_protocol::ApprovalId;
use plexus_store::ApprovalRow;
use tokio::sync::watch;

use crate::runtime::{Mutex, MutexGuard, PoisonError};

/// The resolved approval; `None` if the task must read the ledger.
type Passed = Option<Arc<ApprovalRow>>;

/// The waiting tasks, by approval.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    waiting: Mutex<HashMap<ApprovalId, Entry>>,
}

/// An approval that is expected or has waiting tasks. Others are not in the map.
#[derive(Debug)]
struct Entry {
    sender: watch::Sender<Passed>,
    /// Whether it was expected, and has not been resolved since.
    is_open: bool,
}

/// A task that waits for the answer to an approval.
pub(crate) struct Waiting<'a> {
    passed: watch::Receiver<Passed>,
    /// Whether the approval is known to be open, so that it need not be read.
    pub(crate) is_open: bool,
    /// Dropped after `passed`, so that the last of several tasks finds no other one.
    _registration: Registration<'a>,
}

/// Removes the entry if it is not needed any more.
struct Registration<'a> {
    answers: &'a Answers,
    approval: ApprovalId,
}

impl Answers {
    /// This approval is about to be committed, and a task will wait for it.
    pub(crate) fn expect(&self, approval: ApprovalId) {
        self.lock()
            .entry(approval)
            .or_insert_with(|| Entry { sender: watch::channel(None).0, is_open: true });
    }

    /// This approval may not have been committed.
    pub(crate) fn expect_no_more(&self, approval: ApprovalId) {
        self.wake(approval);
    }

    /// Registers a task that waits for this approval. It misses no answer from here on, or since the approval was expected.
    pub(crate) fn wait_for(&self, approval: ApprovalId) -> Waiting<'_> {
        let mut waiting = self.lock();
        let unknown = || Entry { sender: watch::channel(None).0, is_open: false };
        let Entry { sender, is_open } = waiting.entry(approval).or_insert_with(unknown);
        let registration = Registration { answers: self, approval };
        Waiting { passed: sender.subscribe(), is_open: *is_open, _registration: registration }
    }

    /// Passes a resolved approval to the tasks that wait for it.
    pub(crate) fn pass(&self, row: &ApprovalRow) {
        self.resolved(row.approval.id, || Some(Arc::new(row.clone())));
    }

    /// Wakes the tasks that wait for this approval.
    pub(crate) fn wake(&self, approval: ApprovalId) {
        self.resolved(approval, || None);
    }

    /// Wakes all waiting tasks.
    pub(crate) fn wake_all(&self) {
        self.lock().retain(|_, entry| entry.send(None));
    }

    fn resolved(&self, approval: ApprovalId, passed: impl FnOnce() -> Passed) {
        let mut waiting = self.lock();
        if let Some(entry) = waiting.get_mut(&approval) {
            if entry.sender.receiver_count() == 0 {
                waiting.remove(&approval);
            } else {
                entry.send(passed());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ApprovalId, Entry>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// The approval may be resolved. Returns whether a task waits for it.
    fn send(&mut self, passed: Passed) -> bool {
        self.is_open = false;
        self.sender.send(passed).is_ok()
    }
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

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        let mut waiting = self.answers.lock();
        let is_needed = |entry: &Entry| entry.is_open || entry.sender.receiver_count() > 0;
        if waiting.get(&self.approval).is_some_and(|entry| !is_needed(entry)) {
            waiting.remove(&self.approval);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_open(answers: &Answers, approval: ApprovalId) -> bool {
        answers.wait_for(approval).is_open
    }

    fn is_empty(answers: &Answers) -> bool {
        answers.lock().is_empty()
    }

    #[test]
    fn an_expected_approval_is_open_until_it_is_resolved() {
        let (answers, approval) = (Answers::default(), ApprovalId::random());
        assert!(!is_open(&answers, approval) && is_empty(&answers), "nobody expects it");
        answers.expect(approval);
        assert!(is_open(&answers, approval) && is_open(&answers, approval), "a task may wait again");
        answers.wake(approval);
        assert!(!is_open(&answers, approval) && is_empty(&answers), "it is read");
    }

    #[test]
    fn an_approval_that_may_not_be_committed_is_read() {
        let (answers, approval) = (Answers::default(), ApprovalId::random());
        answers.expect(approval);
        answers.expect_no_more(approval);
        assert!(is_empty(&answers) && !is_open(&answers, approval));
    }

    #[tokio::test]
    async fn a_task_that_waits_is_told_once_and_a_later_one_reads() {
        for all in [true, false] {
            let (answers, approval) = (Answers::default(), ApprovalId::random());
            answers.expect(approval);
            let mut waiting = answers.wait_for(approval);
            if all {
                answers.wake_all()
            } else {
                answers.wake(approval)
            }
            assert!(waiting.next().await.is_none());
            assert!(!is_open(&answers, approval));
            drop(waiting);
            assert!(is_empty(&answers));
        }
    }
}
