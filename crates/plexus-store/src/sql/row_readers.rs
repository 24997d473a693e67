//! The short reads on the path of a request, such as one session or one approval. A thread serves them from a queue. Under load it finds the
//! next read without sleeping, which saves the wake-up that each read costs in a pool of threads. One thread serves the operator
//! and the hub itself, another all other callers, of whom each has one read in the queue at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::source::{Connection, Source};
use super::{Database, closed, panicked};
use crate::{OnBehalf, Slots, StoreError};

/// More than the number of callers: only the turn of each caller limits its reads.
const SLOTS: usize = 1 << 20;
/// The time after a failed attempt to open a connection in which there is no other one.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// The threads, and the turns of the callers that share one of them.
pub(crate) struct RowReaders {
    own: ReadingThread,
    shared: ReadingThread,
    turns: Slots,
}

impl RowReaders {
    /// Starts the threads.
    pub(crate) fn start(source: &Arc<dyn Source>) -> Result<Self, StoreError> {
        let own = ReadingThread::start(source, "store-reader")?;
        let shared = ReadingThread::start(source, "store-reader-2")?;
        Ok(Self { own, shared, turns: Slots::new(SLOTS, SLOTS) })
    }

    /// Performs a read. It sees every commit before its start.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if OnBehalf::current().is_operator() {
            return self.own.read(read).await;
        }
        let turn = self.turns.take().await.map_err(|_| closed())?;
        // The thread ends the turn: the caller may be gone by then.
        let read = move |database: &dyn Database| {
            let _turn = turn;
            read(database)
        };
        self.shared.read(read).await
    }

    /// Finishes the queued reads, then closes the connections and ends the threads.
    pub(crate) fn close(&self) {
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
    fn start(source: &Arc<dyn Source>, name: &str) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel();
        let mut kept = KeptConnection { source: Arc::clone(source), connection: None, failed: None };
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

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Database) -> Result<T, StoreError> + Send + 'static,
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
    source: Arc<dyn Source>,
    connection: Option<Connection>,
    /// The last attempt to open one, if it failed.
    failed: Option<(Instant, StoreError)>,
}

impl KeptConnection {
    fn read<T>(
        &mut self,
        read: impl FnOnce(&dyn Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let connection = match self.connection.take().filter(|kept| kept.is_usable()) {
            Some(kept) => kept,
            None => self.open()?,
        };
        let answer = catch_unwind(AssertUnwindSafe(|| read(&*connection))).map_err(|_| panicked())?;
        let answer = answer.map_err(|error| self.source.named(error))?;
        self.connection = Some(connection).filter(|connection| !connection.is_in_transaction());
        Ok(answer)
    }

    /// Opens a connection. Reads that were queued during a failed attempt do not repeat it: each would wait for its own.
    fn open(&mut self) -> Result<Connection, StoreError> {
        if let Some((at, error)) = &self.failed
            && at.elapsed() < AFTER_FAILURE
        {
            return Err(error.clone());
        }
        let opened = self.source.reader();
        self.failed = opened.as_ref().err().map(|error| (Instant::now(), error.clone()));
        opened
    }
}
