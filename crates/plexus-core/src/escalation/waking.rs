//! Sessions to wake because approvals wait for them. The owner of a session knows whether the session has a turn. This
//! module only stores the addressees, because code that publishes a commit cannot await.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use plexus_protocol::SessionId;
use tokio::sync::Notify;

use super::Escalation;

/// The sessions that were asked.
#[derive(Debug, Default)]
pub(super) struct WakeQueue {
    sessions: Mutex<BTreeSet<SessionId>>,
    more: Notify,
}

impl WakeQueue {
    pub(super) fn add(&self, session: SessionId) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(session);
        self.more.notify_one();
    }

    async fn next(&self) -> SessionId {
        loop {
            let next = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
            match next {
                Some(session) => return session,
                None => self.more.notified().await,
            }
        }
    }
}

impl Escalation {
    /// Waits for the next session that was asked.
    pub(crate) async fn next_to_wake(&self) -> SessionId {
        self.wake_queue.next().await
    }
}
