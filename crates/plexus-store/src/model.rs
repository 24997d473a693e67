//! The plain data a store keeps.

use std::collections::BTreeMap;

use plexus_protocol::audit::{AuditHead, AuditKind};
use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::claudecode::{Channel, McpServer, PermissionMode, PolicyName, TrustedProject};
use plexus_protocol::token::TokenRight;
use plexus_protocol::worktree::Worktree;
use plexus_protocol::{
    Approval, ApprovalId, ApprovalKind, AskedOf, Decider, NodeId, Object, SessionId, SessionName, TokenName,
    TreeId, UnixSeconds,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arbor::{Begins, ResumePoint};

/// One run of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    /// The session.
    pub session: SessionId,
    /// Its run, from 1.
    pub run: u32,
}

/// What a session was made with; kept as one JSON text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionConfig {
    /// Where the agent works.
    pub working_dir: String,
    /// The worktree that is its own, if it has one; the agent works in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The model it was given.
    pub model: Option<String>,
    /// The system prompt it was given.
    pub system_prompt: Option<String>,
    /// Whether its calls stop at the gate.
    pub loopback_enabled: bool,
    /// How it asks.
    pub channel: Channel,
    /// What it may do by itself.
    #[serde(default)]
    pub permission_mode: PermissionMode,
    /// What is said at the gate.
    #[serde(default)]
    pub policy: PolicyName,
    /// Whether live listeners get token deltas.
    #[serde(default)]
    pub deltas: bool,
    /// Environment on top of what it inherits.
    pub env: BTreeMap<String, String>,
    /// The MCP servers it was given, by name; with their secrets, until it is deleted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// What of its project's own files the operator trusts; until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<TrustedProject>,
    /// Whether it may start agents of its own.
    pub hub_tools: bool,
    /// What it may allow for those below it, as rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approve_scope: Vec<String>,
    /// When an unanswered approval expires.
    pub approval_timeout_secs: Option<u64>,
    /// When an unanswered approval goes on to the next above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_after_secs: Option<u64>,
    /// Whether it is given a turn when those below it ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wake: bool,
    /// What its maker kept with it.
    pub metadata: Option<Object>,
    /// Where it was forked from: what its first process takes up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<ResumePoint>,
}

/// A session to be made.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: SessionName,
    /// Who answers for it.
    pub answers_to: AskedOf,
    /// What it was made with.
    pub config: SessionConfig,
    /// Its conversation tree.
    pub tree: TreeId,
    /// Where its conversation stands: the root of a new tree, or a node of one that is there.
    pub head: NodeId,
    /// Which of both.
    pub begins: Begins,
}

/// A session as it is kept.
#[derive(Debug, Clone)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: SessionName,
    /// Who answers for it.
    pub answers_to: AskedOf,
    /// What it was made with.
    pub config: SessionConfig,
    /// Its conversation tree.
    pub tree: TreeId,
    /// Where its conversation began.
    pub beginning: NodeId,
    /// Where its conversation stands.
    pub head: NodeId,
    /// Its latest turn; 0 before the first.
    pub latest_turn: u64,
    /// Its latest run; 0 before the first.
    pub latest_run: u32,
    /// When it was made.
    pub created_at: UnixSeconds,
    /// When it was deleted, if it was.
    pub deleted_at: Option<UnixSeconds>,
    /// What its turns have cost, in dollars.
    pub cost_usd: f64,
    /// Up to which number of the feed it was woken.
    pub woken_to: u64,
}

/// A living session and how it stands.
#[derive(Debug, Clone)]
pub struct LivingSession {
    /// The session.
    pub row: SessionRow,
    /// How its latest turn stands; `None` before the first.
    pub turn: Option<TurnState>,
    /// What its open approvals ask about, one entry each.
    pub open: Vec<ApprovalKind>,
    /// Its limits.
    pub budget: Vec<BudgetRow>,
}

/// How a turn stands.
#[derive(Debug, Clone)]
pub struct TurnState {
    /// In a word.
    pub status: TurnStatus,
    /// What the session's owner has to remember of it.
    pub progress: Value,
    /// When it began.
    pub started_at: UnixSeconds,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Committed, its keeper not yet known: given up when found by a new hub.
    Starting,
    /// Its keeper is known.
    Running,
    /// Its stdin is closed, or about to be; prompts go to the next run.
    Ending,
    /// Its process is not the hub's: it was started elsewhere and asks over MCP.
    External,
    /// Over.
    Ended,
}

/// A run as it is kept.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// Which.
    pub key: RunKey,
    /// Where it stands.
    pub state: RunState,
    /// The keeper's identity, as the process layer writes it.
    pub process: Option<Value>,
    /// Up to where its journal has been read and stored.
    pub journal_offset: u64,
    /// When it was begun.
    pub created_at: UnixSeconds,
}

/// How a turn stands, as far as the store is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Not over.
    Running,
    /// Ended well.
    Complete,
    /// Ended badly.
    Failed,
    /// Ended by someone.
    Interrupted,
}

