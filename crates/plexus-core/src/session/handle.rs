//! The sending side of a session's inbox: one method for each command.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plexus_protocol::claudecode::{PermissionMode, TrustedProject};
use plexus_protocol::loopback::PermitParams;
use plexus_protocol::{ApprovalId, AskedOf, Error, ErrorKind, SessionName};
use plexus_store::{ApprovalRow, Change};
use tokio::sync::{mpsc, oneshot};

use super::{Command, PermitCommand, Prompt};
use crate::attachments::Attachments;
use crate::callers::secret::new_token;
use crate::errors::shutting_down;
use crate::session::{NewStream, Permitted};

/// What an owner knows of its session. It serves a stop while the store is unavailable.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) name: SessionName,
    pub(crate) answers_to: AskedOf,
}

/// Sends commands to the task that owns a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    inbox: mpsc::UnboundedSender<Command>,
    known: Arc<Mutex<Option<Known>>>,
}

impl SessionHandle {
    pub(super) fn new(inbox: mpsc::UnboundedSender<Command>, known: Arc<Mutex<Option<Known>>>) -> Self {
        Self { inbox, known }
    }

    /// `None` until the owner has read its session.
    pub(crate) fn known(&self) -> Option<Known> {
        self.lock_known().clone()
    }

    /// The session has another name.
    pub(crate) fn renamed(&self, name: SessionName) {
        if let Some(known) = self.lock_known().as_mut() {
            known.name = name;
        }
    }

    fn lock_known(&self) -> MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inbox.is_closed()
    }

    /// Begins a turn and returns its number once it is durable.
    pub(crate) async fn prompt(&self, prompt: Prompt) -> Result<u64, Error> {
        self.request(|reply| Command::Prompt { prompt, reply }).await
    }

    /// Requests an approval over MCP. A hub that shuts down never answers: the child asks the next one.
    pub(crate) async fn permit(
        &self,
        run: u32,
        params: PermitParams,
        stream: Option<NewStream>,
    ) -> Permitted {
        let (reply, answer) = oneshot::channel();
        self.post(Command::Permit(Box::new(PermitCommand { run, params, stream, reply })));
        match answer.await {
            Ok(permitted) => permitted,
            Err(_) => std::future::pending().await,
        }
    }

    pub(crate) fn permit_lost(&self, approval: ApprovalId) {
        self.post(Command::PermitLost(approval));
    }

    pub(crate) fn resolved(&self, row: ApprovalRow) {
        self.post(Command::Resolved(Box::new(row)));
    }

    pub(crate) fn budget(&self, row: ApprovalRow) {
        self.post(Command::Budget(Box::new(row)));
    }

    pub(crate) fn limits_changed(&self) {
        self.post(Command::LimitsChanged);
    }

    /// Registers a run that was started elsewhere and returns its token.
    pub(crate) async fn configure(&self) -> Result<String, Error> {
        let token = new_token().map_err(|error| {
            Error::new(
                ErrorKind::Internal,
                format!("cannot create a token, because the system provides no random bytes: {error}"),
            )
        })?;
        self.request(|reply| Command::Configure { token, reply }).await
    }

    /// Changes the mode, including that of the running process.
    pub(crate) async fn set_mode(&self, mode: PermissionMode) -> Result<(), Error> {
        self.request(|reply| Command::SetMode { mode, reply }).await
    }

    /// Changes the model, including that of the running process.
    pub(crate) async fn set_model(&self, model: Option<String>) -> Result<(), Error> {
        self.request(|reply| Command::SetModel { model, reply }).await
    }

    /// Changes the trusted project, from the next process on.
    pub(crate) async fn trust(
        &self,
        project: Option<TrustedProject>,
        changes: Vec<Change>,
    ) -> Result<(), Error> {
        self.request(|reply| Command::Trust { project: project.map(Box::new), changes, reply }).await
    }

    /// Adds a message to the running turn and returns the number of the turn.
    pub(crate) async fn send(&self, text: String, attachments: Attachments) -> Result<u64, Error> {
        self.request(|reply| Command::Send { text, attachments, reply }).await
    }

    /// Approvals of descendants wait for this session.
    pub(crate) fn wake(&self) {
        self.post(Command::Wake);
    }

    /// Ends the running turn; returns when it is over.
    pub(crate) async fn interrupt(&self) {
        let (reply, done) = oneshot::channel();
        self.post(Command::Interrupt { reply });
        // An error means that the task has ended: the turn has ended with it, or the next hub recovers it.
        let _ = done.await;
    }

    /// Ends the processes of the session; returns when they are gone.
    pub(crate) async fn stop(&self, why: &str) {
        let (reply, done) = oneshot::channel();
        self.post(Command::Stop { why: why.to_owned(), reply });
        // An error means that the task has ended: the child has ended with it, or the next hub recovers it.
        let _ = done.await;
    }

    /// Ends the processes of the session, without waiting for it.
    pub(crate) fn stop_soon(&self, why: &str) {
        let (reply, _) = oneshot::channel();
        self.post(Command::Stop { why: why.to_owned(), reply });
    }

    pub(crate) fn retire(&self) {
        self.post(Command::Retire);
    }

    async fn request<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.post(command(reply));
        answer.await.unwrap_or_else(|_| Err(shutting_down()))
    }

    fn post(&self, command: Command) {
        // A closed inbox drops the command and its reply channel, which ends the wait of the caller.
        let _ = self.inbox.send(command);
    }
}
