//! The durable state of the hub: sessions, runs, turns, events, approvals, conversation trees and the audit log.
//!
//! The hub uses one small trait, [`Store`]. Every write is a list of [`Change`]s that become durable together or not at
//! all. A change is published only after its commit. `domain` contains the rules of each change, over the row interface in
//! `rows`. A backend implements that interface and the reads: `sql`, with the
//! databases `sqlite` and `postgres`, and `memory` for tests. `tests/contract.rs` is the
//! suite that every backend has to pass.

mod arbor;
mod change;
mod domain;
mod files;
mod fleet;
mod history;
mod host_roles;
#[cfg(any(test, feature = "memory"))]
mod memory;
pub mod migrate;
mod model;
mod node_text;
mod page;
mod postgres;
mod rows;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod slots;
mod sql;
mod sqlite;

use std::sync::Arc;

use async_trait::async_trait;
use plexus_protocol::audit::{AuditHead, AuditRow};
use plexus_protocol::{
    ApprovalId, HostName, NodeId, SessionId, SessionName, TemplateName, TokenName, UnixSeconds,
};

pub use arbor::{AdoptedConversation, Arbor, ConversationStart, NodeRow, ResumePoint, SearchHit};
pub use change::{Change, Committed};
pub use domain::calls::OUTDATED;
pub use files::{Joined, MigrationNote, StoreFiles, replace_file};
pub use fleet::{
    Capacity, Changed, ChangedApproval, CommandRow, CommandState, Fenced, Fleet, HostRow, HostState,
    NewCommand, News, RemoteCommits, Sent, SlotUse, Wake,
};
pub use history::{
    ApprovalSpan, AuditBound, AuditFact, AuditFacts, CallCount, EndedTurn, History, Period, SessionParent,
    SpanEnd,
};
pub use host_roles::{Admission, HostAccess, HostRoles, Role, RoleError};
#[cfg(any(test, feature = "memory"))]
pub use memory::MemoryStore;
pub(crate) use model::FeedColumns;
pub use model::{
    ApprovalRow, AuditCheck, AuditFilter, AuditFrom, BudgetNotice, BudgetRow, CallIds, CallInput, CallRow,
    EventJson, EventRow, EventsOfTurn, FeedEntry, FeedKind, FeedRow, FinishedRun, HeldForBudget, NewApproval,
    NewRule, NewSession, OldRecords, OpenCall, OpenFilter, PermitStream, Removable, Resolution,
    RuleAuthority, RuleChange, RuleRow, RulesInForce, RunKey, RunProcess, RunRow, RunState, SessionConfig,
    SessionRow, SessionWithState, Tally, TemplateRow, TokenKey, TokenRow, TurnRow, TurnState, TurnStatus,
    UnfinishedCall, Verdict,
};
pub use postgres::{AddressError, Host, PostgresAddress};
pub use slots::{OnBehalf, Slot, Slots};
pub use sql::SqlStore;
pub use sqlite::{AuditFile, Durability};
#[cfg(debug_assertions)]
pub use sqlite::{faulty_disk, work_count};

/// Why an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A change conflicts with the stored state; nothing of its commit was applied.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// A temporary failure (disk full, I/O error): nothing was applied, and a retry may succeed.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The database cannot be used, or contains what cannot be read. A retry does not help.
    #[error("{0}")]
    Unusable(String),
}

