//! The short reads on the path of a request, such as one session or one approval. A thread serves them from a queue. Under load it finds the
//! next read without sleeping, which saves the wake-up that each read costs in a pool of threads. One thread serves the operator
//! and the hub itself, another all other callers, of whom each has one read in the queue at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{closed, connection, panicked};
use crate::{OnBehalf, Slots, StoreError};

/// More than the number of callers: only the turn of each caller limits its reads.
const SLOTS: usize = 1 << 20;

/// The threads, and the turns of the callers that share one of them.
pub(super) struct RowReaders {
    own: ReadingThread,
    shared: ReadingThread,
    turns: Slots,
}

impl RowReaders {
    /// Starts the threads for a prepared file.
    pub(super) fn start(path: &Path) -> Result<Self, StoreError> {
        let own = ReadingThread::start(path, "store-reader")?;
        let shared = ReadingThread::start(path, "store-reader-2")?;
        Ok(Self { own, shared, turns: Slots::new(SLOTS, SLOTS) })
    }

    /// Performs a read. It sees every commit before its start.
    pub(super) async fn read<T: Send + 'static, E: Into<StoreError>>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, StoreError> {
        if OnBehalf::current().is_operator() {
            return self.own.read(read).await;
        }
        let turn = self.turns.take().await.map_err(|_| closed())?;
        // The thread ends the turn: the caller may be gone by then.
        let read = move |connection: &Connection| {
            let _turn = turn;
            read(connection)
        };
        self.shared.read(read).await
    }

    /// Finishes the queued reads, then closes the connections and ends the threads.
    pub(super) fn close(&self) {
        self.turns.close();
        self.own.close();
        self.shared.close();
    }
}

/// The queue in front of a thread.
struct ReadingThread {
    queue: mpsc::Sender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Job {
    Read(Box<dyn FnOnce(&mut KeptConnection) + Send>),
    /// Ends the thread after the reads before it.
    Close,
}

impl ReadingThread {
    fn start(path: &Path, name: &str) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel();
        let mut kept = KeptConnection { path: path.to_owned(), connection: None };
        let run = move || {
            for job in jobs {
                match job {
                    Job::Read(read) => read(&mut kept),
                    Job::Close => return,
                }
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = thread
            .map_err(|error| StoreError::Unavailable(format!("cannot start a reading thread: {error}")))?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    async fn read<T: Send + 'static, E: Into<StoreError>>(
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
        self.queue.send(Job::Read(Box::new(job))).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Both fail only if the thread has already ended.
            let _ = self.queue.send(Job::Close);
            let _ = thread.join();
        }
    }
}

impl Drop for ReadingThread {
    fn drop(&mut self) {
        self.close();
    }
}

/// The connection of a thread. It is opened by the first read, and by the first one after a failure.
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
        let answer = catch_unwind(AssertUnwindSafe(|| read(&connection))).map_err(|_| panicked())?;
        let answer = answer.map_err(|error| error.into().in_file(&self.path))?;
        self.connection = Some(connection);
        Ok(answer)
    }
}
