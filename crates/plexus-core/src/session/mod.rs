//! A session and the one task that owns it. Everyone else sends it messages through a [`SessionHandle`]: prompts,
//! questions that came over MCP, answers to pass on, the wish to stop. The task alone speaks to the child.

mod answers;
mod asks;
mod budget;
mod changes;
mod commands;
mod cut;
mod ending;
mod nodes;
mod owner;
mod reading;
mod run;
mod take_up;
mod time;
mod transcript;
mod trouble;
mod turn;
mod waking;

use std::panic::AssertUnwindSafe;
use std::sync::Weak;
use std::time::Duration;

use futures::FutureExt;
use plexus_protocol::claudecode::{PermissionMode, TrustedProject};
use plexus_protocol::loopback::PermitParams;
use plexus_protocol::{ApprovalId, Error, ErrorKind, SessionId};
use plexus_store::{ApprovalRow, Change};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::Hub;
use crate::permit::{NewStream, Permitted};

pub(crate) use budget::waits_for_more;
pub(crate) use trouble::trouble_of;

/// So that a fault that is met at once again does not keep a core busy.
const AFTER_A_PANIC: Duration = Duration::from_secs(1);

/// What a session's task can be told.
#[derive(Debug)]
enum Command {
    /// Begin a turn with this prompt.
    Prompt { prompt: Prompt, reply: oneshot::Sender<Result<u64, Error>> },
    /// A question over MCP, from this run.
    Permit(Box<PermitCommand>),
    /// The child never came back for this answer.
    PermitLost(ApprovalId),
    /// An approval of this session came to its end.
    Resolved(Box<ApprovalRow>),
    /// A question for more, of this session or another, came to its end.
    Budget(Box<ApprovalRow>),
    /// Someone's limits have changed.
    LimitsChanged,
    /// Hand out a token for a child that was started elsewhere.
    Configure { reply: oneshot::Sender<Result<String, Error>> },
    /// Be in this mode from now on.
    SetMode { mode: PermissionMode, reply: oneshot::Sender<Result<(), Error>> },
    /// Use this model from now on.
    SetModel { model: Option<String>, reply: oneshot::Sender<Result<(), Error>> },
    /// Load this of the project from the next process on, and make these changes with it.
    Trust {
        project: Option<Box<TrustedProject>>,
        changes: Vec<Change>,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Add a message to the running turn.
    Send { text: String, reply: oneshot::Sender<Result<u64, Error>> },
    /// Those below ask: have a turn, if there is none and none was had because of it.
    Wake,
    /// End the running turn and keep the process.
    Interrupt { reply: oneshot::Sender<()> },
    /// End the processes, because of this.
    Stop { why: String, reply: oneshot::Sender<()> },
    /// The session was deleted: nothing follows.
    Retire,
}

/// What an agent is to do.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) reading: Reading,
}

/// How Claude Code reads a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reading {
    /// As it stands.
    #[default]
    Plain,
    /// With the files that it names as `@path`.
    Expanded,
}

/// A question over MCP.
#[derive(Debug)]
struct PermitCommand {
    run: u32,
    params: PermitParams,
    stream: Option<NewStream>,
    reply: oneshot::Sender<Permitted>,
}

/// Speaks to the task that owns a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    inbox: mpsc::UnboundedSender<Command>,
}

/// Starts the task that owns session `id`.
pub(crate) fn start(hub: Weak<Hub>, tasks: &TaskTracker, id: SessionId) -> SessionHandle {
    let (inbox, commands) = mpsc::unbounded_channel();
    tasks.spawn(async move {
        let owner = AssertUnwindSafe(owner::own(hub.clone(), id, commands));
        if owner.catch_unwind().await.is_err() {
            // A fault of ours must not leave a child waiting: another task takes it up from the store.
            tracing::error!(session = %id, "the owner of a session panicked; another takes over");
            tokio::time::sleep(AFTER_A_PANIC).await;
            if let Some(hub) = hub.upgrade() {
                hub.session(id);
            }
        }
    });
    SessionHandle { inbox }
}