/// A turn as it is kept.
#[derive(Debug, Clone)]
pub struct TurnRow {
    /// The session.
    pub session: SessionId,
    /// Its number, from 1.
    pub turn: u64,
    /// How it stands.
    pub status: TurnStatus,
    /// The run its prompt was bound to.
    pub run: Option<u32>,
    /// The prompt.
    pub prompt: String,
    /// The uuid the prompt goes out under, in that run.
    pub prompt_uuid: String,
    /// What the session's owner has to remember of it between two lines.
    pub progress: Value,
    /// When it began.
    pub started_at: UnixSeconds,
    /// When it ended.
    pub ended_at: Option<UnixSeconds>,
    /// Whether its events are there.
    pub events: EventsOfTurn,
    /// Where the conversation stood when it ended.
    pub head: Option<NodeId>,
}

/// Whether the events of a turn are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventsOfTurn {
    /// All of them.
    Kept,
    /// They are being removed: some may be there, and are shown to nobody.
    Removing,
    /// None any more.
    Removed,
}

/// A run that is over and whose files have not been removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedRun {
    /// Which.
    pub key: RunKey,
    /// When it ended.
    pub ended_at: UnixSeconds,
    /// When its session was deleted, if it was.
    pub session_deleted_at: Option<UnixSeconds>,
}

/// What sort of record has grown old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldRecords {
    /// Events of turns that are over.
    Events,
    /// Approvals that came to their end, in runs that are over.
    Approvals,
    /// Calls that the gate saw, in runs that are over.
    Calls,
}

/// Something that can be removed. Nothing of a living run, an open approval or a turn in progress ever is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removable {
    /// The events of a turn that is over and not the latest of a living session: some of them with each step.
    Events {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: u64,
    },
    /// An approval that came to its end, in a run that is over.
    Approval(ApprovalId),
    /// A call that the gate saw in a run that is over, by its place in the record.
    Call(u64),
    /// The files of a run that is over, which have been removed.
    RunFiles(RunKey),
    /// A conversation tree in which no living session speaks, but for its root: some of it with each step.
    Tree(TreeId),
}

/// An event as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: u64,
    /// Its number in the turn.
    pub seq: u64,
    /// The event.
    pub event: Value,
    /// When it was stored.
    pub at: UnixSeconds,
}

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

/// A token that the operator handed out. Only its hash is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Its name.
    pub name: TokenName,
    /// What it is good for.
    pub right: TokenRight,
    /// When it was made.
    pub created_at: UnixSeconds,
    /// When it ends, if it does by itself.
    pub expires_at: Option<UnixSeconds>,
}

/// How far a rule counts, by who gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleAuthority {
    /// The root of a tree: in full.
    Root,
    /// A session: only what it denies or asks about.
    Narrows,
    /// A session, in advance for those below it: what it allows counts as far as it may allow it.
    Within,
}

/// A rule to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRule {
    /// The session it is for, and all below it; `None` for every session.
    pub session: Option<SessionId>,
    /// The rule with its effect and its end, as the policy reads it.
    pub entry: Value,
    /// When it ceases to count, if it does.
    pub expires_at: Option<UnixSeconds>,
    /// How far it counts.
    pub authority: RuleAuthority,
    /// Who made it.
    pub made_by: Decider,
}

/// A rule in force.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleRow {
    /// Its number.
    pub number: u64,
    /// What was made.
    pub rule: NewRule,
    /// When.
    pub created_at: UnixSeconds,
}

/// What became of a rule.
#[derive(Debug, Clone)]
pub enum RuleChange {
    /// It is in force.
    Made(RuleRow),
    /// It is not any more.
    Revoked(u64),
}

/// Which rows of the record are meant; what is left out lets all pass.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Those about this session.
    pub session: Option<SessionId>,
    /// Those of this time or later.
    pub since: Option<UnixSeconds>,
    /// Those before this time.
    pub until: Option<UnixSeconds>,
    /// Those of this sort.
    pub kind: Option<AuditKind>,
    /// What this one did ([`plexus_protocol::Decider::key`]).
    pub by: Option<String>,
    /// Those about this tool.
    pub tool_name: Option<String>,
}

/// From where, and in which direction, the record is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditFrom {
    /// The rows after this number, oldest first.
    After(u64),
    /// The rows before this number, newest first.
    Before(u64),
}

/// What a look over part of the record found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditCheck {
    /// All of it fits, up to here; short of the number that was asked for, this is the end.
    Fits(AuditHead),
    /// It is not what was written.
    Broken {
        /// The first row that does not fit.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// What sort of thing a feed entry tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedKind {
    /// An approval was asked.
    Asked,
    /// An approval came to its end.
    Resolved,
    /// A turn ended.
    Finished,
    /// Something else its addressee should know.
    Notice,
}

/// One entry of the durable, numbered feed that `wait` reads.
#[derive(Debug, Clone)]
pub struct FeedRow {
    /// Its number, from 1, over all addressees.
    pub number: u64,
    /// Whom it is for ([`AskedOf::key`]).
    pub to: String,
    /// What it tells.
    pub kind: FeedKind,
    /// The session it is about.
    pub session: SessionId,
    /// The approval it is about.
    pub approval: Option<ApprovalId>,
    /// The turn it is about.
    pub turn: Option<u64>,
    /// More.
    pub data: Value,
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
    /// Those asked of one addressee ([`AskedOf::key`]), and those that went on without it: it may come back and decide
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
