//! Commits and merges the reviewed work of a session. A helper process prepares the new commit without changing any
//! branch. Then the hub writes a note and the audit entry, and a second helper process moves the branch. If the hub is
//! killed, the next hub finds the note and completes or reports the update.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use plexus_files::{FaultAbout, FindPushable, PrepareCommit, PrepareMerge, RecoverUpdate, UpdateBranch};
use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_protocol::worktree::Worktree;
use plexus_protocol::{Decider, Error, ErrorKind, SessionId};
use plexus_store::{Change, SessionRow};
use plexus_worktree::{
    BranchUpdate, CommitRequest, MergeRequest, PreparedCommit, PreparedMerge, Pushable, Recovered,
    UpdateNote, UpdateNotes,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{WorkError, Worktrees, message_of, off_thread};
use crate::Settings;
use crate::audit::session_audit;
use crate::callers::access::Admitted;
use crate::errors::store_error;
use plexus_book::{kill_point, now};

/// The sessions with a commit or a merge in progress.
pub(super) type Updating = Arc<Mutex<HashSet<SessionId>>>;

/// The sessions with an update that a killed hub left. A call for one of them waits.
pub(super) type Recovering = watch::Sender<HashSet<SessionId>>;

/// Marks a session as having a commit or a merge in progress, until this guard is dropped.
pub(crate) struct UpdateGuard {
    updating: Updating,
    session: SessionId,
}

impl Drop for UpdateGuard {
    fn drop(&mut self) {
        self.updating.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.session);
    }
}

/// The recovery of an update that a killed hub left. The guard is dropped before the mark: a call that waited finds the session free.
struct Recovery {
    guard: UpdateGuard,
    _mark: RecoveringMark,
}

/// Marks a session as being recovered, until this is dropped.
struct RecoveringMark {
    recovering: Recovering,
    session: SessionId,
}

impl Drop for RecoveringMark {
    fn drop(&mut self) {
        self.recovering.send_modify(|recovering| {
            recovering.remove(&self.session);
        });
    }
}

impl Worktrees {
    /// Starts a commit or a merge, after completing an earlier one that was interrupted.
    pub(crate) async fn start_update(&self, session: SessionId) -> Result<UpdateGuard, Error> {
        let mut recovering = self.recovering.subscribe();
        let is_recovered = recovering.wait_for(|recovering| !recovering.contains(&session));
        // This fails only without a sender, which `self` has.
        drop(is_recovered.await);
        let guard = self.guard(session).ok_or_else(|| {
            let message =
                "another commit or merge of this session is in progress; try again when it is complete";
            Error::new(ErrorKind::RepositoryRefused, message)
        })?;
        match self.recover_update(session).await {
            Ok(_) => Ok(guard),
            Err(why) => Err(Error::new(ErrorKind::RepositoryRefused, why)),
        }
    }

    fn guard(&self, session: SessionId) -> Option<UpdateGuard> {
        let mut updating = self.updating.lock().unwrap_or_else(PoisonError::into_inner);
        updating.insert(session).then(|| UpdateGuard { updating: Arc::clone(&self.updating), session })
    }

    fn recovery(&self, session: SessionId) -> Option<Recovery> {
        let guard = self.guard(session)?;
        self.recovering.send_modify(|recovering| {
            recovering.insert(session);
        });
        Some(Recovery { guard, _mark: RecoveringMark { recovering: self.recovering.clone(), session } })
    }

    /// Prepares a commit. Changes no branch.
    pub(crate) async fn prepare_commit(
        &self,
        session: SessionId,
        worktree: Worktree,
        request: CommitRequest,
    ) -> Result<PreparedCommit, Error> {
        let prepare = |baseline| PrepareCommit { worktree, baseline, request };
        self.compare(session, prepare).await.map_err(|error| refusal("commit", &error))
    }

    /// Prepares a merge. Changes no branch.
    pub(crate) async fn prepare_merge(
        &self,
        worktree: Worktree,
        request: MergeRequest,
    ) -> Result<PreparedMerge, Error> {
        let verb = PrepareMerge { worktree, request };
        let answer = async { Ok(self.parts.files.call(verb, None, &mut tokio::io::sink()).await??) };
        answer.await.map_err(|error| refusal("merge", &error))
    }

    /// The commit and the remotes of a worktree's branch.
    pub(crate) async fn pushable(&self, session: SessionId, worktree: Worktree) -> Result<Pushable, Error> {
        let find = |baseline| FindPushable { worktree, baseline };
        self.compare(session, find).await.map_err(|error| refusal("inspect", &error))
    }

