//! What must last: sessions, runs, turns, events, approvals, conversation trees and the record of every call.
//!
//! The hub sees one small trait, [`Store`]: everything it writes is a list of [`Change`]s that become durable
//! together or not at all, everything it reads is a question in domain words. Whoever wants to tell someone
//! something commits it first. SQLite is behind it today; `tests/contract.rs` is the suite any backend has to pass.

mod arbor;
mod change;
mod domain;
#[cfg(any(test, feature = "memory"))]
mod memory;
mod model;
mod node_text;
mod page;
mod places;
mod rows;
mod sqlite;

use async_trait::async_trait;
use plexus_protocol::audit::{AuditHead, AuditRow};
use plexus_protocol::{ApprovalId, NodeId, SessionId, TokenName, UnixSeconds};

pub use arbor::{Arbor, Begins, Found, NodeRow, ResumePoint};
pub use change::{Change, Committed};
#[cfg(any(test, feature = "memory"))]
pub use memory::MemoryStore;
pub(crate) use model::FeedColumns;
pub use model::{
    ApprovalRow, AuditCheck, AuditFilter, AuditFrom, BudgetNotice, BudgetRow, CallInput, CallRow, EventRow,
    EventsOfTurn, FeedEntry, FeedKind, FeedRow, FinishedRun, Held, LivingSession, NewApproval, NewRule,
    NewSession, OldRecords, Open, PermitStream, Removable, Resolution, RuleAuthority, RuleChange, RuleRow,
    RunKey, RunProcess, RunRow, RunState, SessionConfig, SessionRow, Tally, TokenKey, TokenRow, TurnRow,
    TurnState, TurnStatus, Verdict,
};
pub use places::{OnBehalf, Place, Places};
#[cfg(debug_assertions)]
pub use sqlite::faulty_disk;
pub use sqlite::{AuditFile, Durability, SqliteStore};

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A change does not fit what is there; nothing of its commit was done.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The store cannot take this now (disk full, I/O error): nothing was done, trying again may help.
    #[error("the store cannot be written or read now: {0}")]
    Unavailable(String),
    /// The file cannot be used at all.
    #[error("{0}")]
    Unusable(String),
}

/// A change that does not fit what is there.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// A living session has this name.
    #[error("a living session is already called `{0}`")]
    NameTaken(String),
    /// The session is not there, or deleted.
    #[error("there is no living session {0}")]
    NoSuchSession(SessionId),
    /// The session has a turn that is not over, or this is not its next turn.
    #[error("turn {0} is in progress")]
    TurnInProgress(u64),
    /// The approval is not there.
    #[error("there is no approval {0}")]
    NoSuchApproval(ApprovalId),
    /// The approval has come to its end already; this is how.
    #[error("approval {} is already resolved", .0.approval.id)]
    AlreadyResolved(Box<ApprovalRow>),
    /// The approval is asked of somebody else meanwhile; this is how it stands.
    #[error("approval {} is asked of somebody else", .0.approval.id)]
    AskedOfAnother(Box<ApprovalRow>),
    /// The node is not there.
    #[error("there is no node {0}")]
    NoSuchNode(NodeId),
    /// A token in use has this name.
    #[error("a token in use is already called `{0}`")]
    TokenNameTaken(TokenName),
    /// No rule in force has this number.
    #[error("there is no rule {0} in force")]
    NoSuchRule(u64),
    /// No token in use has this name.
    #[error("there is no token `{0}` in use")]
    NoSuchToken(TokenName),
    /// More was to be given than this limit, which it would be taken from, has left.
    #[error(
        "that is more {} than there is to give: session {} has {} left",
        .0.limit.as_str(), .0.session, .0.limit.shown(.0.left())
    )]
    BudgetExceeded(BudgetRow),
    /// A limit cannot be less than what is used of it and set aside below.
    #[error(
        "{} of {} are used or set aside for those below already",
        .0.limit.shown(.0.own + .0.below), .0.limit.as_str()
    )]
    BudgetInUse(BudgetRow),
    /// Nothing is left of this limit.
    #[error(
        "nothing is left of {} that session {} was given: of {} it has used {} and set aside {} for those below it; \
         claudecode.set_budget gives more",
        .0.limit.as_str(), .0.session, .0.limit.shown(.0.granted), .0.limit.shown(.0.own), .0.limit.shown(.0.below)
    )]
    BudgetExhausted(BudgetRow),
    /// An approval lives under this session, run, turn and tool_use_id.
    #[error("an approval for this call is there already")]
    KeyTaken,
}

/// Is told of every commit.
pub type Observer = Box<dyn Fn(&Committed) + Send>;

