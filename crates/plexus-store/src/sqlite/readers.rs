//! The connections that read, beside the one that writes: a few, lent to one question at a time, so that a slow
//! reader holds up neither the writer nor all other readers.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::connection;
use crate::{Places, StoreError};
use rusqlite::Connection;

/// How many questions are answered at once.
const READERS: usize = 6;
/// How many of them may be asked by callers other than the operator.
const SHARED: usize = 4;

/// The connections, and the places at them.
pub(super) struct Readers {
    idle: Arc<Idle>,
    places: Places,
}

struct Idle {
    path: PathBuf,
    connections: Mutex<Vec<Connection>>,
}

impl Readers {
    /// For a file that has been prepared. Connections are opened when they are needed.
    pub(super) fn new(path: PathBuf) -> Self {
        let idle = Arc::new(Idle { path, connections: Mutex::default() });
        Self { idle, places: Places::new(READERS, SHARED) }
    }

    /// Asks a question on a thread that may block. It sees what was committed before it began.
    pub(super) async fn read<T: Send + 'static, E: Into<StoreError>>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, StoreError> {
        let place = self.places.take().await;
        let place = place.map_err(|_| StoreError::Unavailable("the store is closed".to_owned()))?;
        let idle = Arc::clone(&self.idle);
        let answer = tokio::task::spawn_blocking(move || {
            // The place is given up by this thread, not by the one who asked and may have gone meanwhile.
            let _place = place;
            let connection = idle.take()?;
            let answer = question(&connection).map_err(|error| error.into().in_file(&idle.path))?;
            // Not after an error or a panic: then the next question gets a fresh one.
            idle.put_back(connection);
            Ok(answer)
        });
        answer.await.unwrap_or_else(|error| Err(StoreError::Unavailable(format!("a read was lost: {error}"))))
    }

    /// Closes what is idle, and lets nobody ask any more.
    pub(super) fn close(&self) {
        self.places.close();
        self.idle.lock().clear();
    }
}

impl Idle {
    fn take(&self) -> Result<Connection, StoreError> {
        let idle = self.lock().pop();
        idle.map_or_else(|| connection::reader(&self.path), Ok)
    }

    fn put_back(&self, connection: Connection) {
        self.lock().push(connection);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
