//! A worktree on its way to being a session's: noted, made, set up, and handed over; or undone wholly. Until the
//! session is committed nobody but the hub and the setup command has been in it, so undoing asks no questions.

use std::sync::Arc;
use std::time::Duration;

use plexus_protocol::worktree::{Worktree, WorktreeIsolation};
use plexus_protocol::{Error, ErrorKind, SessionId};
use plexus_store::NewSession;
use plexus_worktree::{Note, Plan, Request, Stage, WorktreeError, remove};
use tokio_util::sync::CancellationToken;

use super::setup::Setup;
use super::{WorkError, notes, record, told};
use crate::Hub;
use crate::bounds::place_of;
use crate::kill_point::kill_point;
use crate::session::going_away;

/// How long a setup command may take unless said.
const SETUP_WITHIN: Duration = Duration::from_secs(600);

/// A worktree that is ready, and whose session is not there yet. It has to be handed over or undone.
pub(crate) struct Making {
    hub: Arc<Hub>,
    session: SessionId,
    worktree: Worktree,
    working_dir: String,
}

/// How a making ended before it was ready.
enum Failure {
    /// Nothing goes on in it: it can be undone.
    Ended(Error),
    /// Something may still go on in it: the next hub undoes it.
    Left(Error),
}

impl Making {
    /// Makes a worktree for `session` and everything in it ready. On an error there is none, or will be none when the
    /// next hub starts; the same when `gone` says that nobody wants it any more.
    pub(crate) async fn ready(
        hub: &Arc<Hub>,
        session: &NewSession,
        isolation: WorktreeIsolation,
        gone: &CancellationToken,
    ) -> Result<Self, Error> {
        let id = session.id.to_string();
        let request = Request {
            working_dir: session.config.working_dir.clone().into(),
            worktrees_dir: hub.settings().worktrees_dir.clone(),
            name: format!("{}-{}", session.name, &id[..8]),
            base: isolation.base,
            copy: isolation.copy.unwrap_or_default(),
            copy_within: place_of(hub, &session.answers_to).await?,
        };
        let plan = hub.worktrees().make(move || Plan::of(&request)).await.map_err(|error| refusal(&error))?;
        if plan.working_dir().starts_with(&hub.settings().data_dir) {
            let message = "`worktrees_dir` leads into the data directory; choose another";
            return Err(Error::new(ErrorKind::WorktreeFailed, message));
        }
        let working_dir = plan.working_dir().to_string_lossy().into_owned();
        let making = Self {
            hub: Arc::clone(hub),
            session: session.id,
            worktree: plan.worktree().clone(),
            working_dir,
        };
        let setup = isolation.setup.map(|command| Setup {
            command,
            within: isolation.setup_timeout_secs.map_or(SETUP_WITHIN, Duration::from_secs),
            env: session.config.env.clone(),
            working_dir: making.working_dir.clone().into(),
        });
        match making.make(plan, setup, gone).await {
            Ok(()) => Ok(making),
            Err(Failure::Ended(error)) => {
                making.undo().await;
                Err(error)
            }
            Err(Failure::Left(error)) => {
                tracing::warn!(session = %making.session, path = making.worktree.path,
                    "a worktree was left half made; the next hub removes it");
                Err(error)
            }
        }
    }

    async fn make(&self, plan: Plan, setup: Option<Setup>, gone: &CancellationToken) -> Result<(), Failure> {
        let hub = &self.hub;
        let (notes, record) = (notes(hub.settings()), record(hub.settings(), self.session));
        let note = self.note(Stage::Making);
        let kept = record.clone();
        let made = hub.worktrees().make(move || {
            notes.write(&note)?;
            kill_point("worktree", "noted");
            plan.make(&kept)
        });
        made.await.map_err(|error| match error {
            WorkError::Failed(_) => Failure::Ended(refusal(&error)),
            WorkError::Stuck | WorkError::Broken => Failure::Left(refusal(&error)),
        })?;
        kill_point("worktree", "made");
        if let Some(setup) = setup {
            setup.run(hub, self.session, gone).await.map_err(Failure::Ended)?;
            let worktree = self.worktree.clone();
            // What setup made is no work of the session's.
            let taken = hub.worktrees().make(move || record.take(&worktree)).await;
            taken.map_err(|error| Failure::Ended(refusal(&error)))?;
        }
        kill_point("worktree", "set up");
        if hub.closing().is_cancelled() {
            return Err(Failure::Ended(going_away()));
        }
        if gone.is_cancelled() {
            return Err(Failure::Ended(Error::new(ErrorKind::Internal, "the caller has gone")));
        }
        Ok(())
    }

    /// What the session is to have.
    pub(crate) fn worktree(&self) -> &Worktree {
        &self.worktree
    }

    /// Where the session is to work.
    pub(crate) fn working_dir(&self) -> &str {
        &self.working_dir
    }

    /// The session is committed: the worktree is its own.
    pub(crate) fn handed_over(self) {
        kill_point("worktree", "committed");
        erase_note(&self.hub, self.session);
    }

    /// There will be no session.
    pub(crate) async fn undo(&self) {
        let worktree = self.worktree.clone();
        let dir = self.hub.settings().session_dir(self.session);
        let removed = self.hub.worktrees().make(move || {
            remove(&worktree)?;
            // Nothing is lost with what is left of it: there never was a session.
            let _ = std::fs::remove_dir_all(dir);
            Ok(())
        });
        match removed.await {
            Ok(()) => erase_note(&self.hub, self.session),
            Err(error) => {
                tracing::warn!(session = %self.session, path = self.worktree.path, error = told(&error),
                    "a worktree could not be removed; the next hub tries again");
            }
        }
    }

    fn note(&self, stage: Stage) -> Note {
        Note { session: self.session, stage, worktree: self.worktree.clone() }
    }
}

pub(super) fn erase_note(hub: &Hub, session: SessionId) {
    if let Err(error) = notes(hub.settings()).erase(session) {
        tracing::warn!(%session, %error, "a note of a worktree could not be erased");
    }
}

/// What the maker of a session is told.
fn refusal(error: &WorkError) -> Error {
    let message = told(error);
    match error {
        WorkError::Failed(
            WorktreeError::NoRepository(_)
            | WorktreeError::BadRepository { .. }
            | WorktreeError::Bare(_)
            | WorktreeError::NoCommits(_)
            | WorktreeError::NotInTree(_),
        ) => Error::new(ErrorKind::BadWorkingDir, message).with("field", "working_dir"),
        WorkError::Failed(WorktreeError::NoSuchBase { .. }) => Error::invalid("isolation.base", message),
        WorkError::Failed(WorktreeError::Copy { .. }) => Error::invalid("isolation.copy", message),
        _ => Error::new(ErrorKind::WorktreeFailed, format!("the worktree could not be made: {message}")),
    }
}
