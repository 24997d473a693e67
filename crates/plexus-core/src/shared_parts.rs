//! The parts of a hub that its sessions, their worktrees and the background tasks share. Each part owns its state; this
//! module contains no logic.

use std::path::PathBuf;
use std::sync::Arc;

use plexus_agent::JournalWatch;
use plexus_store::{Change, Committed, Store, StoreError};
use tokio::sync::Semaphore;

use crate::deltas::Deltas;
use crate::disk::Disk;
use crate::escalation::Escalation;
use crate::limits::Reservations;
use crate::loading::{Imports, UserSettings};
use crate::metrics::Metrics;
use crate::policy::Policies;
use crate::processes::files::Files;
use crate::processes::keepers::Keepers;
use crate::processes::sandbox::SandboxSetup;
use crate::processes::sandboxed_command::CommandRunner;
use crate::tasks::Tasks;
use crate::{Address, Settings};
use plexus_book::{Book, Commits};

/// The parts of a hub.
pub(crate) struct Parts {
    pub(crate) settings: Arc<Settings>,
    pub(crate) address: Address,
    /// This program, for processes outside the sandbox: keepers and file helpers.
    pub(crate) own_program: PathBuf,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) commits: Arc<Commits>,
    pub(crate) book: Arc<Book>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) escalation: Arc<Escalation>,
    pub(crate) reservations: Arc<Reservations>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) deltas: Arc<Deltas>,
    pub(crate) disk: Disk,
    pub(crate) watch: JournalWatch,
    pub(crate) sandbox: SandboxSetup,
    pub(crate) files: Files,
    pub(crate) user_settings: UserSettings,
    pub(crate) imports: Imports,
    pub(crate) keepers: Keepers,
    /// Permits to hold many unstored lines in memory.
    pub(crate) reading: Arc<Semaphore>,
    pub(crate) tasks: Tasks,
}

impl Parts {
    /// Commits changes. They are published when they are durable.
    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Result<Committed, StoreError> {
        self.commits.commit(changes).await
    }

    /// Runs commands in the children's sandbox.
    pub(crate) fn commands(&self) -> CommandRunner<'_> {
        CommandRunner {
            own_program: &self.own_program,
            settings: &self.settings,
            sandbox: &self.sandbox,
            keepers: &self.keepers,
            closing: self.tasks.closing(),
        }
    }
}
