//! Creates the worktree of a new session: writes a note, creates the worktree, runs the setup command, and hands the
//! worktree over to the session. After an error it undoes everything. Until the session is committed, only the hub and the
//! setup command have used the worktree, so undoing deletes it without any check.

use std::sync::Arc;
use std::time::Duration;

use plexus_files::{CreateWorktree, CreatedWorktree, FaultAbout, PlanWorktree, RemoveWorktree, TakeBaseline};
use plexus_protocol::worktree::{Worktree, WorktreeIsolation};
use plexus_protocol::{Error, ErrorKind, SessionId};
use plexus_store::NewSession;
use plexus_worktree::{Note, Plan, Record, Request, Stage};
use tokio_util::sync::CancellationToken;

use super::setup::Setup;
use super::{WorkError, message_of, notes, off_thread, record};
use crate::errors::shutting_down;
use crate::policy::inheritance::working_dir_of;
use crate::shared_parts::Parts;
use plexus_book::kill_point;

/// The default time limit of a setup command.
const SETUP_WITHIN: Duration = Duration::from_secs(600);

/// A worktree that is ready, but whose session does not exist yet. It must be handed over or undone.
pub(crate) struct PendingWorktree {
    parts: Arc<Parts>,
    session: SessionId,
    worktree: Worktree,
    working_dir: String,
}

impl PendingWorktree {
    /// Creates a worktree for `session` and runs its setup command. After an error, or after `disconnected` is cancelled
    /// because the caller disconnected, the worktree is deleted, at the latest when the next hub starts.
    pub(crate) async fn create(
        parts: &Arc<Parts>,
        session: &NewSession,
        isolation: WorktreeIsolation,
        disconnected: &CancellationToken,
    ) -> Result<Self, Error> {
        let id = session.id.to_string();
        let request = Request {
            working_dir: session.config.working_dir.clone().into(),
            worktrees_dir: parts.settings.worktrees_dir(),
            name: format!("{}-{}", session.name, &id[..8]),
            base: isolation.base,
            copy: isolation.copy.unwrap_or_default(),
            copy_within: working_dir_of(&*parts.store, &session.answers_to).await?,
        };
        let plan = plan(parts, request).await.map_err(|error| refusal(&error))?;
        if plan.working_dir().starts_with(&parts.settings.data_dir) {
            let message =
                "`worktrees_dir` in plexus.toml is inside the data directory; choose another directory";
            return Err(Error::new(ErrorKind::WorktreeFailed, message));
        }
        let working_dir = plan.working_dir().to_string_lossy().into_owned();
        let pending = Self {
            parts: Arc::clone(parts),
            session: session.id,
            worktree: plan.worktree().clone(),
            working_dir,
        };
        let setup = isolation.setup.map(|command| Setup {
            command,
            within: isolation.setup_timeout_secs.map_or(SETUP_WITHIN, Duration::from_secs),
            env: session.config.env.clone(),
            working_dir: pending.working_dir.clone().into(),
        });
        match pending.check_out_and_set_up(plan, setup, disconnected).await {
            Ok(()) => Ok(pending),
            Err(error) => {
                pending.undo().await;
                Err(error)
            }
        }
    }

    async fn check_out_and_set_up(
        &self,
        plan: Plan,
        setup: Option<Setup>,
        disconnected: &CancellationToken,
    ) -> Result<(), Error> {
        let parts = &self.parts;
        let (notes, note) = (notes(&parts.settings), self.note(Stage::Creating));
        off_thread(move || notes.write(&note)).await.map_err(|error| refusal(&error))?;
        kill_point("worktree", "noted");
        let record = record(&parts.settings, self.session);
        check_out(parts, plan, &record).await.map_err(|error| refusal(&error))?;
        kill_point("worktree", "made");
        if let Some(setup) = setup {
            setup.run(parts, self.session, disconnected).await?;
            // Files that setup created are not work of the session.
            self.store_baseline(record).await.map_err(|error| refusal(&error))?;
        }
        kill_point("worktree", "set up");
        if parts.tasks.closing().is_cancelled() {
            return Err(shutting_down());
        }
        if disconnected.is_cancelled() {
            return Err(Error::new(ErrorKind::Internal, "the caller disconnected"));
        }
        Ok(())
    }

