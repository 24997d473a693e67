//! Sessions. One task owns each session and its child; callers send it commands through a [`SessionHandle`].
//!
//! `machine` holds the state and takes every decision; it does no I/O. `owner` is the task around it: it gives the machine its
//! inputs and carries out the effects (`effects`), among them commits, lines for the child and new processes
//! (`start_process`). `attach` continues the process of an earlier hub, `child` is the connection to a process, and
//! `transcript` finds Claude Code's own files of a conversation.

mod attach;
mod child;
mod effects;
mod handle;
mod hook_tasks;
mod machine;
mod owner;
mod resume;
mod sessions;
mod start_process;

use plexus_claude::PermissionResult;
use plexus_protocol::claudecode::{PermissionMode, TrustedProject};
use plexus_protocol::loopback::PermitParams;
use plexus_protocol::{ApprovalId, Error};
use plexus_store::{ApprovalRow, CallIds, Change, PermitStream, RunKey};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::attachments::Attachments;

pub(crate) use handle::{Known, SessionHandle};
pub(crate) use machine::{cost_so_far, has_read_prompt, trouble_of, waits_for_budget};
pub(crate) use sessions::Sessions;

/// A command for the owner of a session.
#[derive(Debug)]
enum Command {
    /// Begin a turn with this prompt.
    Prompt { prompt: Prompt, reply: oneshot::Sender<Result<u64, Error>> },
    /// A run requests an approval over MCP.
    Permit(Box<PermitCommand>),
    /// The child never came back for this answer.
    PermitLost(ApprovalId),
    /// An approval of this session was resolved.
    Resolved(Box<ApprovalRow>),
    /// A budget approval, of this session or another, was resolved.
    Budget(Box<ApprovalRow>),
    /// The budget of some session has changed.
    LimitsChanged,
    /// Register a run that was started elsewhere, with this token.
    Configure { token: String, reply: oneshot::Sender<Result<String, Error>> },
    /// Change the mode.
    SetMode { mode: PermissionMode, reply: oneshot::Sender<Result<(), Error>> },
    /// Change the model.
    SetModel { model: Option<String>, reply: oneshot::Sender<Result<(), Error>> },
    /// Trust these files of the project from the next process on, and commit these changes with it.
    Trust {
        project: Option<Box<TrustedProject>>,
        changes: Vec<Change>,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Add a message to the running turn.
    Send { text: String, attachments: Attachments, reply: oneshot::Sender<Result<u64, Error>> },
    /// Approvals of descendants wait: start a turn, unless one is running or was started for them.
    Wake,
    /// End the running turn and keep the process.
    Interrupt { reply: oneshot::Sender<()> },
    /// End the processes for this reason.
    Stop { why: String, reply: oneshot::Sender<()> },
    /// The session was deleted: no command follows.
    Retire,
}

/// A prompt for an agent.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) format: PromptFormat,
    /// Its files.
    pub(crate) attachments: Attachments,
}

/// How Claude Code reads a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PromptFormat {
    /// As plain text.
    #[default]
    Plain,
    /// With the contents of the files that it names as `@path`.
    Expanded,
    /// As Claude Code's own command [`COMPACT`], followed by instructions. It runs in a process of its own.
    Compact,
}

/// The command that summarises a conversation.
pub(crate) const COMPACT: &str = "/compact";

/// An approval request over MCP.
#[derive(Debug)]
struct PermitCommand {
    run: u32,
    params: PermitParams,
    stream: Option<NewStream>,
    reply: oneshot::Sender<Permitted>,
}

/// The outcome of an approval request over MCP.
#[derive(Debug)]
pub(crate) enum Permitted {
    /// It is decided.
    Decided(PermissionResult),
    /// It waits for this approval.
    Waiting(ApprovalId),
}

/// The stream of a request over HTTP, which is stored with its approval.
#[derive(Debug)]
pub(crate) struct NewStream {
    pub(crate) stream_id: String,
    pub(crate) ids: CallIds,
}

impl NewStream {
    pub(crate) fn of(self, key: RunKey, approval: ApprovalId) -> Change {
        Change::Stream(Box::new(PermitStream { event_id: self.stream_id, key, approval, ids: self.ids }))
    }
}