impl SessionHandle {
    pub(crate) fn is_closed(&self) -> bool {
        self.inbox.is_closed()
    }

    /// Begins a turn; its number once it is durable.
    pub(crate) async fn prompt(&self, prompt: Prompt) -> Result<u64, Error> {
        let (reply, answer) = oneshot::channel();
        self.tell(Command::Prompt { prompt, reply });
        answer.await.unwrap_or_else(|_| Err(going_away()))
    }

    /// Asks for permission over MCP. A hub that goes away never answers: the next one is asked again.
    pub(crate) async fn permit(
        &self,
        run: u32,
        params: PermitParams,
        stream: Option<NewStream>,
    ) -> Permitted {
        let (reply, answer) = oneshot::channel();
        self.tell(Command::Permit(Box::new(PermitCommand { run, params, stream, reply })));
        match answer.await {
            Ok(permitted) => permitted,
            Err(_) => std::future::pending().await,
        }
    }

    pub(crate) fn permit_lost(&self, approval: ApprovalId) {
        self.tell(Command::PermitLost(approval));
    }

    pub(crate) fn resolved(&self, row: ApprovalRow) {
        self.tell(Command::Resolved(Box::new(row)));
    }

    pub(crate) fn budget(&self, row: ApprovalRow) {
        self.tell(Command::Budget(Box::new(row)));
    }

    pub(crate) fn limits_changed(&self) {
        self.tell(Command::LimitsChanged);
    }

    /// A token for a child that was started elsewhere.
    pub(crate) async fn configure(&self) -> Result<String, Error> {
        let (reply, answer) = oneshot::channel();
        self.tell(Command::Configure { reply });
        answer.await.unwrap_or_else(|_| Err(going_away()))
    }

    /// Changes the mode, of the running process as well.
    pub(crate) async fn set_mode(&self, mode: PermissionMode) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.tell(Command::SetMode { mode, reply });
        answer.await.unwrap_or_else(|_| Err(going_away()))
    }

    /// Changes the model, of the running process as well.
    pub(crate) async fn set_model(&self, model: Option<String>) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.tell(Command::SetModel { model, reply });
        answer.await.unwrap_or_else(|_| Err(going_away()))
    }

    /// Changes what of the project its next process loads.
    pub(crate) async fn trust(
        &self,
        project: Option<TrustedProject>,
        changes: Vec<Change>,
    ) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.tell(Command::Trust { project: project.map(Box::new), changes, reply });
        answer.await.unwrap_or_else(|_| Err(going_away()))
    }

    /// Adds a message to the running turn; its number.
    pub(crate) async fn send(&self, text: String) -> Result<u64, Error> {
        let (reply, answer) = oneshot::channel();
        self.tell(Command::Send { text, reply });
        answer.await.unwrap_or_else(|_| Err(going_away()))
    }

    /// Those below it ask.
    pub(crate) fn wake(&self) {
        self.tell(Command::Wake);
    }

    /// Ends the running turn; returns when it is over.
    pub(crate) async fn interrupt(&self) {
        let (reply, done) = oneshot::channel();
        self.tell(Command::Interrupt { reply });
        // An error means that the task has ended, and the turn with it or left for the next hub.
        let _ = done.await;
    }

    /// Ends the processes of the session for certain.
    pub(crate) async fn stop(&self, why: &str) {
        let (reply, done) = oneshot::channel();
        self.tell(Command::Stop { why: why.to_owned(), reply });
        // An error means that the task has ended, and its child with it or left for the next hub.
        let _ = done.await;
    }

    pub(crate) fn retire(&self) {
        self.tell(Command::Retire);
    }

    fn tell(&self, command: Command) {
        // A closed inbox drops the command and with it the reply: whoever waits is told by that.
        let _ = self.inbox.send(command);
    }
}

pub(crate) fn going_away() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the hub is going away; try again when it is back")
}
