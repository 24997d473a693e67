//! Worktrees of sessions, from the hub's side: made ready before a session exists, looked at when someone asks, left
//! or removed when it is deleted, and tidied up after a hub that was killed. What a worktree is, and what counts as a
//! change of it, is `plexus-worktree`'s; here is on which threads that runs and for how long anyone waits for it.

mod leave;
mod making;
mod setup;

use std::sync::Arc;
use std::time::Duration;

use plexus_protocol::worktree::{Worktree, WorktreeView};
use plexus_protocol::{Error, ErrorKind, SessionId, shorten};
use plexus_worktree::{Notes, Record, WorktreeDiff, WorktreeError, changes, diff};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{Hub, Settings};

pub(crate) use making::Making;

/// How many worktrees are made or removed at a time, and as many looked at.
const AT_ONCE: usize = 4;
/// How long anyone waits for a look at a worktree.
const LOOK_WITHIN: Duration = Duration::from_secs(30);
/// How long anyone waits for a worktree to be made, setup aside, or removed.
const MAKE_WITHIN: Duration = Duration::from_secs(600);
/// How long a hub that is going away still waits for either.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);
/// How much is said of what went wrong.
const ERROR_BYTES: usize = 500;

/// The places for work on worktrees. A look cannot be broken off, and a child can make one last: then it keeps its
/// place, and neither makings nor anything else of the hub waits for it.
#[derive(Debug)]
pub(crate) struct Worktrees {
    looks: Arc<Semaphore>,
    makings: Arc<Semaphore>,
    closing: CancellationToken,
}

/// Why work on a worktree has no result.
#[derive(Debug, thiserror::Error)]
enum WorkError {
    /// It failed.
    #[error(transparent)]
    Failed(#[from] WorktreeError),
    /// It takes longer than anyone waits; it may still be going on.
    #[error("it has not come to an end in time")]
    Stuck,
    /// It could not be begun, or broke down.
    #[error("the hub could not do it")]
    Broken,
}

impl Worktrees {
    /// With all places free, for a hub that `closing` tells of its end.
    pub(crate) fn new(closing: CancellationToken) -> Self {
        let places = || Arc::new(Semaphore::new(AT_ONCE));
        Self { looks: places(), makings: places(), closing }
    }

    /// Reads a worktree.
    async fn look<T: Send + 'static>(&self, work: impl Work<T>) -> Result<T, WorkError> {
        self.wait_for(LOOK_WITHIN, off_thread(&self.looks, work)).await
    }

    /// Makes or removes one.
    async fn make<T: Send + 'static>(&self, work: impl Work<T>) -> Result<T, WorkError> {
        self.wait_for(MAKE_WITHIN, off_thread(&self.makings, work)).await
    }

    async fn wait_for<T>(
        &self,
        within: Duration,
        work: impl Future<Output = Result<T, WorkError>>,
    ) -> Result<T, WorkError> {
        let closed = async {
            self.closing.cancelled().await;
            tokio::time::sleep(CLOSE_WITHIN).await;
        };
        tokio::select! {
            outcome = work => outcome,
            () = tokio::time::sleep(within) => Err(WorkError::Stuck),
            () = closed => Err(WorkError::Stuck),
        }
    }
}

trait Work<T>: FnOnce() -> Result<T, WorktreeError> + Send + 'static {}
impl<T, F: FnOnce() -> Result<T, WorktreeError> + Send + 'static> Work<T> for F {}

/// On a thread of its own, which the end of the hub does not wait for.
async fn off_thread<T: Send + 'static>(places: &Arc<Semaphore>, work: impl Work<T>) -> Result<T, WorkError> {
    let place = Arc::clone(places).acquire_owned().await.map_err(|_| WorkError::Broken)?;
    let (tell, told) = oneshot::channel();
    let run = move || {
        let _place = place;
        // Whoever wanted it may have stopped waiting.
        let _ = tell.send(work());
    };
    let thread = std::thread::Builder::new().name("worktree".to_owned()).spawn(run);
    thread.map_err(|_| WorkError::Broken)?;
    told.await.map_err(|_| WorkError::Broken)?.map_err(WorkError::Failed)
}

/// What the hub keeps of a session's worktree.
fn record(settings: &Settings, session: SessionId) -> Record {
    Record::new(settings.session_dir(session).join("worktree"))
}

/// Worktrees that may have no owner.
fn notes(settings: &Settings) -> Notes {
    Notes::new(settings.data_dir.join("worktrees"))
}

/// What went wrong, fit to be shown: names of files are a child's to choose.
fn told(error: &WorkError) -> String {
    let mut text = Value::String(error.to_string());
    shorten(&mut text, ERROR_BYTES);
    text.as_str().unwrap_or_default().to_owned()
}

impl Hub {
    /// How a worktree differs from what it began as, file by file; or of one file.
    pub(crate) async fn worktree_diff(
        &self,
        session: SessionId,
        worktree: Worktree,
        only: Option<String>,
    ) -> Result<WorktreeDiff, Error> {
        let record = record(self.settings(), session);
        let looked = self.worktrees().look(move || diff(&worktree, &record, only.as_deref())).await;
        looked.map_err(|error| {
            let message = format!("the worktree cannot be compared: {}", told(&error));
            Error::new(ErrorKind::WorktreeFailed, message)
        })
    }

    /// A worktree as `get` shows it: with what the session has made of it.
    pub(crate) async fn worktree_view(&self, session: SessionId, worktree: Worktree) -> WorktreeView {
        let (record, of) = (record(self.settings(), session), worktree.clone());
        let looked = self.worktrees().look(move || changes(&of, &record)).await;
        let (changes, error) = match looked {
            Ok(changes) => (Some(changes), None),
            Err(error) => (None, Some(told(&error))),
        };
        let Worktree { path, branch, base, .. } = worktree;
        WorktreeView { path, branch, base: Some(base), changes, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn work_that_hangs_keeps_its_own_place_and_nobody_elses() {
        let worktrees = Worktrees::new(CancellationToken::new());
        let (release, held) = mpsc::channel::<()>();
        let hang = move || {
            let _ = held.recv();
            Ok(())
        };
        let waited = worktrees.wait_for(Duration::from_millis(10), off_thread(&worktrees.looks, hang)).await;
        assert!(matches!(waited, Err(WorkError::Stuck)), "{waited:?}");
        assert_eq!(worktrees.looks.available_permits(), AT_ONCE - 1, "it still goes on");
        assert_eq!(worktrees.look(|| Ok(7)).await.unwrap(), 7);
        assert_eq!(worktrees.make(|| Ok(8)).await.unwrap(), 8);
        drop(release);
        let _all = worktrees.looks.acquire_many(AT_ONCE as u32).await.unwrap();
    }

    #[tokio::test]
    async fn work_that_breaks_down_is_an_error_and_frees_its_place() {
        let worktrees = Worktrees::new(CancellationToken::new());
        let broken = worktrees.look(|| -> Result<(), WorktreeError> { panic!("on purpose") }).await;
        assert!(matches!(broken, Err(WorkError::Broken)), "{broken:?}");
        let _all = worktrees.looks.acquire_many(AT_ONCE as u32).await.unwrap();
    }
}
