//! Approvals that nobody answers in time. One task sleeps until the next deadline; a deadline that passed while the
//! hub was away expires when it is back.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::time::Duration;

use plexus_protocol::{ApprovalId, ApprovalStatus, Decider, Decision, Right, UnixSeconds};
use plexus_store::{ApprovalRow, Change, Committed, StoreError};
use tokio::sync::Notify;

use super::Book;
use crate::clock::now;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The deadlines.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    deadlines: Mutex<Deadlines>,
    sooner: Notify,
}

/// One deadline for each approval that has one, the first to begin with.
#[derive(Debug, Default)]
struct Deadlines {
    in_order: BTreeSet<(UnixSeconds, ApprovalId)>,
    of: HashMap<ApprovalId, UnixSeconds>,
}

impl Deadlines {
    fn set(&mut self, approval: ApprovalId, at: Option<UnixSeconds>) {
        let before = match at {
            Some(at) => {
                self.in_order.insert((at, approval));
                self.of.insert(approval, at).filter(|before| *before != at)
            }
            None => self.of.remove(&approval),
        };
        if let Some(before) = before {
            self.in_order.remove(&(before, approval));
        }
    }
}

impl Expiry {
    /// Sees to it that this approval expires at its present time, if it is to.
    pub(super) fn watch(&self, row: &ApprovalRow) {
        self.lock().set(row.approval.id, row.approval.expires_at);
        self.sooner.notify_one();
    }

    /// This approval has come to its end.
    pub(super) fn forget(&self, approval: ApprovalId) {
        self.lock().set(approval, None);
    }

    fn next(&self) -> Option<(UnixSeconds, ApprovalId)> {
        self.lock().in_order.first().copied()
    }

    fn lock(&self) -> MutexGuard<'_, Deadlines> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Lets approvals expire when their time has come, for as long as it is polled.
    pub(crate) async fn see_to_deadlines(&self) -> Infallible {
        loop {
            let next = self.expiry.next();
            let wait = next.map(|(at, _)| Duration::from_secs(at.saturating_sub(now())));
            tokio::select! {
                () = self.expiry.sooner.notified() => continue,
                () = sleep(wait) => {}
            }
            let Some(deadline) = next else { continue };
            if now() < deadline.0 {
                continue;
            }
            let made = self
                .held(|| async {
                    match self.commit(vec![expire(deadline.1)]).await {
                        // An approval that is no longer there must not hold up the others.
                        Err(StoreError::Refused(_)) => Ok(Committed::default()),
                        answer => answer,
                    }
                })
                .await;
            if made.approvals.is_empty() {
                // It has ended, is not there any more, or its time is another one: by the book, or because the clock was set.
                match self.held(|| self.ledger.approval(deadline.1)).await {
                    Some(row) if row.approval.status == ApprovalStatus::Pending => self.expiry.watch(&row),
                    _ => self.expiry.forget(deadline.1),
                }
            }
        }
    }
}

async fn sleep(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

fn expire(approval: ApprovalId) -> Change {
    let decision = Decision {
        approve: false,
        message: Some("Nobody answered in time.".to_owned()),
        updated_input: None,
        mode: None,
        interrupt: false,
        rule: None,
        by: Decider::Hub,
        right: Right::Expiry,
    };
    Change::ResolveIfPending { approval, status: ApprovalStatus::Expired, decision: Box::new(decision) }
}
