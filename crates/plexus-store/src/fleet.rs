//! The interface between hubs that share a database: the hosts, the changes that each hub has committed, and commands (method calls that another host
//! executes).
//!
//! A wake-up is a hint and carries nothing. A hub that is woken reads the database, and does so once a second even if nobody wakes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use plexus_protocol::{
    Approval, ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, CommandId, HostLabel, HostName, SessionId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Committed, HostRoles, StoreError};

/// The hubs that share a database, as one of them sees them.
#[async_trait]
pub trait Fleet: Send + Sync + 'static {
    /// The host of this hub.
    fn host(&self) -> &HostName;

    /// The roles of hosts in the database.
    fn roles(&self) -> &dyn HostRoles;

    /// Keeps the connection and renews the lease of this host. Returns when this hub can never write again.
    async fn run(&self) -> Fenced;

    /// Waits until another hub may have changed something, for at most a second.
    async fn woken(&self) -> News;

    /// Wakes other hubs. Calls that follow closely share one message.
    fn wake(&self, whom: Wake);

    /// All hosts, by name.
    async fn hosts(&self) -> Result<Vec<HostRow>, StoreError>;

    /// Whether the database has lost commits that this hub has made or seen. Then this hub holds all changes.
    fn has_lost_commits(&self) -> bool;

    /// Lets the next hub of this host continue with the state that the database has.
    fn accept_rollback(&self) -> Result<(), StoreError>;

    /// The time of the database, in milliseconds since 1970.
    async fn time_ms(&self) -> Result<u64, StoreError>;

    /// The number of the last transaction.
    async fn last_commit(&self) -> Result<u64, StoreError>;

    /// What other hosts have committed after transaction `after`.
    async fn commits_after(&self, after: u64) -> Result<RemoteCommits, StoreError>;

    /// Tells the other hubs that these callers were present until now.
    async fn note_present(&self, callers: &[String]) -> Result<(), StoreError>;

    /// The callers of all hubs that were present within this time, and how long ago.
    async fn present(&self, within: Duration) -> Result<Vec<(String, Duration)>, StoreError>;

    /// Sends a command, if the hub of its host is connected.
    async fn send(&self, command: &NewCommand) -> Result<Sent, StoreError>;

    /// Takes the commands for this host, except those that this hub is executing.
    async fn take_commands(&self, executing: &[CommandId]) -> Result<Vec<CommandRow>, StoreError>;

    /// Stores the reply to a command.
    async fn reply(&self, command: CommandId, reply: &Value) -> Result<(), StoreError>;

    /// The states of these commands. One that is missing was lost or has been deleted.
    async fn command_states(
        &self,
        commands: &[CommandId],
    ) -> Result<Vec<(CommandId, CommandState)>, StoreError>;

    /// Withdraws a command that was not taken yet; returns whether it was withdrawn.
    async fn withdraw(&self, command: CommandId) -> Result<bool, StoreError>;
}

/// What another hub may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It has committed.
    Commits,
    /// It may also have sent a command to this host, or a reply.
    Any,
}

/// Whether a command was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The command is stored, and its host is notified.
    Yes,
    /// There is no such host, its hub is not connected, or it was declared lost.
    NotConnected,
}

/// Why a hub can never write again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fenced {
    /// Its host was declared lost or was removed: its agents must not continue.
    Lost,
    /// Another hub of its host has started, and has its agents.
    Replaced,
    /// The database has lost commits, and the operator has accepted that: the next hub continues with the state of the database.
    RolledBack,
}

/// Which hubs are woken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// All others.
    All,
    /// All others, within a fraction of a second: for changes that only people see.
    AllSoon,
    /// That of one host.
    Host(HostName),
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    /// Its name.
    pub name: HostName,
    /// How often a hub has started there.
    pub epoch: u64,
    /// Its state.
    pub state: HostState,
    /// The version of Plexus of its hub.
    pub version: String,
    /// For how many milliseconds the lease has been expired; `None` while it is valid.
    pub silent_ms: Option<u64>,
    /// What it offers to new sessions.
    pub capacity: Capacity,
}

/// What a host offers to new sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Its labels.
    pub labels: BTreeSet<HostLabel>,
    /// How many sessions may work at a time; `None` for no limit. A session takes a slot from its creation to the end of its first turn, and during
    /// each later turn.
    pub slots: Option<u64>,
}

/// How many slots of a host are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotUse {
    /// How many it has.
    pub slots: u64,
    /// How many sessions take one.
    pub used: u64,
}

