//! Token deltas of running turns, for the followers that listen at the time. They are not stored.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use plexus_protocol::{Object, SessionId};
use tokio::sync::broadcast;

/// How many deltas a listener may be behind before it misses some.
const DELTAS: usize = 256;

/// The listeners of each session.
#[derive(Debug, Default)]
pub(crate) struct Deltas {
    sessions: Mutex<HashMap<SessionId, broadcast::Sender<Arc<Object>>>>,
}

impl Deltas {
    pub(crate) fn listen(&self, session: SessionId) -> broadcast::Receiver<Arc<Object>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.entry(session).or_insert_with(|| broadcast::channel(DELTAS).0).subscribe()
    }

    /// Publishes a delta to the listeners of a session.
    pub(crate) fn publish(&self, session: SessionId, delta: Object) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = sessions.get(&session)
            && sender.send(Arc::new(delta)).is_err()
        {
            sessions.remove(&session);
        }
    }
}
