//! Deadlines of approvals, and waiting for the next one.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use plexus_protocol::{ApprovalId, UnixSeconds};
use tokio::sync::Notify;

use crate::runtime::{Mutex, PoisonError, now};

/// At most one deadline for each approval.
#[derive(Debug, Default)]
pub struct Deadlines {
    schedule: Mutex<Schedule>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Schedule {
    by_time: BTreeSet<(UnixSeconds, ApprovalId)>,
    by_approval: HashMap<ApprovalId, UnixSeconds>,
}

impl Deadlines {
    /// Sets the deadline of an approval; `None` removes it.
    pub fn set(&self, approval: ApprovalId, at: Option<UnixSeconds>) {
        let mut schedule = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match at {
            Some(at) => {
                schedule.by_time.insert((at, approval));
                schedule.by_approval.insert(approval, at).filter(|before| *before != at)
            }
            None => schedule.by_approval.remove(&approval),
        };
        if let Some(before) = before {
            schedule.by_time.remove(&(before, approval));
        }
        drop(schedule);
        if at.is_some() {
            self.changed.notify_one();
        }
    }

    /// Waits for the next deadline. The same approval is due again until it gets a new deadline. For one waiter at a time.
    pub async fn due(&self) -> ApprovalId {
        loop {
            let first = self.schedule.lock().unwrap_or_else(PoisonError::into_inner).by_time.first().copied();
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
