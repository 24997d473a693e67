//! Approvals that nobody answers in time. One task sleeps until the next deadline; a deadline that passed while the
//! hub was away expires when it is back.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use plexus_protocol::{ApprovalId, ApprovalStatus, Decider, Decision, Right, UnixSeconds};
use plexus_store::{ApprovalRow, Change, StoreError};
use tokio::sync::Notify;

use super::Book;
use crate::clock::now;
use crate::sync::{Mutex, PoisonError};

/// The deadlines.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    deadlines: Mutex<BTreeSet<(UnixSeconds, ApprovalId)>>,
    sooner: Notify,
}

impl Expiry {
    /// Sees to it that this approval expires, if it is to.
    pub(super) fn watch(&self, row: &ApprovalRow) {
        if let Some(at) = row.approval.expires_at {
            self.deadlines.lock().unwrap_or_else(PoisonError::into_inner).insert((at, row.approval.id));
            self.sooner.notify_one();
        }
    }

    /// This approval has come to its end.
    pub(super) fn forget(&self, row: &ApprovalRow) {
        if let Some(at) = row.approval.expires_at {
            self.done((at, row.approval.id));
        }
    }

    fn next(&self) -> Option<(UnixSeconds, ApprovalId)> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner).first().copied()
    }

    fn done(&self, deadline: (UnixSeconds, ApprovalId)) {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner).remove(&deadline);
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
            self.held(|| async {
                match self.commit(vec![expire(deadline.1)]).await {
                    // An approval that is no longer there must not hold up the others.
                    Ok(_) | Err(StoreError::Refused(_)) => Ok(()),
                    Err(error) => Err(error),
                }
            })
            .await;
            self.expiry.done(deadline);
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