    /// Records the current differences from the checkout.
    async fn store_baseline(&self, record: Record) -> Result<(), WorkError> {
        let verb = TakeBaseline { worktree: self.worktree.clone() };
        let index = record.index_file();
        let baseline = self.parts.files.call(verb, Some(&index), &mut tokio::io::sink()).await??;
        off_thread(move || record.store_baseline(&baseline)).await
    }

    /// The worktree of the future session.
    pub(crate) fn worktree(&self) -> &Worktree {
        &self.worktree
    }

    /// The working directory of the future session.
    pub(crate) fn working_dir(&self) -> &str {
        &self.working_dir
    }

    /// The session is committed and owns the worktree.
    pub(crate) fn hand_over(self) {
        kill_point("worktree", "committed");
        erase_note(&self.parts, self.session);
    }

    /// Deletes the worktree: the session will not be created.
    pub(crate) async fn undo(&self) {
        match remove_worktree(&self.parts, self.worktree.clone()).await {
            Ok(()) => {
                let dir = self.parts.settings.session_dir(self.session);
                // The session never existed, so nothing is lost if its directory remains.
                let _ = tokio::fs::remove_dir_all(dir).await;
                erase_note(&self.parts, self.session);
            }
            Err(error) => {
                tracing::warn!(session = %self.session, path = self.worktree.path, error = message_of(&error),
                    "cannot delete a worktree; the next hub tries again");
            }
        }
    }

    fn note(&self, stage: Stage) -> Note {
        Note { session: self.session, stage, worktree: self.worktree.clone() }
    }
}

async fn plan(parts: &Parts, request: Request) -> Result<Plan, WorkError> {
    Ok(parts.files.call(PlanWorktree { request }, None, &mut tokio::io::sink()).await??)
}

/// Creates a worktree, and stores its initial state.
async fn check_out(parts: &Parts, plan: Plan, record: &Record) -> Result<(), WorkError> {
    let drafted = record.clone();
    let mut draft = tokio::fs::File::from_std(off_thread(move || drafted.draft()).await?);
    let created = parts.files.call(CreateWorktree { plan }, None, &mut draft).await??;
    let CreatedWorktree { modified, baseline } = created;
    let record = record.clone();
    off_thread(move || record.keep_index(modified).and_then(|()| record.store_baseline(&baseline))).await
}

/// Deletes a worktree with its branch, whatever its content.
pub(super) async fn remove_worktree(parts: &Parts, worktree: Worktree) -> Result<(), WorkError> {
    Ok(parts.files.call(RemoveWorktree { worktree }, None, &mut tokio::io::sink()).await??)
}

pub(super) fn erase_note(parts: &Parts, session: SessionId) {
    if let Err(error) = notes(&parts.settings).erase(session) {
        tracing::warn!(%session, %error, "cannot delete the note about a worktree");
    }
}

/// The error for the creator of the session.
fn refusal(error: &WorkError) -> Error {
    let message = message_of(error);
    let about = match error {
        WorkError::Failed(fault) => fault.about,
        WorkError::Helper(_) | WorkError::Own(_) | WorkError::Broken => FaultAbout::Nothing,
    };
    match about {
        FaultAbout::WorkingDir => Error::new(ErrorKind::BadWorkingDir, message).with("field", "working_dir"),
        FaultAbout::Base => Error::invalid("isolation.base", message),
        FaultAbout::Copy => Error::invalid("isolation.copy", message),
        FaultAbout::Review | FaultAbout::Repository | FaultAbout::Nothing => {
            Error::new(ErrorKind::WorktreeFailed, format!("cannot create the worktree: {message}"))
        }
    }
}
