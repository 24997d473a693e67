//! Worktrees of sessions, from the hub's side: made ready before a session exists, looked at when someone asks, left
//! or removed when it is deleted, and tidied up after a hub that was killed. What a worktree is, and what counts as a
//! change of it, is `plexus-worktree`'s; all work on its files is done by helper processes (`files`). The hub itself only
//! touches its own record of it and its notes.

mod leave;
mod making;
mod setup;

use std::sync::Arc;

use plexus_files::{CountChanges, DiffWorktree, HelperError, Verb, WorktreeFault};
use plexus_protocol::worktree::{Worktree, WorktreeView};
use plexus_protocol::{Error, ErrorKind, SessionId, shorten};
use plexus_worktree::{Began, Notes, Record, WorktreeDiff, WorktreeError};
use serde_json::Value;

use crate::Settings;
use crate::parts::Parts;

pub(crate) use making::Making;

/// How much is said of what went wrong.
const ERROR_BYTES: usize = 500;

/// Why work on a worktree has no result. Nothing of it goes on any more.
#[derive(Debug, thiserror::Error)]
enum WorkError {
    /// It failed.
    #[error(transparent)]
    Failed(#[from] WorktreeFault),
    /// The helper process failed, or took too long and was killed.
    #[error(transparent)]
    Helper(#[from] HelperError),
    /// The hub's own files.
    #[error(transparent)]
    Own(#[from] WorktreeError),
    /// It could not be begun, or broke down.
    #[error("the hub could not do it")]
    Broken,
}

/// Work on the hub's own files, on a thread that may wait for the disk.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorktreeError> + Send + 'static,
) -> Result<T, WorkError> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(|_| WorkError::Broken)??)
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

/// The worktrees of sessions.
pub(crate) struct Worktrees {
    parts: Arc<Parts>,
}

impl Worktrees {
    pub(crate) fn new(parts: Arc<Parts>) -> Arc<Self> {
        Arc::new(Self { parts })
    }

    /// How a worktree differs from what it began as, file by file; or of one file.
    pub(crate) async fn worktree_diff(
        &self,
        session: SessionId,
        worktree: Worktree,
        only: Option<String>,
    ) -> Result<WorktreeDiff, Error> {
        let diff = |baseline| DiffWorktree { worktree, baseline, only };
        self.compare(session, diff).await.map_err(|error| {
            let message = format!("the worktree cannot be compared: {}", told(&error));
            Error::new(ErrorKind::WorktreeFailed, message)
        })
    }

    /// A worktree as `get` shows it: with what the session has made of it.
    pub(crate) async fn worktree_view(&self, session: SessionId, worktree: Worktree) -> WorktreeView {
        let count = |baseline| CountChanges { worktree: worktree.clone(), baseline };
        let (changes, error) = match self.compare(session, count).await {
            Ok(changes) => (Some(changes), None),
            Err(error) => (None, Some(told(&error))),
        };
        let Worktree { path, branch, base, .. } = worktree;
        WorktreeView { path, branch, base: Some(base), changes, error }
    }

    /// Compares a worktree with what the hub knows that it began as.
    async fn compare<V, T>(
        &self,
        session: SessionId,
        verb: impl FnOnce(plexus_worktree::Baseline) -> V,
    ) -> Result<T, WorkError>
    where
        V: Verb<Answer = Result<T, WorktreeFault>>,
    {
        let record = record(&self.parts.settings, session);
        let Began { index, baseline } = off_thread(move || record.began()).await?;
        Ok(self.parts.files.call(verb(baseline), Some(&index), &mut tokio::io::sink()).await??)
    }
}
