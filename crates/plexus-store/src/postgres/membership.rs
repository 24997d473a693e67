//! The membership of a host: its epoch, and the id of its last transaction. A hub raises the epoch when it starts. Each transaction that writes
//! replaces the id in the row of its host, and only if epoch and id are the expected ones. So a hub that was replaced or declared lost cannot write
//! any more, and a database that has lost commits, because it was restored or because a standby took over, is noticed.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use plexus_protocol::HostName;
use plexus_protocol::audit::AuditHead;
use uuid::Uuid;

use super::capacity;
use super::commit_count::{CommitCount, Counted, Counts};
use super::connection::PgConnection;
use crate::StoreError;
use crate::fleet::{Capacity, HostState};
use crate::rows::Stored;
use crate::sql::columns::Word;
use crate::sql::{Database, Known, Row};

/// The identity of a hub towards the database that it shares.
#[derive(Debug, Clone)]
pub struct Host {
    /// The name of the host.
    pub name: HostName,
    /// Identifies the data directory of its hub. Another machine cannot use the same name.
    pub machine: String,
    /// The file in which the hub counts its commits.
    pub commit_count: PathBuf,
    /// What the host offers to new sessions.
    pub capacity: Capacity,
}

pub(super) const LOCK_WRITER: &str = "SELECT number FROM writer FOR UPDATE";
const FENCE: &str = "UPDATE hosts SET last_commit = ?1, commits = commits + 1 WHERE name = ?2 AND epoch = ?3 AND state NOT IN ('lost', 'removed') AND last_commit = ?4 \
    RETURNING (SELECT number FROM writer) AS number, commits, (SELECT number FROM feed_head) AS feed_head, EXISTS (SELECT 1 FROM budgets) AS any_budget, \
    (SELECT number FROM audit_tail) AS audit_number, (SELECT hash FROM audit_tail) AS audit_hash";
/// Adds the host, or raises its epoch. A host with a role of its own cannot change its row in another way.
const JOIN_HOST: &str = "SELECT join_host(?1, ?2, ?3, ?4, ?5)";
const ROW: &str = "SELECT machine, epoch, state, last_commit, commits FROM hosts WHERE name = ?1";

/// The membership that this hub has.
pub(super) struct Membership {
    pub(super) host: HostName,
    pub(super) epoch: u64,
    last: Mutex<Last>,
    count: CommitCount,
}

/// The last transactions.
struct Last {
    /// The id of the last one that is known to be committed; `None` if the database had lost commits when this hub started.
    committed_id: Option<String>,
    /// The id of a later one whose COMMIT had no answer.
    uncertain_id: Option<String>,
    /// The number of the last one that this hub has committed.
    committed_number: Option<u64>,
    /// How many this host has committed, and the last one of any host that this hub has seen.
    counts: Counts,
    loss: Loss,
}

/// The commits that the database has lost, of those that this hub had made or seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Nothing,
    /// The last commit of this host. It can come back with another failover.
    OwnLast,
    /// This hub holds all changes, whatever the database has later. The next hub continues if the operator accepts the loss.
    Held,
}

/// A transaction that writes.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteTransaction {
    id: String,
    /// The number of the last transaction that is recorded for other hubs: this one, if it is recorded.
    number: u64,
    recorded: bool,
    /// How many transactions the host has committed with it.
    count: u64,
    /// Whether no other hub has committed since the last transaction of this one.
    follows_own: bool,
    /// What it has found when it began.
    found: Known,
}

/// What a transaction reads when it has the lock.
struct Begun {
    /// The number of the last transaction of any host that is recorded for other hubs.
    number: u64,
    /// How many transactions the host has committed with this one.
    count: u64,
    found: Known,
}

impl WriteTransaction {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Replaces what others may have changed before this transaction began. Some of it a runner can change without a commit that has a number.
    pub(super) fn update(&self, known: &mut Known) {
        let mut found = self.found.clone();
        if self.follows_own {
            found.rules_version = known.rules_version;
            // If the last entry was rewritten, the log shows it: it breaks at the next entry.
            let is_last =
                |head: &AuditHead| found.audit_head.as_ref().is_some_and(|other| other.number <= head.number);
            found.audit_head = known.audit_head.take().filter(is_last).or(found.audit_head);
        }
        *known = found;
    }

    /// The transaction is recorded for other hubs.
    pub(super) fn record(&mut self) {
        self.number += 1;
        self.recorded = true;
    }
}

/// The row of a host.
struct StoredHost {
    machine: String,
    epoch: u64,
    state: HostState,
    last_commit: String,
    commits: u64,
}

