//! The hub's management of session worktrees: creates them before their sessions exist, compares them on request,
//! commits and merges them after a review, deletes or keeps them when their sessions are deleted, and recovers after a
//! crash. `plexus-worktree` defines what a worktree is and what counts as a change. Helper processes (`files`) do all
//! work on its files. The hub itself only touches its own record and its notes.

mod create;
mod delete;
mod proposal;
mod review;
mod setup;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use plexus_files::{CountChanges, DiffWorktree, HelperError, Verb, WorktreeFault};
use plexus_protocol::worktree::{Worktree, WorktreeView};
use plexus_protocol::{Error, ErrorKind, SessionId, shorten};
use plexus_worktree::{InitialState, Notes, Record, WorktreeDiff, WorktreeError};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::Settings;
use crate::shared_parts::Parts;
use review::{Recovering, Updating};

pub(crate) use create::PendingWorktree;
pub(crate) use plexus_worktree::Shown;
pub(crate) use proposal::proposal;

/// The maximum length of an error message.
const ERROR_BYTES: usize = 500;

/// Why work on a worktree failed. The work has stopped completely.
#[derive(Debug, thiserror::Error)]
enum WorkError {
    /// The work itself failed.
    #[error(transparent)]
    Failed(#[from] WorktreeFault),
    /// The helper process failed, or exceeded its time limit and was killed.
    #[error(transparent)]
    Helper(#[from] HelperError),
    /// The hub's own files failed.
    #[error(transparent)]
    Own(#[from] WorktreeError),
    /// The work could not start, or panicked.
    #[error("internal error; see the log of the hub")]
    Broken,
}

/// Runs work on the hub's own files on a blocking thread.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorktreeError> + Send + 'static,
) -> Result<T, WorkError> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(|_| WorkError::Broken)??)
}

/// The hub's record of a session's worktree.
fn record(settings: &Settings, session: SessionId) -> Record {
    Record::new(settings.session_dir(session).join("worktree"))
}

/// The notes about worktrees that may have no owner.
fn notes(settings: &Settings) -> Notes {
    Notes::new(settings.data_dir.join("worktrees"))
}

/// The error message, shortened and made safe to display: a child can choose file names.
fn message_of(error: &WorkError) -> String {
    let mut text = Value::String(error.to_string());
    shorten(&mut text, ERROR_BYTES);
    text.as_str().unwrap_or_default().to_owned()
}

/// The worktrees of sessions.
pub(crate) struct Worktrees {
    parts: Arc<Parts>,
    updating: Updating,
    recovering: Recovering,
    /// One comparison of a session runs at a time. A repository that its agent blocks would otherwise occupy all helpers.
    comparing: Mutex<HashMap<SessionId, Weak<Semaphore>>>,
}

impl Worktrees {
    pub(crate) fn new(parts: Arc<Parts>) -> Arc<Self> {
        Arc::new(Self {
            parts,
            updating: Updating::default(),
            recovering: Recovering::default(),
            comparing: Mutex::default(),
        })
    }

    /// The turns of a session's comparisons.
    fn comparisons(&self, session: SessionId) -> Arc<Semaphore> {
        let mut comparing = self.comparing.lock().unwrap_or_else(PoisonError::into_inner);
        comparing.retain(|_, turns| turns.strong_count() > 0);
        let running = comparing.get(&session).and_then(Weak::upgrade);
        let turns = running.unwrap_or_else(|| Arc::new(Semaphore::new(1)));
        comparing.insert(session, Arc::downgrade(&turns));
        turns
    }

    /// The differences from the worktree's initial state, file by file, or for one file.
    pub(crate) async fn worktree_diff(
        &self,
        session: SessionId,
        worktree: Worktree,
        shown: Shown,
    ) -> Result<WorktreeDiff, Error> {
        let diff = |baseline| DiffWorktree { worktree, baseline, shown };
        self.compare(session, diff).await.map_err(|error| {
            let message = format!("cannot compare the worktree: {}", message_of(&error));
            Error::new(ErrorKind::WorktreeFailed, message)
        })
    }

    /// The view of a worktree for `get`, with the session's changes.
    pub(crate) async fn worktree_view(&self, session: SessionId, worktree: Worktree) -> WorktreeView {
        let count = |baseline| CountChanges { worktree: worktree.clone(), baseline };
        let (changes, state, error) = match self.compare(session, count).await {
            Ok((changes, state)) => (Some(changes), Some(state), None),
            Err(error) => (None, None, Some(message_of(&error))),
        };
        let Worktree { path, branch, base, base_branch, .. } = worktree;
        WorktreeView { path, branch, base: Some(base), changes, base_branch, state, error }
    }

    /// Compares a worktree with its recorded initial state.
    async fn compare<V, T>(
        &self,
        session: SessionId,
        verb: impl FnOnce(plexus_worktree::Baseline) -> V,
    ) -> Result<T, WorkError>
    where
        V: Verb<Answer = Result<T, WorktreeFault>>,
    {
        let turns = self.comparisons(session);
        let _turn = turns.acquire().await;
        let record = record(&self.parts.settings, session);
        let InitialState { index, baseline } = off_thread(move || record.initial_state()).await?;
        Ok(self.parts.files.call(verb(baseline), Some(&index), &mut tokio::io::sink()).await??)
    }
}
