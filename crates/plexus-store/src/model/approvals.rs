//! What is asked: approvals, the calls they are about, the limits that calls are held by, and the streams that wait.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::claudecode::Channel;
use plexus_protocol::{Approval, ApprovalId, Object, SessionId, UnixSeconds};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunKey;

/// An approval to be asked.
#[derive(Debug, Clone)]
pub struct NewApproval {
    /// As it will be shown; its status is `pending`.
    pub approval: Approval,
    /// The run that asks.
    pub run: u32,
    /// The turn it belongs to; 0 outside any.
    pub turn: u64,
    /// How it came.
    pub channel: Channel,
    /// The control request to answer, on the control channel.
    pub request_id: Option<String>,
}

/// An approval as it is kept. `approval.session_name` is the session's present name, and the input is whole.
#[derive(Debug, Clone)]
pub struct ApprovalRow {
    /// As it is shown.
    pub approval: Approval,
    /// The run that asks.
    pub run: u32,
    /// The turn it belongs to.
    pub turn: u64,
    /// How it came.
    pub channel: Channel,
    /// The control request to answer.
    pub request_id: Option<String>,
    /// Its number in the feed.
    pub number: u64,
}

/// A tool call as the gate saw and answered it.
#[derive(Debug, Clone)]
pub struct CallRow {
    /// The run.
    pub key: RunKey,
    /// The turn.
    pub turn: u64,
    /// The agent's id for the call.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// Names tool, input and directory.
    pub digest: String,
    /// The control request it came in.
    pub request_id: String,
    /// The gate's answer, as the gate writes it.
    pub verdict: Value,
}

/// What else is known of a call that the gate saw.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallInput {
    /// What the tool is to be given.
    pub input: Object,
    /// Where the child stood.
    pub cwd: Option<String>,
    /// The mode the child was in.
    pub mode: Option<String>,
}

impl From<Object> for CallInput {
    fn from(input: Object) -> Self {
        Self { input, cwd: None, mode: None }
    }
}

/// A limit of a session, in units ([`BudgetLimit::units`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRow {
    /// The session it was given to, for itself and all below it.
    pub session: SessionId,
    /// What is limited.
    pub limit: BudgetLimit,
    /// What was given.
    pub granted: u64,
    /// What was used by it, by those below it without such a limit, and by those that are deleted.
    pub own: u64,
    /// What is set aside for those below it that have such a limit.
    pub below: u64,
    /// What it and all below it have used since it was given.
    pub used: u64,
}

impl BudgetRow {
    /// What can still be used or given.
    pub fn left(&self) -> u64 {
        self.granted.saturating_sub(self.own + self.below)
    }
}

/// Something waits until more is given.
#[derive(Debug, Clone)]
pub struct Held {
    /// The session that waits.
    pub session: SessionId,
    /// The call that waits at the gate; `None` where the turn itself is to end without more.
    pub tool_use_id: Option<String>,
    /// The question for more.
    pub approval: ApprovalId,
    /// The limit that is used up.
    pub limit: BudgetRow,
}

/// A stream on which a permit over HTTP waits, so that it can be taken up again after a restart.
#[derive(Debug, Clone)]
pub struct PermitStream {
    /// The SSE event id the stream began with.
    pub event_id: String,
    /// Whose it is.
    pub key: RunKey,
    /// The approval it waits for.
    pub approval: ApprovalId,
    /// The JSON-RPC id to answer.
    pub jsonrpc_id: Value,
    /// The progress token to keep it alive with.
    pub progress_token: Option<Value>,
}

/// Which pending approvals are meant.
#[derive(Debug, Clone)]
pub enum Open {
    /// All of them.
    All,
    /// One session's.
    OfSession(SessionId),
    /// Those asked of one addressee ([`plexus_protocol::AskedOf::key`]), and those that went on without it: it may come back and decide
    /// them. The number of each is the one it had when this addressee was asked.
    AskedOf(String),
}

/// How much is alive and open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Living sessions.
    pub sessions: u64,
    /// Pending approvals.
    pub open_approvals: u64,
    /// When the oldest of them was asked.
    pub oldest_open: Option<UnixSeconds>,
}