/// A change that conflicts with the stored state.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// Another session of the same creator has this name.
    #[error("a session named `{0}` already exists")]
    NameTaken(String),
    /// Another session of the same creator has this name, and is archived.
    #[error(
        "a session named `{0}` already exists and is archived; rename or delete it to use its name again"
    )]
    ArchivedNameTaken(String),
    /// The session is working or has a pending approval, so it cannot be archived.
    #[error(
        "session `{0}` has a turn in progress or an open approval, so it cannot be archived: stop it first"
    )]
    Busy(SessionName),
    /// The session does not exist, or is deleted.
    #[error("session {0} does not exist")]
    NoSuchSession(SessionId),
    /// The session has a running turn, or this is not the number of its next turn.
    #[error("turn {0} is in progress")]
    TurnInProgress(u64),
    /// The approval does not exist.
    #[error("approval {0} does not exist")]
    NoSuchApproval(ApprovalId),
    /// The approval is already resolved, as this row shows.
    #[error("approval {} is already resolved", .0.approval.id)]
    AlreadyResolved(Box<ApprovalRow>),
    /// The approval now has another addressee, as this row shows.
    #[error("approval {} now has another addressee", .0.approval.id)]
    AskedOfAnother(Box<ApprovalRow>),
    /// The node does not exist.
    #[error("node {0} does not exist")]
    NoSuchNode(NodeId),
    /// Another token has this name.
    #[error("a token named `{0}` already exists")]
    TokenNameTaken(TokenName),
    /// The rule does not exist, or is revoked.
    #[error("rule {0} does not exist")]
    NoSuchRule(u64),
    /// The template does not exist.
    #[error("template `{0}` does not exist")]
    NoSuchTemplate(TemplateName),
    /// No more templates can be stored.
    #[error("{0} templates are stored, and no more are possible: delete one first")]
    TooManyTemplates(u64),
    /// The token does not exist, is revoked or has expired.
    #[error("token `{0}` does not exist")]
    NoSuchToken(TokenName),
    /// The grant is larger than the remaining budget of the session above.
    #[error(
        "the budget is too large: session {} has {} of {} left to grant",
        .0.session, .0.limit.shown(.0.left()), .0.limit.as_str()
    )]
    BudgetExceeded(BudgetRow),
    /// A grant cannot be less than the amount that is already used and reserved for the sessions below.
    #[error(
        "the budget is too small: {} of {} are already used or granted to the sessions below",
        .0.limit.shown(.0.own + .0.below), .0.limit.as_str()
    )]
    BudgetInUse(BudgetRow),
    /// A budget is exhausted.
    #[error(
        "the {} budget of session {} is exhausted: of {} it has used {} and granted {} to the sessions below; \
         claudecode.set_budget grants more",
        .0.limit.as_str(), .0.session, .0.limit.shown(.0.granted), .0.limit.shown(.0.own), .0.limit.shown(.0.below)
    )]
    BudgetExhausted(BudgetRow),
    /// The host does not exist, or was removed.
    #[error("host `{0}` does not exist")]
    NoSuchHost(HostName),
    /// The host gets no new sessions.
    #[error(
        "host `{0}` is draining, so it gets no new sessions; choose another host, or run `plexus host undrain {0}`"
    )]
    HostDrains(HostName),
    /// All slots of the host are in use.
    #[error(
        "host `{host}` has no free slot: {slots} of {slots} are in use; try again when a turn has ended, or choose another host"
    )]
    NoFreeSlot {
        /// The host.
        host: HostName,
        /// How many slots it has.
        slots: u64,
    },
    /// The host was declared lost, and its hub has not started since.
    #[error("host `{0}` was declared lost; it rejoins when its hub starts")]
    HostLost(HostName),
    /// The host has sessions.
    #[error("host `{0}` has sessions; delete them first")]
    HostInUse(HostName),
    /// An approval holds the key of this session, run, turn and `tool_use_id`.
    #[error("an approval for this call already exists")]
    KeyTaken,
}

/// A callback that receives every commit.
pub type Observer = Box<dyn Fn(&Committed) + Send>;

/// The part of a store that the approval book uses: all writes, and the state of approvals. A read sees every commit that was
/// acknowledged before it started.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Commits all of `changes` durably, or none of them.
    async fn commit(&self, at: UnixSeconds, changes: Vec<Change>) -> Result<Committed, StoreError>;
    /// Replaces the observer. It is called once a commit is durable and before the caller of `commit` gets its result, even if
    /// that caller is gone. An observer returns quickly and never waits.
    fn observe(&self, observer: Observer);

    /// One approval.
    async fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError>;
    /// The pending approvals that `which` names, oldest first.
    async fn open_approvals(&self, which: OpenFilter) -> Result<Vec<ApprovalRow>, StoreError>;
    /// The feed of one addressee after number `after`, at most `limit` entries.
    async fn feed(&self, to: &str, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError>;
}

/// Everything that the hub uses of a store.
#[async_trait]
pub trait Store: Ledger + Arbor + History {
    /// The hubs that share this store; `None` for the store of a single machine.
    fn fleet(&self) -> Option<&Arc<dyn Fleet>> {
        None
    }
    /// The host of this hub; `None` for the store of a single machine.
    fn host(&self) -> Option<&HostName> {
        self.fleet().map(|fleet| fleet.host())
    }

    /// One session, deleted or not.
    async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, StoreError>;
    /// The sessions of this name that are not deleted, in no particular order. Each has another creator.
    async fn sessions_named(&self, name: &str) -> Result<Vec<SessionRow>, StoreError>;
    /// The sessions that are not deleted, oldest first.
    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError>;
    /// The sessions that are not deleted, oldest first, with their state in one snapshot.
    async fn sessions_with_state(&self) -> Result<Vec<SessionWithState>, StoreError>;

    /// The last `limit` sessions that were created, deleted or not, newest first.
    async fn newest_sessions(&self, limit: u64) -> Result<Vec<SessionRow>, StoreError>;

