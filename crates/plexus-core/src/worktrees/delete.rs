//! Handles the worktrees of deleted sessions: a worktree is deleted if no work is lost with it; otherwise it is kept and reported. A
//! note survives a crash of the hub, so that the next hub finds exactly the worktrees that it has to clean up.

use std::path::Path;
use std::sync::Arc;

use plexus_files::FindLosses;
use plexus_protocol::SessionId;
use plexus_protocol::worktree::{LeftWorktree, Worktree};
use plexus_store::{SessionRow, StoreError};
use plexus_worktree::{Note, Stage};

use super::create::{erase_note, remove_worktree};
use super::setup::stop_orphaned_setup;
use super::{WorkError, Worktrees, message_of, notes, off_thread, record};
use plexus_book::kill_point;

/// The state of a worktree without a session.
enum Contents {
    /// Everything is saved elsewhere, or there is nothing.
    Saved,
    /// Work that is only there, a clause for each kind.
    Unsaved(Vec<String>),
    Unknown(WorkError),
}

impl Worktrees {
    /// Writes a note that the session of a worktree is about to be deleted.
    pub(crate) async fn note_deletion(&self, session: SessionId, worktree: &Worktree) {
        let note = Note { session, stage: Stage::Deleting, worktree: worktree.clone() };
        let notes = notes(&self.parts.settings);
        // Without the note, a hub that is killed now leaves a worktree without an owner. No work is lost.
        if let Err(error) = off_thread(move || notes.write(&note)).await {
            tracing::warn!(%session, error = message_of(&error), "cannot write a note about a worktree");
        }
    }

    /// Deletes or keeps the worktree of a deleted session.
    pub(crate) async fn delete_or_keep(&self, session: SessionId, worktree: Worktree) -> LeftWorktree {
        if self.is_in_use(&worktree).await {
            erase_note(&self.parts, session);
            return kept_worktree(worktree, Some("another session works in it".to_owned()));
        }
        match self.contents(session, &worktree).await {
            Contents::Saved => {}
            Contents::Unsaved(would_lose) => {
                erase_note(&self.parts, session);
                return LeftWorktree { would_lose, ..kept_worktree(worktree, None) };
            }
            Contents::Unknown(error) => {
                erase_note(&self.parts, session);
                return kept_worktree(worktree, Some(message_of(&error)));
            }
        }
        let error = self.remove(session, worktree.clone()).await.err().map(|error| message_of(&error));
        LeftWorktree { kept: false, ..kept_worktree(worktree, error) }
    }

    /// Whether another session works in the worktree. If the store cannot be read, the answer is yes.
    async fn is_in_use(&self, worktree: &Worktree) -> bool {
        let works_in_it =
            |session: &SessionRow| Path::new(&session.config.working_dir).starts_with(&worktree.path);
        self.parts.store.sessions().await.map_or(true, |sessions| sessions.iter().any(works_in_it))
    }

    async fn contents(&self, session: SessionId, worktree: &Worktree) -> Contents {
        match self.losses(session, worktree.clone()).await {
            Ok(losses) if losses.is_empty() => Contents::Saved,
            Ok(losses) => Contents::Unsaved(losses),
            Err(error) => Contents::Unknown(error),
        }
    }

    async fn losses(&self, session: SessionId, worktree: Worktree) -> Result<Vec<String>, WorkError> {
        let record = record(&self.parts.settings, session);
        // A worktree without a record may already be deleted.
        let initial = off_thread(move || record.initial_state()).await.ok();
        let (index, baseline) = initial.map(|initial| (initial.index, initial.baseline)).unzip();
        let verb = FindLosses { worktree, baseline };
        Ok(self.parts.files.call(verb, index.as_deref(), &mut tokio::io::sink()).await??)
    }

    async fn remove(&self, session: SessionId, worktree: Worktree) -> Result<(), WorkError> {
        remove_worktree(&self.parts, worktree).await?;
        kill_point("delete", "removed");
        erase_note(&self.parts, session);
        Ok(())
    }

    /// Finds worktrees that a killed hub left partly created or partly deleted. Processes that ran there are ended
    /// before any door opens; the rest happens in the background.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), StoreError> {
        self.recover_updates();
        let notes = notes(&self.parts.settings);
        let noted = off_thread(move || notes.all()).await.unwrap_or_else(|error| {
            tracing::warn!(error = message_of(&error), "cannot search for worktrees without a session");
            Vec::new()
        });
        let mut orphans = Vec::new();
        for note in noted {
            let session = self.parts.store.session(note.session).await?;
            if session.is_some_and(|session| session.deleted_at.is_none()) {
                erase_note(&self.parts, note.session);
            } else {
                orphans.push(note);
            }
        }
        futures::future::join_all(orphans.iter().map(|note| stop_orphaned_setup(&self.parts, note.session)))
            .await;
        let worktrees = Arc::clone(self);
        self.parts.tasks.spawn(async move {
            for note in orphans {
                if !worktrees.parts.tasks.closing().is_cancelled() {
                    worktrees.clean_up(note).await;
                }
            }
        });
        Ok(())
    }

    async fn clean_up(&self, note: Note) {
        let Note { session, stage, worktree } = note;
        // Before its record was taken, only the hub had written to the worktree.
        let untouched = stage == Stage::Creating && !record(&self.parts.settings, session).is_complete();
        let contents = if untouched { Contents::Saved } else { self.contents(session, &worktree).await };
        let path = worktree.path.clone();
        match contents {
            Contents::Unsaved(losses) => {
                erase_note(&self.parts, session);
                let losses = losses.join("; ");
                tracing::warn!(%session, path, losses, "a worktree without a session is kept");
            }
            Contents::Unknown(error) => {
                tracing::warn!(%session, path, error = message_of(&error), "a worktree without a session is kept, \
                    because it cannot be compared");
            }
            Contents::Saved => match self.remove(session, worktree).await {
                Ok(()) => {
                    if stage == Stage::Creating {
                        // The session never existed, so its directory contains nothing of value.
                        let _ = std::fs::remove_dir_all(self.parts.settings.session_dir(session));
                    }
                    tracing::info!(%session, path, "deleted a worktree without a session");
                }
                Err(error) => {
                    tracing::warn!(%session, path, error = message_of(&error), "cannot delete a worktree");
                }
            },
        }
    }
}

fn kept_worktree(worktree: Worktree, error: Option<String>) -> LeftWorktree {
    LeftWorktree { path: worktree.path, branch: worktree.branch, kept: true, would_lose: Vec::new(), error }
}
