//! Deadlines of approvals, and waiting for the next one.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use plexus_protocol::{ApprovalId, UnixSeconds};
use tokio::sync::Notify;

use crate::runtime::{Mutex, PoisonError, now};

/// At most one deadline for each approval.
#[derive(Debug, Default)]
pub struct Deadlines {
    kept: Mutex<Kept>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    in_order: BTreeSet<(UnixSeconds, ApprovalId)>,
    of: HashMap<ApprovalId, UnixSeconds>,
}

impl Deadlines {
    /// Sets the deadline of an approval; `None` removes it.
    pub fn set(&self, approval: ApprovalId, at: Option<UnixSeconds>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match at {
            Some(at) => {
                kept.in_order.insert((at, approval));
                kept.of.insert(approval, at).filter(|before| *before != at)
            }
            None => kept.of.remove(&approval),
        };
        if let Some(before) = before {
            kept.in_order.remove(&(before, approval));
        }
        drop(kept);
        if at.is_some() {
            self.changed.notify_one();
        }
    }

    /// Waits for the next deadline. The same approval is due again until its deadline is set anew. For one waiter at a time.
    pub async fn due(&self) -> ApprovalId {
        loop {
            let first = self.kept.lock().unwrap_or_else(PoisonError::into_inner).in_order.first().copied();
            let wait = first.map(|(at, _)| Duration::from_secs(at.saturating_sub(now())));
            tokio::select! {
                () = self.changed.notified() => continue,
                () = sleep(wait) => {}
            }
            if let Some((at, approval)) = first
                && now() >= at
            {
                return approval;
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
