//! The pids of the keepers, by session. Every process that descends from one of them belongs to a child.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plexus_protocol::SessionId;

/// The running keepers.
#[derive(Debug, Default)]
pub(crate) struct Keepers(Mutex<HashMap<SessionId, i32>>);

impl Keepers {
    pub(crate) fn insert(&self, session: SessionId, pid: i32) {
        self.lock().insert(session, pid);
    }

    pub(crate) fn remove(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    pub(crate) fn of(&self, session: SessionId) -> Option<i32> {
        self.lock().get(&session).copied()
    }

    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.lock().keys().copied().collect()
    }

    /// Whether a process descends from a keeper.
    pub(crate) fn is_ancestor_of(&self, pid: i32) -> bool {
        let keepers: Vec<i32> = self.lock().values().copied().collect();
        plexus_agent::descends_from(pid, &keepers)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
