//! The changes that a store can apply, and what a commit publishes.

use std::sync::Arc;

use plexus_protocol::audit::{AuditEntry, AuditHead};
use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::template::Template;
use plexus_protocol::{
    ApprovalId, ApprovalStatus, AskedOf, Decider, Decision, EscalationStep, Event, HostName, NodeId,
    SessionId, SessionName, TemplateName, TokenName, UnixSeconds,
};
use serde_json::Value;

use crate::{
    ApprovalRow, CallInput, CallRow, EventRow, FeedRow, HeldForBudget, HostState, NewApproval, NewRule,
    NewSession, NodeRow, PermitStream, Removable, RuleChange, RunKey, RunProcess, RunState, SessionConfig,
    TokenKey, TokenRow, TurnStatus,
};

/// One change of the stored state.
#[derive(Debug, Clone)]
pub enum Change {
    /// Creates a session, and its conversation tree unless it continues an existing one. It has an audit entry. Refused with
    /// `NameTaken`; with `NoSuchSession` if its parent session is deleted; with `BudgetExhausted` if the parent may not
    /// create more sessions.
    CreateSession(Box<NewSession>),
    /// Renames a session. Refused with `NameTaken`.
    RenameSession(SessionId, SessionName),
    /// Sets the title of a session.
    SetTitle(SessionId, String),
    /// Archives a session. Refused with `Busy`. A new turn or approval ends it.
    Archive(SessionId),
    /// Ends the archiving of a session, if it is archived.
    Unarchive(SessionId),
    /// Replaces the configuration of a session.
    Configure(SessionId, Box<SessionConfig>),
    /// Deletes a session: its name can be used again, its unused budget goes back, the secrets in its configuration are
    /// deleted. Its row stays.
    DeleteSession(SessionId),
    /// Starts a run, which becomes the latest of its session.
    StartRun {
        /// The run.
        key: RunKey,
        /// `Starting` or `External`.
        state: RunState,
        /// The hash of its token.
        token_hash: Option<String>,
    },
    /// The keeper of a run is known: the run is `Running`.
    RunProcess(RunKey, Option<RunProcess>),
    /// Moves a run to another state. A run that has ended stays ended.
    RunState(RunKey, RunState),
    /// Ends a run and its token. The value is the exit status of its process.
    EndRun(RunKey, Value),
    /// The journal of a run has been read up to this offset.
    JournalOffset(RunKey, u64),
    /// Starts a turn. The first prompt of a session becomes its title; the session is no longer archived. Refused with `TurnInProgress` if the latest turn is running or `turn` is not the next number.
    StartTurn {
        /// The session.
        session: SessionId,
        /// Its number: the latest plus one.
        turn: u64,
        /// The prompt.
        prompt: String,
        /// If the hub wakes the session: the number of the feed entry up to which it does so.
        woken_to: Option<u64>,
    },
    /// Assigns a turn to a run.
    BindTurn {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: u64,
        /// The run that gets the prompt.
        run: u32,
        /// The uuid of the prompt.
        prompt_uuid: String,
    },
    /// Stores the progress of a turn for the owner of the session.
    Progress(SessionId, u64, Value),
    /// Appends an event to a turn, under its next number.
    Event(SessionId, u64, Arc<Event>),
    /// Adds a node to a conversation tree; it becomes the head of the session.
    AddNode(SessionId, Arc<NodeRow>),
    /// Appends content blocks to an existing node.
    ExtendNode {
        /// The node.
        node: NodeId,
        /// The blocks.
        blocks: Vec<Value>,
        /// The entry of Claude Code's transcript that contains the last of them.
        uuid: Option<String>,
    },
    /// Ends a turn, if it is running: appends its last event, and a `Finished` feed entry for the addressee of the session
    /// and every agent above. The operator gets one for sessions that answer to it directly.
    EndTurn {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: u64,
        /// How it ended.
        status: TurnStatus,
        /// Its last event.
        last: Box<Event>,
        /// The text of the feed entry: the result, or what went wrong.
        summary: Option<String>,
        /// Its cost in dollars, which counts as used.
        cost_usd: f64,
    },
    /// The gate answered a call. An answer `Allow` or `Deny` has an audit entry. A call that is not denied counts as used. If a
    /// budget that it needs is exhausted, the call is held and a budget approval is created ([`Committed::held`]). If the permission rules have
    /// changed since the gate has judged a call that it does not deny, the answer becomes `Ask` ([`Committed::outdated_calls`]).
    Call(Box<CallRow>, CallInput),
    /// The gate answered a held call.
    Release(Box<CallRow>, CallInput),
    /// Sets budgets of a session, in units; other limits stay. Refused with `BudgetExceeded` if the nearest grant above has
    /// less left, with `BudgetInUse` if more is already used or reserved.
    SetBudget(SessionId, Vec<(BudgetLimit, u64)>),
    /// A session has used this many units of a limit.
    Spend(SessionId, BudgetLimit, u64),
    /// Changes nothing. Refused with `BudgetExhausted` if nothing is left for another turn of this session.
    CheckBudget(SessionId),
    /// Changes nothing. Refused with `NoFreeSlot` if the host has no free slot for another turn of this session.
    CheckSlot(SessionId),
    /// Creates a budget approval if the cost or time budget of a running turn is exhausted ([`Committed::held`]).
    AskBudget(SessionId),
    /// Creates an approval: appends `approval_requested` to its turn, and an `Asked` feed entry for `asked_of` and for
    /// everyone in `passed`. Refused with `KeyTaken`.
    Ask(Box<NewApproval>),
    /// Resolves a pending approval: appends `approval_resolved` to its turn, a `Resolved` feed entry for everyone who was
    /// asked, and an audit entry. Refused with `AlreadyResolved` if it is not pending.
    Resolve {
        /// The approval.
        approval: ApprovalId,
        /// Its final status.
        status: ApprovalStatus,
        /// The answer.
        decision: Box<Decision>,
    },
    /// Like `Resolve`, but changes nothing if the approval is already resolved, or if the status is `Expired` and the
    /// deadline was extended.
    ResolveIfPending {
        /// The approval.
        approval: ApprovalId,
        /// Its final status.
        status: ApprovalStatus,
        /// The answer.
        decision: Box<Decision>,
    },
    /// Escalates a pending approval: appends an `Asked` feed entry for the new addressee, and for everyone who is passed over.
    /// Refused with `AlreadyResolved` if it is not pending, with `AskedOfAnother` if the first in `passed_over` is not its
    /// addressee.
    Escalate {
        /// The approval.
        approval: ApprovalId,
        /// The addressees that the approval leaves, the current one first. The store sets the time.
        passed_over: Vec<EscalationStep>,
        /// The new addressee.
        to: AskedOf,
        /// When it is escalated from there.
        escalates_at: Option<UnixSeconds>,
    },
    /// Sets when a pending approval expires and when it is escalated. Refused with `AlreadyResolved` if it is not pending,
    /// with `AskedOfAnother` if `asked_of` is not its addressee any more.
    SetDeadlines {
        /// The approval.
        approval: ApprovalId,
        /// Its addressee.
        asked_of: AskedOf,
        /// When it expires.
        expires_at: UnixSeconds,
        /// When it is escalated to the next addressee, if there is one.
        escalates_at: Option<UnixSeconds>,
    },
    /// Sets another time at which a pending approval expires. Refused with `AlreadyResolved` if it is not pending.
    Extend {
        /// The approval.
        approval: ApprovalId,
        /// When it expires.
        expires_at: UnixSeconds,
    },
    /// The answer to an approval was sent to the child. An approval that was removed meanwhile is no error.
    Delivered(ApprovalId),
    /// A `tool_result` arrived: the call and its approval release their keys.
    ReleaseKeys(RunKey, String),
    /// Creates a permission rule. It has an audit entry.
    CreateRule(Box<NewRule>),
    /// Revokes a permission rule. It has an audit entry. Refused with `NoSuchRule`.
    RevokeRule {
        /// The number of the rule.
        number: u64,
        /// Who revokes it.
        by: Decider,
    },
    /// Creates a token. It has an audit entry. Refused with `TokenNameTaken`.
    CreateToken {
        /// Its name and right.
        token: TokenRow,
        /// Its hash.
        hash: String,
        /// Who creates it.
        by: Decider,
    },
    /// Revokes a token. It has an audit entry. Refused with `NoSuchToken`.
    RevokeToken {
        /// Its name.
        name: TokenName,
        /// Who revokes it.
        by: Decider,
    },
    /// Creates or replaces a template. It has an audit entry. Refused with `TooManyTemplates`.
    SaveTemplate {
        /// Its name.
        name: TemplateName,
        /// Its content.
        template: Box<Template>,
        /// Who saves it.
        by: Decider,
    },
    /// Deletes a template. It has an audit entry. Refused with `NoSuchTemplate`.
    DeleteTemplate {
        /// Its name.
        name: TemplateName,
        /// Who deletes it.
        by: Decider,
    },
    /// A permit over HTTP waits on this stream.
    Stream(Box<PermitStream>),
    /// Stores how far a reader has read a turn.
    Position {
        /// The reader.
        reader: String,
        /// The session.
        session: SessionId,
        /// The turn.
        turn: u64,
        /// The next event it reads.
        position: u64,
    },
    /// Appends an audit entry for an act that no other change logs.
    Audit(Box<AuditEntry>),
    /// Removes a few old rows. Changes nothing if they are still needed.
    Remove(Removable),
    /// Appends a `Notice` feed entry.
    Notice {
        /// The key of the addressee ([`plexus_protocol::AskedOf::key`]).
        to: String,
        /// The session it is about.
        session: SessionId,
        /// The notice, as it goes to clients.
        data: Value,
    },
    /// Sets the state of a host. It has an audit entry. A host that becomes `Lost` cannot commit any more: its approvals are withdrawn, its
    /// running turns fail, its runs end, and unused budget of its sessions goes back. Refused with `NoSuchHost`, with `HostLost` unless the
    /// host is removed or its hub has started again, with `HostInUse` if a host with sessions would be removed.
    SetHostState {
        /// The host.
        host: HostName,
        /// Its new state.
        state: HostState,
        /// Who sets it.
        by: Decider,
    },
}