/// The state of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// It gets new sessions.
    #[serde(rename = "in")]
    Active,
    /// It gets no new sessions.
    Draining,
    /// It was declared lost: its hub cannot write until it starts again.
    Lost,
    /// It was removed: another machine may use its name.
    Removed,
    /// It was lost or removed, and its hub has started since.
    Rejoined,
    /// The database had lost commits that the host had made or seen, the operator has accepted that, and its hub has started since.
    RolledBack,
}

impl HostState {
    /// Whether the hub of the host can write nothing until it starts again.
    pub fn is_fenced(self) -> bool {
        matches!(self, Self::Lost | Self::Removed)
    }
}

/// What transactions of other hosts have changed.
#[derive(Debug, Default)]
pub struct RemoteCommits {
    /// The number of the last transaction that was read.
    pub last: u64,
    /// The changes of all of them.
    pub changed: Changed,
    /// How many there are.
    pub count: usize,
    /// Whether older ones have been deleted before they were read, or the database has lost some: anything may have changed.
    pub incomplete: bool,
    /// Whether there are more.
    pub has_more: bool,
}

/// The ids of what was changed, without contents. A hub reads the contents from the store if it needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changed {
    /// The sessions that got events.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub sessions: BTreeSet<SessionId>,
    /// The approvals that were created or changed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals: BTreeMap<ApprovalId, ChangedApproval>,
    /// Whether permission rules were created or revoked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rules: bool,
    /// Whether budgets were set or raised.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub budgets: bool,
    /// The tokens that can no longer be used, as [`crate::TokenKey`] writes them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub ended_tokens: BTreeSet<String>,
    /// The keys of the addressees that got feed entries.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub feed: BTreeSet<String>,
}

/// An approval that was created or changed: what a hub has to know to decide whether it reads the approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedApproval {
    /// The session whose call it is about.
    pub session: SessionId,
    /// The host of that session.
    pub host: Option<HostName>,
    /// Who decides.
    pub asked_of: AskedOf,
    /// Whether it waits for a decision.
    pub is_pending: bool,
    /// Whether it is about a budget. Sessions of any host may wait for it.
    pub is_about_budget: bool,
}

impl From<&Approval> for ChangedApproval {
    fn from(approval: &Approval) -> Self {
        Self {
            session: approval.session_id,
            host: approval.host.clone(),
            asked_of: approval.asked_of.clone(),
            is_pending: approval.status == ApprovalStatus::Pending,
            is_about_budget: approval.kind == ApprovalKind::Budget,
        }
    }
}

impl Changed {
    /// The changes of these commits.
    pub fn by(commits: &mut dyn Iterator<Item = &Committed>) -> Self {
        let mut changed = Self::default();
        for commit in commits {
            changed.sessions.extend(commit.events.iter().map(|event| event.session));
            let approvals = commit.approvals.iter().map(|row| &row.approval);
            changed.approvals.extend(approvals.map(|approval| (approval.id, approval.into())));
            changed.rules |= !commit.rules.is_empty();
            changed.budgets |= !commit.budgets.is_empty();
            changed.ended_tokens.extend(commit.ended_tokens.iter().map(ToString::to_string));
            changed.feed.extend(commit.feed.iter().map(|entry| entry.to.clone()));
        }
        changed
    }

    /// Adds the changes of another transaction.
    pub fn add(&mut self, other: Self) {
        self.sessions.extend(other.sessions);
        self.approvals.extend(other.approvals);
        self.rules |= other.rules;
        self.budgets |= other.budgets;
        self.ended_tokens.extend(other.ended_tokens);
        self.feed.extend(other.feed);
    }
}

/// A call of a method that another host executes.
#[derive(Debug, Clone)]
pub struct NewCommand {
    /// Its id.
    pub id: CommandId,
    /// The host that executes it.
    pub host: HostName,
    /// The caller, in a form that the hubs agree on.
    pub caller: Value,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
    /// After how many milliseconds it is not executed any more.
    pub expires_ms: u64,
}

/// A command for this host.
#[derive(Debug, Clone)]
pub struct CommandRow {
    /// Its id.
    pub id: CommandId,
    /// The host that sent it.
    pub origin: HostName,
    /// The caller.
    pub caller: Value,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
    /// Whether its time limit has passed: then it must not be executed.
    pub expired: bool,
    /// Whether an earlier hub of this host has taken it. It may have been executed.
    pub taken_before: bool,
}

/// The state of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandState {
    /// The host has not taken it.
    Sent,
    /// The host has taken it and has not replied.
    Taken,
    /// The host has replied.
    Replied(Value),
}
