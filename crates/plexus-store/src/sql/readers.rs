//! The read connections. Each serves one read at a time, so a slow read blocks neither the writer nor all other reads.

use std::sync::{Arc, Mutex, PoisonError};

use super::source::{Connection, Source};
use super::{Database, closed};
use crate::{Slots, StoreError};

/// How many reads run at once.
const READERS: usize = 6;
/// How many of them can belong to callers other than the operator.
const SHARED: usize = 4;

/// The connections, and the slots that limit their use.
pub(crate) struct Readers {
    idle: Arc<Idle>,
    slots: Slots,
}

struct Idle {
    source: Arc<dyn Source>,
    connections: Mutex<Vec<Connection>>,
}

impl Readers {
    /// Connections are opened when they are needed.
    pub(crate) fn new(source: Arc<dyn Source>) -> Self {
        let idle = Arc::new(Idle { source, connections: Mutex::default() });
        Self { idle, slots: Slots::new(READERS, SHARED) }
    }

    /// Runs a read on a thread that may block. It sees every commit before its start.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let slot = self.slots.take().await;
        let slot = slot.map_err(|_| closed())?;
        let idle = Arc::clone(&self.idle);
        let answer = tokio::task::spawn_blocking(move || {
            // This thread releases the slot: the caller may be gone by then.
            let _slot = slot;
            let connection = idle.take()?;
            let answer = read(&*connection).map_err(|error| idle.source.named(error))?;
            // After an error or a panic the connection is dropped, and the next read opens another one.
            if !connection.is_in_transaction() {
                idle.put_back(connection);
            }
            Ok(answer)
        });
        answer.await.unwrap_or_else(|error| Err(StoreError::Unavailable(format!("a read failed: {error}"))))
    }

    /// Closes the idle connections and refuses further reads.
    pub(crate) fn close(&self) {
        self.slots.close();
        self.idle.lock().clear();
    }
}

impl Idle {
    fn take(&self) -> Result<Connection, StoreError> {
        let idle = self.lock().pop();
        idle.filter(|idle| idle.is_usable()).map_or_else(|| self.source.reader(), Ok)
    }

    fn put_back(&self, connection: Connection) {
        self.lock().push(connection);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