/// What a commit publishes.
#[derive(Debug, Clone, Default)]
pub struct Committed {
    /// The appended events.
    pub events: Vec<EventRow>,
    /// The created and revoked permission rules, in the order of the changes.
    pub rules: Vec<RuleChange>,
    /// The version of the permission rules after this commit, if it has changed them ([`crate::RulesInForce`]).
    pub rules_version: Option<u64>,
    /// The calls for which an approval has to be requested, because the rules by which the gate has allowed them are not in force any more.
    pub outdated_calls: Vec<String>,
    /// The tokens that can no longer be used.
    pub ended_tokens: Vec<TokenKey>,
    /// The approvals that were created or changed, in their state at the end of the commit.
    pub approvals: Vec<ApprovalRow>,
    /// The calls and turns that wait for a budget approval.
    pub held: Vec<HeldForBudget>,
    /// The sessions whose budgets were set or raised.
    pub budgets: Vec<SessionId>,
    /// The appended feed entries.
    pub feed: Vec<FeedRow>,
    /// The head of the audit log, if an entry was appended.
    pub audit: Option<AuditHead>,
    /// How many rows were removed; 0 if none was left to remove.
    pub removed: usize,
}

impl Committed {
    /// Whether an approval has to be requested for this call, although the gate has allowed it.
    pub fn is_outdated(&self, tool_use_id: &str) -> bool {
        self.outdated_calls.iter().any(|outdated| outdated == tool_use_id)
    }

    /// Whether this call is held at the gate.
    pub fn holds(&self, tool_use_id: &str) -> bool {
        self.held.iter().any(|held| held.tool_use_id.as_deref() == Some(tool_use_id))
    }
}
