//! The approval book: it resolves approvals and waits for their answers. In memory it holds only the deadlines of approvals; the
//! ledger is the source of truth.

use std::sync::Arc;

use plexus_protocol::{ApprovalId, ApprovalStatus, Decision, HostName};
use plexus_store::{ApprovalRow, Change, Committed, OpenFilter, Refusal, StoreError};

use crate::commits::Commits;
use crate::deadlines::Deadlines;
use crate::kill_point::kill_point;

/// The approval book.
pub struct Book {
    pub(crate) commits: Arc<Commits>,
    pub(crate) expiry: Deadlines,
}

/// The outcome of an answer.
#[derive(Debug)]
pub enum Resolved {
    /// It counts; this was committed with it.
    Now(Box<Committed>),
    /// Another answer came first; this is how the approval was resolved.
    Before(Box<ApprovalRow>),
}

impl Book {
    /// A book whose approvals are written by `commits`.
    pub fn new(commits: Arc<Commits>) -> Self {
        Self { commits, expiry: Deadlines::default() }
    }

    /// Adopts the approvals that an earlier hub of this host left open, and returns them.
    ///
    /// # Errors
    /// When the store is unavailable.
    pub async fn recover(&self, host: Option<&HostName>) -> Result<Vec<ApprovalRow>, StoreError> {
        let mut open = self.commits.ledger().open_approvals(OpenFilter::All).await?;
        open.retain(|row| row.approval.host.as_ref() == host);
        open.iter().for_each(|row| self.note_deadline(row));
        Ok(open)
    }

    /// Notes when an approval that was created or changed expires.
    pub fn note_deadline(&self, row: &ApprovalRow) {
        let pending = row.approval.status == ApprovalStatus::Pending;
        self.expiry.set(row.approval.id, row.approval.expires_at.filter(|_| pending));
    }

    /// Resolves an approval, if it is still open, and commits further changes with it.
    ///
    /// # Errors
    /// When the store refuses the changes, or is unavailable.
    pub async fn resolve(
        &self,
        approval: ApprovalId,
        status: ApprovalStatus,
        decision: Decision,
        mut more: Vec<Change>,
    ) -> Result<Resolved, StoreError> {
        let decision = Box::new(decision);
        more.insert(0, Change::Resolve { approval, status, decision });
        match self.commits.commit(more).await {
            Ok(committed) => Ok(Resolved::Now(Box::new(committed))),
            Err(StoreError::Refused(Refusal::AlreadyResolved(row))) => Ok(Resolved::Before(row)),
            Err(error) => Err(error),
        }
    }

    /// Waits until an approval is resolved, to deliver its answer; `None` if there is no such approval.
    ///
    /// The delivery is stored before the answer is returned. After a crash, an answer that was neither stored as delivered
    /// nor fetched in time is known to be lost.
    pub async fn answer_of(&self, approval: ApprovalId) -> Option<Arc<ApprovalRow>> {
        let commits = &self.commits;
        let mut waiting = commits.answers().wait_for(approval);
        let mut passed = if waiting.is_open { waiting.next().await } else { None };
        let row = loop {
            let row = match passed.take() {
                Some(row) => row,
                // Boxed, so that its memory is free during the wait.
                None => Arc::new(Box::pin(commits.retry(|| commits.ledger().approval(approval))).await?),
            };
            if row.approval.status != ApprovalStatus::Pending {
                break row;
            }
            drop(row);
            passed = waiting.next().await;
        };
        kill_point("permit", "decided");
        if row.approval.delivered_at.is_none() {
            Box::pin(commits.retry(|| commits.commit(vec![Change::Delivered(approval)]))).await;
        }
        kill_point("permit", "noted");
        Some(row)
    }
}