/// What the approval book needs of a store: the one way to write, and how approvals stand. Reads see every commit that
/// was acknowledged before they began.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Makes all of `changes` durable, or none of them.
    async fn commit(&self, at: UnixSeconds, changes: Vec<Change>) -> Result<Committed, StoreError>;
    /// From now on tells `observer`, and no other, of every commit: when it is durable and before whoever wanted it
    /// is answered, whether or not that one is still there. An observer is quick and never waits.
    fn observe(&self, observer: Observer);

    /// One approval.
    async fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError>;
    /// The pending approvals that `which` names, oldest first.
    async fn open_approvals(&self, which: Open) -> Result<Vec<ApprovalRow>, StoreError>;
    /// The feed of one addressee after number `after`, at most `limit`.
    async fn feed(&self, to: &str, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError>;
}

/// What the hub needs of a store.
#[async_trait]
pub trait Store: Ledger + Arbor {
    /// One session, living or deleted.
    async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, StoreError>;
    /// The living session of this name.
    async fn session_named(&self, name: &str) -> Result<Option<SessionRow>, StoreError>;
    /// The living sessions, oldest first.
    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError>;
    /// The living sessions, oldest first, each with how it stands at one moment.
    async fn living(&self) -> Result<Vec<LivingSession>, StoreError>;

    /// The limits that a session draws on: of each sort the nearest at or above it.
    async fn budget(&self, session: SessionId) -> Result<Vec<BudgetRow>, StoreError>;

    /// One run.
    async fn run(&self, key: RunKey) -> Result<Option<RunRow>, StoreError>;
    /// Every run that has not ended, deleted sessions' included.
    async fn open_runs(&self) -> Result<Vec<RunRow>, StoreError>;
    /// The run, not ended, whose token has this hash.
    async fn run_of_token(&self, token_hash: &str) -> Result<Option<RunRow>, StoreError>;

    /// The rules that were not revoked, in the order in which they were made.
    async fn rules(&self) -> Result<Vec<RuleRow>, StoreError>;

    /// The token in use at `now` that has this hash.
    async fn token_of_hash(&self, hash: &str, now: UnixSeconds) -> Result<Option<TokenRow>, StoreError>;
    /// The tokens in use at `now`, oldest first.
    async fn tokens(&self, now: UnixSeconds) -> Result<Vec<TokenRow>, StoreError>;

    /// One turn.
    async fn turn(&self, session: SessionId, turn: u64) -> Result<Option<TurnRow>, StoreError>;
    /// Events of a turn from `from` on, at most `limit`; fewer where they are large, yet at least one if there is any.
    async fn events(
        &self,
        session: SessionId,
        turn: u64,
        from: u64,
        limit: u64,
    ) -> Result<Vec<EventRow>, StoreError>;
    /// How many events a turn has.
    async fn event_count(&self, session: SessionId, turn: u64) -> Result<u64, StoreError>;

    /// The approvals of a run whose key still lives (no tool_result yet), oldest first.
    async fn living_approvals(&self, run: RunKey) -> Result<Vec<ApprovalRow>, StoreError>;
    /// The calls of a run that the gate saw and that have no tool_result yet.
    async fn living_calls(&self, run: RunKey) -> Result<Vec<CallRow>, StoreError>;

    /// The feed of all addressees after number `after`, at most `limit`.
    async fn feed_of_all(&self, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError>;
    /// The number of the newest feed entry of anyone; 0 when there is none.
    async fn feed_head(&self) -> Result<u64, StoreError>;

    /// The permit stream that was given this event id.
    async fn permit_stream(&self, event_id: &str) -> Result<Option<PermitStream>, StoreError>;
    /// How far this reader has read a turn; 0 when it never did.
    async fn position(&self, reader: &str, session: SessionId, turn: u64) -> Result<u64, StoreError>;

    /// The rows of the record that `filter` lets pass, in the order that `from` says, at most `limit`; fewer where they
    /// are large, yet at least one if there is any.
    async fn audit(
        &self,
        filter: AuditFilter,
        from: AuditFrom,
        limit: u64,
    ) -> Result<Vec<AuditRow>, StoreError>;
    /// How far the record goes.
    async fn audit_head(&self) -> Result<AuditHead, StoreError>;
    /// Whether the rows after `after` up to number `upto` are those that were written.
    async fn check_audit(&self, after: AuditHead, upto: u64) -> Result<AuditCheck, StoreError>;

    /// How much is alive and open, without reading any of it.
    async fn tally(&self) -> Result<Tally, StoreError>;

    /// Records that came to their end before `before` and may be removed, oldest first, at most `limit`.
    async fn old_records(
        &self,
        which: OldRecords,
        before: UnixSeconds,
        limit: u64,
    ) -> Result<Vec<Removable>, StoreError>;
    /// Runs that are over and have files, the one that ended first to begin with, after `after`, at most `limit`.
    async fn finished_runs(
        &self,
        after: Option<FinishedRun>,
        limit: u64,
    ) -> Result<Vec<FinishedRun>, StoreError>;
}