    /// The budgets that a session draws on: for each limit the nearest grant, its own or one above it.
    async fn budget(&self, session: SessionId) -> Result<Vec<BudgetRow>, StoreError>;

    /// One run.
    async fn run(&self, key: RunKey) -> Result<Option<RunRow>, StoreError>;
    /// The runs of this host that have not ended, including those of deleted sessions.
    async fn open_runs(&self) -> Result<Vec<RunRow>, StoreError>;
    /// The run whose token has this hash, if it has not ended.
    async fn run_of_token(&self, token_hash: &str) -> Result<Option<RunRow>, StoreError>;

    /// The permission rules that are not revoked.
    async fn rules(&self) -> Result<RulesInForce, StoreError>;

    /// The token with this hash, if it is neither revoked nor expired at `now`.
    async fn token_of_hash(&self, hash: &str, now: UnixSeconds) -> Result<Option<TokenRow>, StoreError>;
    /// The tokens that are neither revoked nor expired at `now`, oldest first.
    async fn tokens(&self, now: UnixSeconds) -> Result<Vec<TokenRow>, StoreError>;

    /// The templates, by name.
    async fn templates(&self) -> Result<Vec<TemplateRow>, StoreError>;
    /// One template.
    async fn template(&self, name: &TemplateName) -> Result<Option<TemplateRow>, StoreError>;

    /// One turn.
    async fn turn(&self, session: SessionId, turn: u64) -> Result<Option<TurnRow>, StoreError>;
    /// The events of a turn from number `from` on, at most `limit`. A page of large events is shorter, but has at least
    /// one event if there is any.
    async fn events(
        &self,
        session: SessionId,
        turn: u64,
        from: u64,
        limit: u64,
    ) -> Result<Vec<EventRow>, StoreError>;
    /// The number of events of a turn.
    async fn event_count(&self, session: SessionId, turn: u64) -> Result<u64, StoreError>;

    /// The approvals of a run that still hold their key (no `tool_result` yet), oldest first.
    async fn approvals_without_result(&self, run: RunKey) -> Result<Vec<ApprovalRow>, StoreError>;
    /// The calls of a run that the gate saw and that have no `tool_result` yet, oldest first.
    async fn calls_without_result(&self, run: RunKey) -> Result<Vec<CallRow>, StoreError>;

    /// The feed of all addressees after number `after`, at most `limit` entries.
    async fn feed_of_all(&self, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError>;
    /// The approvals that the feed entries after number `after` up to `upto` are about, in the order of the entries: for one addressee, or for all.
    /// Each has the number of its entry. If they are large, it is only the first ones.
    async fn feed_approvals(
        &self,
        to: Option<&str>,
        after: u64,
        upto: u64,
    ) -> Result<Vec<ApprovalRow>, StoreError>;
    /// The number of the newest feed entry; 0 if there is none.
    async fn feed_head(&self) -> Result<u64, StoreError>;

    /// The permit stream with this event id.
    async fn permit_stream(&self, event_id: &str) -> Result<Option<PermitStream>, StoreError>;
    /// How far a reader has read a turn; 0 if it never did.
    async fn position(&self, reader: &str, session: SessionId, turn: u64) -> Result<u64, StoreError>;

    /// The audit entries that match `filter`, in the order that `from` names, at most `limit`. A page of large entries is
    /// shorter, but has at least one entry if there is any.
    async fn audit(
        &self,
        filter: AuditFilter,
        from: AuditFrom,
        limit: u64,
    ) -> Result<Vec<AuditRow>, StoreError>;
    /// The head of the audit log: number and hash of its last entry.
    async fn audit_head(&self) -> Result<AuditHead, StoreError>;
    /// Verifies the audit entries after `after` up to number `upto`.
    async fn check_audit(&self, after: AuditHead, upto: u64) -> Result<AuditCheck, StoreError>;

    /// The numbers of sessions and pending approvals of all hosts. It does not read their contents.
    async fn tally(&self) -> Result<Tally, StoreError>;

    /// The same for each host, by name; none for the store of a single machine.
    async fn tallies(&self) -> Result<Vec<(HostName, Tally)>, StoreError> {
        Ok(Vec::new())
    }

    /// Rows that were finished before `before` and can be removed, oldest first, at most `limit`.
    async fn old_records(
        &self,
        which: OldRecords,
        before: UnixSeconds,
        limit: u64,
    ) -> Result<Vec<Removable>, StoreError>;
    /// Ended runs of this host that have files, in the order of their ends, after `after`, at most `limit`.
    async fn finished_runs(
        &self,
        after: Option<FinishedRun>,
        limit: u64,
    ) -> Result<Vec<FinishedRun>, StoreError>;
}
