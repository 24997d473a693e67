//! The writing thread. It takes all queued commits into one transaction: many callers share one disk sync. If a commit is refused, the
//! transaction is repeated with a savepoint for each commit, so that the refusal does not affect the others. The function that it is started with applies the changes.
//! Between commits the thread adds nodes to the search index.

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plexus_protocol::UnixSeconds;
use tokio::sync::oneshot;

use super::known::Known;
use super::search_index::{self, Coverage};
use super::source::{Connection, Source};
use super::timing::{mark, subject};
use super::{CommitError, Database, closed, panicked};
use crate::{Change, Committed, Observer, StoreError};

/// Applies the changes of one commit, inside the transaction.
pub(crate) type Apply =
    Box<dyn FnMut(&dyn Database, &mut Known, UnixSeconds, &[Change]) -> Result<Committed, StoreError> + Send>;

/// How long the queue has to be empty before nodes are added to the search index.
const QUIET: Duration = Duration::from_millis(200);
/// After this time, nodes are added to the search index although the queue is not empty.
const MAX_INDEX_DELAY: Duration = Duration::from_secs(5);
/// The time between two attempts to find out whether a transaction was committed.
const RETRY: Duration = Duration::from_secs(1);

/// The queue in front of the writing thread.
pub(crate) struct Writer {
    queue: mpsc::Sender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
    transactions: Arc<AtomicU64>,
    observer: Arc<Mutex<Option<Observer>>>,
    closing: Arc<AtomicBool>,
}

enum Job {
    Commit(Commit),
    /// Answers when the search index contains all nodes of earlier commits.
    CompleteIndex(oneshot::Sender<Result<(), StoreError>>),
    /// Ends the thread after the commits before it.
    Close,
}

struct Commit {
    at: UnixSeconds,
    changes: Vec<Change>,
    reply: oneshot::Sender<Answer>,
}

type Answer = Result<Committed, StoreError>;

