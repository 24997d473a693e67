//! What a store can be asked to make durable, and what comes of it.

use plexus_protocol::audit::{AuditEntry, AuditHead};
use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{
    ApprovalId, ApprovalStatus, AskedOf, Decider, Decision, Event, NodeId, Passed, SessionId, SessionName,
    TokenName, UnixSeconds,
};
use serde_json::Value;

use crate::{
    ApprovalRow, CallInput, CallRow, EventRow, FeedRow, Held, NewApproval, NewRule, NewSession, NodeRow,
    PermitStream, Removable, RuleChange, RunKey, RunProcess, RunState, SessionConfig, TokenKey, TokenRow,
    TurnStatus,
};

/// One thing to be made durable.
#[derive(Debug, Clone)]
pub enum Change {
    /// Makes a session, its tree and the root node unless it goes on in one that is there; recorded as an act of whom it
    /// answers to. Refused with `NoSuchSession` when the session that makes it is gone, with `BudgetExhausted` when it may
    /// make no more.
    CreateSession(Box<NewSession>),
    /// Gives a living session another name.
    RenameSession(SessionId, SessionName),
    /// What a living session is made of changes.
    Configure(SessionId, Box<SessionConfig>),
    /// Frees the name; the record stays.
    DeleteSession(SessionId),
    /// Begins run `key.run`, which becomes the session's latest.
    BeginRun {
        /// Which.
        key: RunKey,
        /// `Starting` or `External`.
        state: RunState,
        /// Hash of the token that speaks for it.
        token_hash: Option<String>,
    },
    /// The keeper of a run is known: the run is `Running`.
    RunProcess(RunKey, Option<RunProcess>),
    /// Moves a run on.
    RunState(RunKey, RunState),
    /// A run is over; its token ends with it.
    EndRun(RunKey, Value),
    /// The journal of a run has been read up to here.
    Offset(RunKey, u64),
    /// Begins turn `turn` of a living session, which must be its next and have none running before it.
    BeginTurn {
        /// The session.
        session: SessionId,
        /// Its number: the latest plus one.
        turn: u64,
        /// The prompt.
        prompt: String,
        /// Where the hub begins it to wake the session: up to which number of the feed that is for.
        woken_to: Option<u64>,
    },
    /// The prompt goes to this run under this uuid.
    BindTurn {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: u64,
        /// The run.
        run: u32,
        /// The uuid it goes out under.
        prompt_uuid: String,
    },
    /// What the owner has to remember of a turn.
    Progress(SessionId, u64, Value),
    /// Appends an event to a turn; the store numbers it.
    Event(SessionId, u64, Box<Event>),
    /// Adds a node; it becomes the head of the session.
    AddNode(SessionId, Box<NodeRow>),
    /// More content blocks of a message whose node is there already.
    ExtendNode {
        /// Which.
        node: NodeId,
        /// What is added.
        blocks: Vec<Value>,
        /// Where Claude Code's transcript has the last of it.
        uuid: Option<String>,
    },
    /// Ends a turn: appends its last event, and a `Finished` feed entry for whoever answers for the session and for every
    /// agent above; the operator is told of the sessions it made itself. Does nothing when the turn is over already.
    EndTurn {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: u64,
        /// How it ended.
        status: TurnStatus,
        /// Its last event.
        last: Box<Event>,
        /// One text for the feed: the result or what went wrong.
        summary: Option<String>,
        /// What it cost, in dollars; that counts as used.
        cost_usd: f64,
    },
    /// The gate saw a call and answered it; where it allowed or denied it, that is recorded. One that it lets on counts as
    /// used. Where nothing is left for it the call is held, and more is asked for ([`Committed::held`]).
    Call(Box<CallRow>, CallInput),
    /// A held call is at the gate again, with this answer.
    Release(Box<CallRow>, CallInput),
    /// The limits of a session are these from now on, in units; others stay. Refused with `BudgetExceeded` when the nearest
    /// above that has such a limit has less left, with `BudgetInUse` when more is used or set aside already.
    SetBudget(SessionId, Vec<(BudgetLimit, u64)>),
    /// A session has used so much of this, in units.
    Spend(SessionId, BudgetLimit, u64),
    /// Refused with `BudgetExhausted` when nothing is left for another turn of this session.
    CheckBudget(SessionId),
    /// Asks for more where a running turn of this session has used up its cost or its time ([`Committed::held`]).
    AskBudget(SessionId),
    /// An approval is asked: appends `approval_requested` to its turn, and an `Asked` feed entry for `asked_of` and for
    /// everyone in `passed`, from whom it has gone on already.
    Ask(Box<NewApproval>),
    /// A pending approval comes to its end: appends `approval_resolved`, and a `Resolved` feed entry for
    /// everyone who was asked, whose data is `{"status","by"}`, and a row of the record. Refused with `AlreadyResolved` when it is not pending.
    Resolve {
        /// Which.
        approval: ApprovalId,
        /// How it ended.
        status: ApprovalStatus,
        /// The answer.
        decision: Box<Decision>,
    },
    /// The same for an approval that may have come to its end meanwhile, or, if it is to expire, whose time may have been
    /// moved: then nothing happens.
    ResolveIfPending {
        /// Which.
        approval: ApprovalId,
        /// How it ended.
        status: ApprovalStatus,
        /// The answer.
        decision: Box<Decision>,
    },
    /// Somebody else is asked: an `Asked` feed entry for them, and for everyone it goes on from at once. Refused with
    /// `AlreadyResolved` when it is not pending, with `AskedOfAnother` when it is not asked of the first in `passed`.
    PassOn {
        /// Which.
        approval: ApprovalId,
        /// From whom it goes on, the one who is asked now to begin with; the store sets the time.
        passed: Vec<Passed>,
        /// Who is asked from now on.
        to: AskedOf,
        /// When it goes on from them.
        passes_on_at: Option<UnixSeconds>,
    },
    /// Sets when a pending approval expires and when it is escalated. Refused with `AlreadyResolved` when it is not pending,
    /// with `AskedOfAnother` when `asked_of` is not its addressee any more.
    SetDeadlines {
        /// The approval.
        approval: ApprovalId,
        /// The addressee that has until then.
        asked_of: AskedOf,
        /// When it expires.
        expires_at: UnixSeconds,
        /// When it is escalated to the next addressee, if there is one.
        passes_on_at: Option<UnixSeconds>,
    },
    /// A pending approval expires at another time. Refused with `AlreadyResolved` when it is not pending.
    Extend {
        /// Which.
        approval: ApprovalId,
        /// When.
        expires_at: UnixSeconds,
    },
    /// The answer was passed on to the child.
    Delivered(ApprovalId),
    /// A `tool_result` came: the keys of the call and of its approval are free again.
    Settle(RunKey, String),
    /// A rule is made.
    MakeRule(Box<NewRule>),
    /// A rule does not count any more. Refused with `NoSuchRule` when there is none of this number.
    RevokeRule {
        /// Which.
        number: u64,
        /// Who takes it back, for the record.
        by: Decider,
    },
    /// A token is handed out. Refused with `TokenNameTaken` when one of this name is in use.
    MakeToken {
        /// What it is called and good for.
        token: TokenRow,
        /// The hash of it.
        hash: String,
        /// Who hands it out, for the record.
        by: Decider,
    },
    /// A token is taken back. Refused with `NoSuchToken` when none of this name is in use.
    RevokeToken {
        /// Which.
        name: TokenName,
        /// Who takes it back, for the record.
        by: Decider,
    },
    /// A permit over HTTP waits on this stream.
    Stream(Box<PermitStream>),
    /// A reader has read a turn up to here.
    Position {
        /// Who reads.
        reader: String,
        /// What.
        session: SessionId,
        /// Which turn.
        turn: u64,
        /// The next event it wants.
        position: u64,
    },
    /// An act of authority that no other change records.
    Record(Box<AuditEntry>),
    /// One small step of removing what has grown old. Does nothing where it may not be removed.
    Remove(Removable),
    /// Tells an addressee something.
    Notice {
        /// Whom ([`plexus_protocol::AskedOf::key`]).
        to: String,
        /// About which session.
        session: SessionId,
        /// What.
        data: Value,
    },
}

/// What a commit made, for those who are told after it.
#[derive(Debug, Clone, Default)]
pub struct Committed {
    /// Events, numbered.
    pub events: Vec<EventRow>,
    /// Rules that were made, in the order of the changes, or revoked.
    pub rules: Vec<RuleChange>,
    /// The tokens that can no longer be used.
    pub ended_tokens: Vec<TokenKey>,
    /// Approvals asked or brought to their end, as they are now.
    pub approvals: Vec<ApprovalRow>,
    /// What waits until more is given.
    pub held: Vec<Held>,
    /// Whose limits were set or grew.
    pub budgets: Vec<SessionId>,
    /// Feed entries, numbered.
    pub feed: Vec<FeedRow>,
    /// How far the record goes, if it was added to.
    pub audit: Option<AuditHead>,
    /// How many [`Change::Remove`] removed; 0 when there was nothing left to do.
    pub removed: usize,
}

impl Committed {
    /// Whether this call waits at the gate.
    pub fn holds(&self, tool_use_id: &str) -> bool {
        self.held.iter().any(|held| held.tool_use_id.as_deref() == Some(tool_use_id))
    }
}
