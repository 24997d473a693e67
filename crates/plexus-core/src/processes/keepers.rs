//! The pids of the keepers: those of children, by session, and those of single commands. `hub.sock` rejects
//! every process that descends from one of them.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plexus_protocol::SessionId;

/// The running keepers.
#[derive(Debug, Default)]
pub(crate) struct Keepers(Mutex<Pids>);

#[derive(Debug, Default)]
struct Pids {
    children: HashMap<SessionId, i32>,
    commands: HashSet<i32>,
}

impl Keepers {
    pub(crate) fn insert(&self, session: SessionId, pid: i32) {
        self.lock().children.insert(session, pid);
    }

    pub(crate) fn remove(&self, session: SessionId) {
        self.lock().children.remove(&session);
    }

    pub(crate) fn insert_command(&self, pid: i32) {
        self.lock().commands.insert(pid);
    }

    pub(crate) fn remove_command(&self, pid: i32) {
        self.lock().commands.remove(&pid);
    }

    pub(crate) fn of(&self, session: SessionId) -> Option<i32> {
        self.lock().children.get(&session).copied()
    }

    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.lock().children.keys().copied().collect()
    }

    /// Whether a process descends from a keeper.
    pub(crate) fn is_ancestor_of(&self, pid: i32) -> bool {
        let keepers: Vec<i32> = {
            let pids = self.lock();
            pids.children.values().chain(&pids.commands).copied().collect()
        };
        plexus_agent::descends_from(pid, &keepers)
    }

    fn lock(&self) -> MutexGuard<'_, Pids> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