/// Commits that share a transaction.
#[derive(Default)]
struct Group {
    commits: Vec<Commit>,
    /// Whether the thread ends after it.
    is_last: bool,
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(source: Arc<dyn Source>, apply: Apply) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel();
        let transactions = Arc::new(AtomicU64::new(0));
        let observer = Arc::default();
        let closing = Arc::default();
        let mut state = Writing {
            connection: Some(source.writer()?),
            source,
            apply,
            known: Known::default(),
            transactions: Arc::clone(&transactions),
            observer: Arc::clone(&observer),
            closing: Arc::clone(&closing),
            index: Index { behind_since: Some(Instant::now()), has_more: false, searches: Vec::new() },
        };
        let thread =
            thread::Builder::new().name("store-writer".to_owned()).spawn(move || state.run(&jobs)).map_err(
                |error| StoreError::Unavailable(format!("cannot start the writing thread: {error}")),
            )?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)), transactions, observer, closing })
    }

    /// Queues a commit and waits for its result. Dropping the future does not cancel the commit.
    pub(crate) async fn commit(&self, at: UnixSeconds, changes: Vec<Change>) -> Answer {
        let (reply, answer) = oneshot::channel();
        let subject = subject(&changes);
        subject.iter().for_each(|subject| subject.mark("commit_queued"));
        self.queue.send(Job::Commit(Commit { at, changes, reply })).map_err(|_| closed())?;
        let answer = answer.await.map_err(|_| closed())?;
        subject.iter().for_each(|subject| subject.mark("commit_returned"));
        answer
    }

    /// Waits until the search index contains all nodes of earlier commits.
    pub(crate) async fn complete_index(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(Job::CompleteIndex(reply)).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Replaces the observer.
    pub(crate) fn observe(&self, observer: Observer) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    /// How many transactions were committed.
    pub(crate) fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// Finishes the queued commits, then ends the thread.
    pub(crate) fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            self.closing.store(true, Ordering::Relaxed);
            // Both fail only if the thread has already ended.
            let _ = self.queue.send(Job::Close);
            // The observer may have owned the last reference to the store: then this is the writing thread itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// The state of the thread.
struct Writing {
    connection: Option<Connection>,
    source: Arc<dyn Source>,
    apply: Apply,
    known: Known,
    transactions: Arc<AtomicU64>,
    observer: Arc<Mutex<Option<Observer>>>,
    closing: Arc<AtomicBool>,
    index: Index,
}

/// What is known about the search index.
struct Index {
    /// The time of the first commit that may have added nodes that are not in the index.
    behind_since: Option<Instant>,
    /// Whether the last batch left more nodes.
    has_more: bool,
    /// The searches that wait for the index.
    searches: Vec<Search>,
}

/// A search that waits until the index contains the nodes of earlier commits.
struct Search {
    /// The last of these nodes; `None` until it is read.
    last_node: Option<u64>,
    reply: oneshot::Sender<Result<(), StoreError>>,
}

impl Index {
    /// How long the thread waits for a job before it adds nodes to the index.
    fn wait(&self) -> Option<Duration> {
        let at_once = self.has_more || !self.searches.is_empty();
        if at_once { Some(Duration::ZERO) } else { self.behind_since.map(|_| QUIET) }
    }

    /// Whether nodes are added although there are more commits.
    fn is_due(&self) -> bool {
        !self.searches.is_empty() || self.behind_since.is_some_and(|since| since.elapsed() > MAX_INDEX_DELAY)
    }

    /// The index contains these nodes now.
    fn advanced(&mut self, coverage: Coverage) {
        self.has_more = coverage != Coverage::All;
        if coverage == Coverage::All {
            self.behind_since = None;
        }
        let is_served = |search: &mut Search| search.last_node.is_some_and(|last| coverage.includes(last));
        for search in self.searches.extract_if(.., is_served) {
            // The caller may be gone.
            let _ = search.reply.send(Ok(()));
        }
    }

    fn failed(&mut self, error: &StoreError) {
        self.has_more = false;
        self.behind_since = None;
        for search in self.searches.drain(..) {
            let _ = search.reply.send(Err(error.clone()));
        }
    }
}

impl Writing {
    fn run(&mut self, jobs: &mpsc::Receiver<Job>) {
        loop {
            let next = match self.index.wait() {
                Some(quiet) => jobs.recv_timeout(quiet),
                None => jobs.recv().map_err(mpsc::RecvTimeoutError::from),
            };
            match next {
                Ok(first) => {
                    let mut group = Group::default();
                    self.gather(iter::once(first).chain(jobs.try_iter()), &mut group);
                    self.write(&mut group, jobs);
                    if group.is_last {
                        return;
                    }
                    if self.index.is_due() {
                        self.add_to_index();
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => self.add_to_index(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Adds jobs to a group, up to the end of the thread.
    fn gather(&mut self, jobs: impl Iterator<Item = Job>, group: &mut Group) {
        for job in jobs {
            match job {
                Job::Commit(commit) => group.commits.push(commit),
                Job::CompleteIndex(reply) => self.index.searches.push(Search { last_node: None, reply }),
                Job::Close => {
                    group.is_last = true;
                    return;
                }
            }
        }
    }

    /// Adds some nodes to the search index. After a failure, the next commit or search causes another try.
    fn add_to_index(&mut self) {
        match self.index_batch() {
            Ok(coverage) => self.index.advanced(coverage),
            Err(error) => {
                tracing::warn!(%error, "cannot add nodes to the search index");
                self.index.failed(&error);
            }
        }
    }

    fn index_batch(&mut self) -> Result<Coverage, StoreError> {
        let connection = self.take_connection()?;
        let unread = self.index.searches.iter_mut().filter(|search| search.last_node.is_none());
        let added = catch_unwind(AssertUnwindSafe(|| {
            for search in unread {
                search.last_node = Some(search_index::last_node(&*connection)?);
            }
            search_index::add_batch(&*connection)
        }));
        self.put_back(connection);
        added.unwrap_or_else(|_| Err(panicked()))
    }

    fn write(&mut self, group: &mut Group, jobs: &mpsc::Receiver<Job>) {
        if group.commits.is_empty() {
            return;
        }
        self.index.behind_since.get_or_insert_with(Instant::now);
        let begun = self.begin();
        // A database that other hubs share may have let this one wait. The commits that arrived meanwhile do not have to wait again.
        if !group.is_last {
            self.gather(jobs.try_iter(), group);
        }
        let group = std::mem::take(&mut group.commits);
        mark_each("commit_started", &group);
        // No result is sent before COMMIT returns: a refusal, too, may depend on an earlier commit of the group.
        match begun.and_then(|connection| self.transaction(connection, &group)) {
            Ok(answers) => {
                mark_each("commit_synced", &group);
                for (commit, answer) in group.into_iter().zip(answers) {
                    if let Ok(committed) = &answer {
                        self.notify(committed);
                    }
                    mark("commit_published", &commit.changes);
                    // The caller may be gone; its commit is durable nevertheless.
                    let _ = commit.reply.send(answer);
                }
            }
            Err(error) => {
                tracing::error!(commits = group.len(), %error, "none of these commits was stored");
                for commit in group {
                    let _ = commit.reply.send(Err(error.clone()));
                }
            }
        }
    }

    fn notify(&self, committed: &Committed) {
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(observer) = observer.as_ref()
            && catch_unwind(AssertUnwindSafe(|| observer(committed))).is_err()
        {
            tracing::error!(
                "a commit was stored, but its observer panicked: waiting clients may not be notified"
            );
        }
    }

    fn transaction(&mut self, connection: Connection, group: &[Commit]) -> Result<Vec<Answer>, StoreError> {
        let ended = transaction(&*connection, &mut self.apply, &mut self.known, group);
        self.put_back(connection);
        let stored = match ended {
            Ok(answers) => Ok(answers),
            Err(Failed::NotStored(error)) => Err(error),
            Err(Failed::Unknown { id, answers, error }) => match self.was_committed(&id) {
                Ok(true) => Ok(answers),
                Ok(false) | Err(_) => Err(error),
            },
        };
        match &stored {
            Ok(_) => drop(self.transactions.fetch_add(1, Ordering::Relaxed)),
            // Its audit entries were not stored.
            Err(_) => self.known = Known::default(),
        }
        stored
    }

    /// Begins a transaction. A connection that turns out to be closed is replaced.
    fn begin(&mut self) -> Result<Connection, StoreError> {
        let connection = self.take_connection()?;
        match connection.begin() {
            Err(_) if !connection.is_usable() => {
                let connection = self.source.writer()?;
                connection.begin()?;
                Ok(connection)
            }
            Err(error) => {
                self.put_back(connection);
                Err(error)
            }
            Ok(()) => Ok(connection),
        }
    }

    /// Finds out whether a transaction was committed whose COMMIT had no answer. Until this is known, nothing else is written and nobody gets
    /// an answer.
    fn was_committed(&self, id: &str) -> Result<bool, StoreError> {
        loop {
            match self.source.was_committed(id) {
                Err(error) if !self.closing.load(Ordering::Relaxed) => {
                    tracing::warn!(%error, "cannot find out whether the last commits were stored; trying again");
                    thread::sleep(RETRY);
                }
                known => return known,
            }
        }
    }

    fn take_connection(&mut self) -> Result<Connection, StoreError> {
        self.connection.take().filter(|kept| kept.is_usable()).map_or_else(|| self.source.writer(), Ok)
    }

    /// Keeps a connection, unless it does not recover from a failure.
    fn put_back(&mut self, connection: Connection) {
        // After a full disk or an I/O error SQLite may have rolled back by itself.
        let has_ended = || !connection.is_in_transaction() || connection.execute("ROLLBACK", &[]).is_ok();
        if connection.is_usable() && has_ended() {
            self.connection = Some(connection);
        }
    }
}

/// Why a transaction has no answers yet.
enum Failed {
    /// Nothing was stored.
    NotStored(StoreError),
    /// The connection failed after COMMIT was sent. If the transaction with this id was committed, the answers are true.
    Unknown { id: String, answers: Vec<Answer>, error: StoreError },
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::NotStored(error)
    }
}

/// Applies the commits in the transaction that has begun, and commits it.
fn transaction(
    database: &dyn Database,
    apply: &mut Apply,
    known: &mut Known,
    group: &[Commit],
) -> Result<Vec<Answer>, Failed> {
    database.update_known(known);
    let answers = match all_at_once(database, apply, known, group)? {
        AllAtOnce::Applied(answers) => answers,
        AllAtOnce::Failed(error) if group.len() == 1 => {
            execute(database, "ROLLBACK")?;
            return Ok(vec![Err(error)]);
        }
        AllAtOnce::Failed(_) => {
            execute(database, "ROLLBACK")?;
            database.begin()?;
            database.update_known(known);
            let one_by_one = group.iter().map(|commit| savepoint(database, apply, known, commit));
            one_by_one.collect::<Result<_, StoreError>>()?
        }
    };
    database.log(&mut answers.iter().filter_map(|answer| answer.as_ref().ok()))?;
    mark_each("commit_applied", group);
    match database.commit() {
        Ok(()) => Ok(answers),
        Err(CommitError::NotCommitted(error)) => Err(Failed::NotStored(error)),
        Err(CommitError::Unknown(id, error)) => Err(Failed::Unknown { id, answers, error }),
    }
}

fn mark_each(boundary: &'static str, group: &[Commit]) {
    group.iter().for_each(|commit| mark(boundary, &commit.changes));
}

enum AllAtOnce {
    Applied(Vec<Answer>),
    /// One of the commits was refused or failed. The transaction has to be rolled back.
    Failed(StoreError),
}

/// Applies all commits without savepoints. Refusals are rare, and for each savepoint SQLite writes rollback data and part of the search index.
fn all_at_once(
    database: &dyn Database,
    apply: &mut Apply,
    known: &mut Known,
    group: &[Commit],
) -> Result<AllAtOnce, StoreError> {
    let before = known.clone();
    let applied = group.iter().map(|commit| apply_caught(database, apply, known, commit));
    let applied = applied.collect::<Result<Vec<_>, _>>().and_then(|applied| {
        // If a queued statement has failed, the commits are applied one by one. A single commit learns that from COMMIT.
        if group.len() > 1 {
            database.wait_for_queued()?;
        }
        Ok(applied)
    });
    match applied {
        Ok(applied) => {
            #[cfg(debug_assertions)]
            group.iter().for_each(|_| crate::sqlite::work_count::count_commit());
            Ok(AllAtOnce::Applied(applied.into_iter().map(Ok).collect()))
        }
        // After an I/O error SQLite may have ended the transaction by itself.
        Err(error) if !database.is_in_transaction() => Err(error),
        Err(error) => {
            *known = before.after(&error);
            Ok(AllAtOnce::Failed(error))
        }
    }
}

/// Applies one commit. The outer error means that the whole transaction is lost.
fn savepoint(
    database: &dyn Database,
    apply: &mut Apply,
    known: &mut Known,
    commit: &Commit,
) -> Result<Answer, StoreError> {
    let before = known.clone();
    database.queue("SAVEPOINT one", &[])?;
    // A failure of a queued statement belongs to this commit.
    let answer = apply_caught(database, apply, known, commit)
        .and_then(|committed| database.wait_for_queued().map(|()| committed));
    if let Err(error) = &answer {
        if !database.is_in_transaction() {
            return Err(error.clone());
        }
        *known = before.after(error);
        database.queue("ROLLBACK TO one", &[])?;
    }
    database.queue("RELEASE one", &[])?;
    #[cfg(debug_assertions)]
    crate::sqlite::work_count::count_commit();
    Ok(answer)
}

/// Applies the changes of one commit. A panic is an error, so that the thread goes on.
fn apply_caught(database: &dyn Database, apply: &mut Apply, known: &mut Known, commit: &Commit) -> Answer {
    catch_unwind(AssertUnwindSafe(|| apply(database, known, commit.at, &commit.changes)))
        .unwrap_or_else(|_| Err(panicked()))
}

fn execute(database: &dyn Database, sql: &'static str) -> Result<(), StoreError> {
    database.execute(sql, &[])?;
    Ok(())
}