impl Membership {
    /// Joins: raises the epoch of the host, or adds the host if it is new. Afterwards an earlier hub of this host cannot
    /// commit any more.
    pub(super) fn join(connection: &PgConnection, host: &Host) -> Result<Self, StoreError> {
        connection.batch("BEGIN")?;
        let joined = Self::join_locked(connection, host);
        connection.batch(if joined.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        joined
    }

    /// Joins in a transaction that has begun.
    pub(super) fn join_locked(connection: &PgConnection, host: &Host) -> Result<Self, StoreError> {
        let database: &dyn Database = connection;
        let number: u64 = database.value(LOCK_WRITER, ())?;
        let name = host.name.as_str();
        let (count, counted) = CommitCount::open(&host.commit_count)?;
        let mut own = 0;
        let (epoch, committed_id) = match state(database, &host.name)? {
            Some(state) if state.machine != host.machine && state.state != HostState::Removed => {
                return Err(StoreError::Unusable(format!(
                    "host `{name}` is another machine, or has another data directory: choose another name with --host"
                )));
            }
            Some(StoredHost { epoch, last_commit, commits, state, .. }) => {
                // The hub logs that a lost host rejoins, or that lost commits were accepted, and then sets the state.
                let state = match state {
                    _ if state.is_fenced() => HostState::Rejoined,
                    _ if counted == Counted::Anything => HostState::RolledBack,
                    other => other,
                };
                let state = Some(Word(state));
                database.run(JOIN_HOST, (name, &host.machine, env!("CARGO_PKG_VERSION"), state, ""))?;
                let is_complete = match &counted {
                    Counted::AtLeast(least) => commits >= least.own && number >= least.seen,
                    Counted::Lost => false,
                    Counted::Anything => true,
                };
                own = commits;
                (epoch + 1, is_complete.then_some(last_commit))
            }
            None if !matches!(counted, Counted::AtLeast(Counts { own: 0, .. })) => {
                return Err(StoreError::Unusable(format!(
                    "the database does not know host `{name}`, which has stored its state in a database before: this one was restored from a \
                     backup that is older than the host, or is another one. Use the right database, or another data directory"
                )));
            }
            None => {
                let first = Uuid::new_v4().to_string();
                database
                    .run(JOIN_HOST, (name, &host.machine, env!("CARGO_PKG_VERSION"), None::<&str>, &first))?;
                (1, Some(first))
            }
        };
        capacity::store(database, &host.name, &host.capacity)?;
        let loss = if committed_id.is_some() { Loss::Nothing } else { Loss::Held };
        if loss == Loss::Held {
            // Later commits of other hosts would hide it from the next hub.
            count.set_lost();
        }
        let counts = Counts { own, seen: number };
        let last =
            Mutex::new(Last { committed_id, uncertain_id: None, committed_number: None, counts, loss });
        Ok(Self { host: host.name.clone(), epoch, last, count })
    }

    /// Makes a transaction that has begun the only one that writes.
    pub(super) fn fence(&self, database: &dyn Database) -> Stored<WriteTransaction> {
        let id = Uuid::new_v4().to_string();
        let seen = self.seen();
        if self.last().loss == Loss::Held {
            return Err(lost_commits());
        }
        database.queue(LOCK_WRITER, &[])?;
        // The lock on `last` must not be held in the block, which takes it again.
        let uncertain = self.last().uncertain_id.clone();
        if let Some(uncertain) = uncertain {
            // Under the lock it is certain: that transaction has ended.
            let is_committed =
                state(database, &self.host)?.is_some_and(|state| state.last_commit == uncertain);
            self.note_outcome(is_committed.then_some(uncertain));
        }
        let (committed_id, last_number) = {
            let last = self.last();
            (last.committed_id.clone(), last.committed_number)
        };
        let name = self.host.as_str();
        // The statement after the lock sees all that was committed before: its snapshot is taken when it starts.
        let expected = (&id, name, self.epoch, committed_id);
        let begun = database.one(FENCE, expected, begun)?;
        if let Some(Begun { number, .. }) = begun {
            self.saw(number, seen);
        }
        if let Some(Begun { number, count, found }) = begun
            && self.may_continue()
        {
            let follows_own = last_number == Some(number);
            return Ok(WriteTransaction { id, number, recorded: false, count, follows_own, found });
        }
        let current = state(database, &self.host)?;
        // A database with an earlier epoch was restored from a backup of that time.
        if current.is_none_or(|state| state.epoch <= self.epoch && !state.state.is_fenced()) {
            self.lost_own_last();
            return Err(lost_commits());
        }
        Err(StoreError::Unavailable(format!(
            "host `{name}` was declared lost, another hub has replaced this one, or this Plexus is too old for the database"
        )))
    }

    /// The database has the last commit of this host. Returns whether the hub may write.
    fn may_continue(&self) -> bool {
        let mut last = self.last();
        if last.loss == Loss::OwnLast {
            last.loss = Loss::Nothing;
        }
        last.loss == Loss::Nothing
    }

    fn lost_own_last(&self) {
        let mut last = self.last();
        if last.loss == Loss::Nothing {
            last.loss = Loss::OwnLast;
        }
    }

    /// This transaction is committed.
    pub(super) fn committed(&self, transaction: WriteTransaction) {
        let mut last = self.last();
        last.committed_id = Some(transaction.id);
        last.uncertain_id = None;
        last.counts.own = transaction.count;
        last.counts.seen = last.counts.seen.max(transaction.number);
        if transaction.recorded {
            last.committed_number = Some(transaction.number);
        }
        self.store_counts(&last);
    }

    /// Stores what the database must have. While it has lost commits, the file keeps what shows the loss.
    fn store_counts(&self, last: &Last) {
        if last.loss == Loss::Nothing {
            self.count.set(last.counts);
        }
    }

    /// The number of the last transaction of any host that this hub has seen.
    pub(super) fn seen(&self) -> u64 {
        self.last().counts.seen
    }

    /// The last transaction that the database has is this one. `before` is what [`Self::seen`] returned before the database was asked. If the database
    /// has fewer, it has lost commits of another host: this hub may have acted on them.
    pub(super) fn saw(&self, number: u64, before: u64) {
        let mut last = self.last();
        if number < before && last.loss != Loss::Held {
            last.loss = Loss::Held;
            self.count.set_lost();
        } else if number > last.counts.seen {
            last.counts.seen = number;
            self.store_counts(&last);
        }
    }

    /// This transaction may be committed.
    pub(super) fn uncertain(&self, transaction: WriteTransaction) {
        let mut last = self.last();
        last.uncertain_id = Some(transaction.id);
        last.committed_number = None;
    }

    /// Whether the transaction with this id is the last one of this host. No earlier transaction is open any more.
    pub(super) fn is_last(&self, database: &dyn Database, id: &str) -> Stored<bool> {
        // The lock waits for the end of the transaction, if the server still executes it.
        let _: u64 = database.value(LOCK_WRITER, ())?;
        let is_last = state(database, &self.host)?.is_some_and(|state| state.last_commit == id);
        self.note_outcome(is_last.then(|| id.to_owned()));
        Ok(is_last)
    }

    /// Notes the outcome of the transaction whose COMMIT had no answer. `committed` is its id if it was committed.
    fn note_outcome(&self, committed: Option<String>) {
        let mut last = self.last();
        last.uncertain_id = None;
        last.committed_number = None;
        if let Some(id) = committed {
            last.committed_id = Some(id);
        }
    }

    /// The number of the last transaction that this hub has committed; `None` if it is not known.
    pub(super) fn last_number(&self) -> Option<u64> {
        self.last().committed_number
    }

    /// Whether the database has lost commits, of this host or others. Then this hub holds all changes.
    pub(super) fn has_lost_commits(&self) -> bool {
        self.last().loss != Loss::Nothing
    }

    /// Lets the next hub of this host continue with the state that the database has. This one writes nothing more, also not to the file.
    pub(super) fn accept_rollback(&self) -> Result<(), StoreError> {
        let mut last = self.last();
        last.loss = Loss::Held;
        self.count.accept_anything().map_err(|error| {
            StoreError::Unavailable(format!("cannot store that lost commits are accepted: {error}"))
        })
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lost_commits() -> StoreError {
    StoreError::Unavailable(
        "the database has lost commits: it was restored from a backup, or a standby without them took over. \
         This hub holds all changes until you run `plexus host accept-rollback`"
            .to_owned(),
    )
}

fn begun(row: &Row<'_>) -> Stored<Begun> {
    let audit_head = match row.get("audit_number")? {
        Some(number) => AuditHead { number, hash: row.get("audit_hash")? },
        None => AuditHead::start(),
    };
    let found = Known {
        audit_head: Some(audit_head),
        feed_head: Some(row.get("feed_head")?),
        rules_version: None,
        any_budget: Some(row.get("any_budget")?),
    };
    Ok(Begun { number: row.get("number")?, count: row.get("commits")?, found })
}

fn state(database: &dyn Database, host: &HostName) -> Stored<Option<StoredHost>> {
    database.one(ROW, [host.as_str()], |row| {
        Ok(StoredHost {
            machine: row.get("machine")?,
            epoch: row.get("epoch")?,
            state: row.get::<Word<_>>("state")?.0,
            last_commit: row.get("last_commit")?,
            commits: row.get("commits")?,
        })
    })
}
