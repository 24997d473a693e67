//! The running owners of all sessions. An owner is started when a session is first used, and replaced when it panics.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt;
use plexus_protocol::SessionId;
use tokio::sync::mpsc;

use super::{SessionHandle, owner};
use crate::shared_parts::Parts;

/// The pause before a panicked owner is replaced: a fault that recurs at once must not keep a core busy.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// The owners of sessions.
pub(crate) struct Sessions {
    parts: Arc<Parts>,
    handles: Mutex<HashMap<SessionId, SessionHandle>>,
    this: Weak<Self>,
}

impl Sessions {
    pub(crate) fn new(parts: Arc<Parts>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self { parts, handles: Mutex::default(), this: this.clone() })
    }

    /// The owner of a session; it is started if there is none.
    pub(crate) fn get(&self, id: SessionId) -> SessionHandle {
        let mut handles = self.lock();
        if let Some(handle) = handles.get(&id)
            && !handle.is_closed()
        {
            return handle.clone();
        }
        let handle = self.start(id);
        handles.insert(id, handle.clone());
        handle
    }

    /// The owner of a session, if it was started.
    pub(crate) fn started(&self, id: SessionId) -> Option<SessionHandle> {
        self.lock().get(&id).cloned()
    }

    /// Whether a session has an owner in this hub.
    pub(crate) fn has_owner(&self, id: SessionId) -> bool {
        self.lock().get(&id).is_some_and(|handle| !handle.is_closed())
    }

    /// All owners that were started.
    pub(crate) fn all_started(&self) -> Vec<SessionHandle> {
        self.lock().values().cloned().collect()
    }

    /// All owners that were started, by session.
    pub(crate) fn by_id(&self) -> HashMap<SessionId, SessionHandle> {
        self.lock().clone()
    }

    fn start(&self, id: SessionId) -> SessionHandle {
        let (inbox, commands) = mpsc::unbounded_channel();
        let known = Arc::default();
        let handle = SessionHandle::new(inbox, Arc::clone(&known));
        let (parts, sessions) = (Arc::clone(&self.parts), self.this.clone());
        self.parts.tasks.spawn(async move {
            let owner = AssertUnwindSafe(owner::own(parts, id, commands, known));
            if owner.catch_unwind().await.is_err() {
                // A fault of the hub must not leave a child waiting: another owner recovers the session from the store.
                tracing::error!(session = %id, "the owner of a session panicked; another owner recovers the session");
                tokio::time::sleep(AFTER_PANIC).await;
                if let Some(sessions) = sessions.upgrade() {
                    sessions.get(id);
                }
            }
        });
        handle
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, SessionHandle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
