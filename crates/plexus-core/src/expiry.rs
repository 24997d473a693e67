//! Approvals that nobody answers in time. One task sleeps until the next deadline; a deadline that passed while the
//! hub was away expires when it is back.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plexus_protocol::{ApprovalId, ApprovalStatus, Decider, Decision, Right, UnixSeconds};
use plexus_store::{ApprovalRow, Change};
use tokio::sync::Notify;

use crate::Hub;
use crate::clock::now;

/// How long to wait before an expiry that could not be stored is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// The deadlines.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    deadlines: Mutex<BTreeSet<(UnixSeconds, ApprovalId)>>,
    sooner: Notify,
}

impl Expiry {
    /// Sees to it that this approval expires, if it is to.
    pub(crate) fn watch(&self, row: &ApprovalRow) {
        if let Some(at) = row.approval.expires_at {
            self.deadlines.lock().unwrap_or_else(PoisonError::into_inner).insert((at, row.approval.id));
            self.sooner.notify_one();
        }
    }

    fn next(&self) -> Option<(UnixSeconds, ApprovalId)> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner).first().copied()
    }

    fn done(&self, deadline: (UnixSeconds, ApprovalId)) {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner).remove(&deadline);
    }

    /// The task.
    pub(crate) async fn run(hub: Arc<Hub>) {
        let closing = hub.closing().clone();
        loop {
            let next = hub.expiry().next();
            let wait = next.map(|(at, _)| Duration::from_secs(at.saturating_sub(now())));
            tokio::select! {
                () = closing.cancelled() => return,
                () = hub.expiry().sooner.notified() => continue,
                () = sleep(wait) => {}
            }
            let Some(deadline) = next else { continue };
            if now() < deadline.0 {
                continue;
            }
            match hub.commit(vec![expire(deadline.1)]).await {
                Ok(_) => hub.expiry().done(deadline),
                Err(error) => {
                    tracing::warn!(%error, "an expiry is held until it can be stored");
                    let _held = hub.metrics().hold();
                    tokio::time::sleep(RETRY).await;
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
        by: Decider::Hub,
        right: Right::Expiry,
    };
    Change::ResolveIfPending { approval, status: ApprovalStatus::Expired, decision: Box::new(decision) }
}