    /// Moves the branch of a prepared commit or merge. The audit entry is durable before anything changes.
    pub(crate) async fn update_branch(
        &self,
        caller: &Admitted,
        session: &SessionRow,
        act: &str,
        detail: Value,
        update: BranchUpdate,
    ) -> Result<(), Error> {
        let notes = update_notes(&self.parts.settings);
        let note = UpdateNote { session: session.id, act: act.to_owned(), update: update.clone() };
        off_thread(move || notes.write(&note)).await.map_err(|error| refusal(act, &error))?;
        kill_point("review", "noted");
        let commits = &self.parts.commits;
        if let Err(error) = session_audit::record(commits, caller, act, session, detail.clone()).await {
            self.erase_update_note(session.id);
            return Err(error);
        }
        kill_point("review", "audited");
        let verb = UpdateBranch { update };
        let answer = async { Ok(self.parts.files.call(verb, None, &mut tokio::io::sink()).await??) };
        let error: WorkError = match answer.await {
            Ok(()) => {
                kill_point("review", "updated");
                self.erase_update_note(session.id);
                return Ok(());
            }
            Err(error) => error,
        };
        let refused = refusal(act, &error);
        let mut failed = detail;
        failed["error"] = json!(refused.message);
        let entry = session_audit::change(caller, &format!("{act}_failed"), session, failed);
        commits.commit(vec![entry]).await.map_err(store_error)?;
        // A helper that failed or was killed may have changed some files.
        match self.recover_update(session.id).await {
            Ok(Some(Recovered::Completed)) => Ok(()),
            Ok(_) => Err(refused),
            Err(why) => Err(Error::new(refused.kind, format!("{}. {why}", refused.message))),
        }
    }

    /// Completes or reports the interrupted update of a session, if there is one.
    ///
    /// # Errors
    /// Why the update can neither be completed nor dropped.
    async fn recover_update(&self, session: SessionId) -> Result<Option<Recovered>, String> {
        let notes = update_notes(&self.parts.settings);
        let Ok(Some(note)) = off_thread(move || Ok(notes.of(session))).await else { return Ok(None) };
        let verb = RecoverUpdate { update: note.update.clone() };
        let answer = async { Ok(self.parts.files.call(verb, None, &mut tokio::io::sink()).await??) };
        let recovered = answer.await.map_err(|error: WorkError| message_of(&error))?;
        match &recovered {
            Recovered::Completed | Recovered::NotDone => {
                tracing::info!(%session, act = note.act, ?recovered, "recovered an interrupted update of a branch");
            }
            Recovered::Superseded { why } => {
                tracing::warn!(%session, act = note.act, why, "an interrupted update of a branch is not continued")
            }
            Recovered::Blocked { why } => {
                tracing::warn!(%session, act = note.act, why, "an interrupted update of a branch cannot be completed");
                return Err(why.clone());
            }
        }
        let name = self.parts.store.session(session).await.ok().flatten().map(|row| row.name);
        let BranchUpdate { branch, old, new, .. } = note.update;
        let mut detail = json!({"branch": branch, "before": old, "after": new});
        if let (Some(detail), Value::Object(outcome)) = (detail.as_object_mut(), json!(recovered)) {
            detail.extend(outcome);
        }
        let entry = AuditEntry {
            session_id: Some(session),
            session_name: name,
            detail: detail.as_object().cloned(),
            ..AuditEntry::new(now(), AuditKind::Session, format!("{}_recovered", note.act), Decider::Hub)
        };
        let committed = self.parts.commits.commit(vec![Change::Audit(Box::new(entry))]).await;
        committed.map_err(|error| error.to_string())?;
        self.erase_update_note(session);
        Ok(Some(recovered))
    }

    /// Completes the updates that a killed hub left, in the background.
    pub(super) fn recover_updates(self: &Arc<Self>) {
        let worktrees = Arc::clone(self);
        let interrupted = update_notes(&self.parts.settings).sessions();
        // The guards are taken before any door opens, so that no call finds a half-recovered branch.
        let recoveries: Vec<Recovery> =
            interrupted.into_iter().filter_map(|session| self.recovery(session)).collect();
        self.parts.tasks.spawn(async move {
            for recovery in recoveries {
                if !worktrees.parts.tasks.closing().is_cancelled() {
                    // Every error was logged, and the next call for this session tries again.
                    let _ = worktrees.recover_update(recovery.guard.session).await;
                }
            }
        });
    }

    fn erase_update_note(&self, session: SessionId) {
        if let Err(error) = update_notes(&self.parts.settings).erase(session) {
            tracing::warn!(%session, %error, "cannot delete the note about an update of a branch");
        }
    }
}

fn update_notes(settings: &Settings) -> UpdateNotes {
    UpdateNotes::new(settings.data_dir.join("updates"))
}

/// The error for the caller.
fn refusal(act: &str, error: &WorkError) -> Error {
    let message = message_of(error);
    let about = match error {
        WorkError::Failed(fault) => fault.about,
        WorkError::Helper(_) | WorkError::Own(_) | WorkError::Broken => FaultAbout::Nothing,
    };
    match about {
        FaultAbout::Review => Error::new(ErrorKind::ReviewOutdated, message),
        FaultAbout::Repository => Error::new(ErrorKind::RepositoryRefused, message),
        _ => Error::new(ErrorKind::WorktreeFailed, format!("cannot {act} the worktree: {message}")),
    }
}
