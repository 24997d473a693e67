//! Reads of single rows by key, on one thread. Under load the thread takes the next read from its queue without going to sleep, so a read
//! costs no context switch, as it would on a pool of threads. Each read is short, so no slots are needed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connection;
use crate::StoreError;

/// The queue in front of the thread.
pub(super) struct RowReader {
    queue: mpsc::Sender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Job {
    Read(Box<dyn FnOnce(&mut KeptConnection) + Send>),
    /// Ends the thread after the reads before it.
    Close,
}

impl RowReader {
    /// Starts the thread for a prepared file.
    pub(super) fn start(path: PathBuf) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel();
        let mut kept = KeptConnection { path, connection: None };
        let run = move || {
            for job in jobs {
                match job {
                    Job::Read(read) => read(&mut kept),
                    Job::Close => return,
                }
            }
        };
        let thread = thread::Builder::new().name("store-reader".to_owned()).spawn(run);
        let thread = thread.map_err(|error| {
            StoreError::Unavailable(format!("cannot start the thread that reads rows: {error}"))
        })?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Reads a row. It sees every commit before its start.
    pub(super) async fn read<T: Send + 'static, E: Into<StoreError>>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = move |kept: &mut KeptConnection| {
            if !reply.is_closed() {
                // The caller may be gone by the end of the read.
                let _ = reply.send(kept.read(read));
            }
        };
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        self.queue.send(Job::Read(Box::new(job))).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Finishes the queued reads, then closes the connection and ends the thread.
    pub(super) fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Both fail only if the thread has already ended.
            let _ = self.queue.send(Job::Close);
            let _ = thread.join();
        }
    }
}

impl Drop for RowReader {
    fn drop(&mut self) {
        self.close();
    }
}

/// The connection of the thread. It is opened by the first read, and by the first one after a failure.
struct KeptConnection {
    path: PathBuf,
    connection: Option<Connection>,
}

impl KeptConnection {
    fn read<T, E: Into<StoreError>>(
        &mut self,
        read: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let connection = self.connection.take().map_or_else(|| connection::reader(&self.path), Ok)?;
        let answer = catch_unwind(AssertUnwindSafe(|| read(&connection)));
        let answer = answer
            .map_err(|_| StoreError::Unavailable("internal error in the store; see the log".to_owned()))?;
        let answer = answer.map_err(|error| error.into().in_file(&self.path))?;
        self.connection = Some(connection);
        Ok(answer)
    }
}
