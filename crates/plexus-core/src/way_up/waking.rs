//! Sessions that are to be given a turn because those below them ask. Whether one wants that, and has none, its owner
//! knows; here is only who was asked, since a commit is told where nothing can be waited for.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use plexus_protocol::SessionId;
use tokio::sync::Notify;

use crate::Hub;

/// Who was asked something.
#[derive(Debug, Default)]
pub(super) struct ToWake {
    sessions: Mutex<BTreeSet<SessionId>>,
    more: Notify,
}

impl ToWake {
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

impl Hub {
    /// Wakes sessions that want to be woken, for as long as it is polled.
    pub(crate) async fn see_to_waking(&self) -> Infallible {
        loop {
            let id = self.way_up().to_wake.next().await;
            let session = self.book().held(|| self.store().session(id)).await;
            if session.is_some_and(|session| session.config.wake && session.deleted_at.is_none()) {
                self.session(id).wake();
            }
        }
    }
}
