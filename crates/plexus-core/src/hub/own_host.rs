//! The membership of this hub in the fleet: the hub joins, uses the clock of the database, notices when it can never write
//! again, and completes the return of a host that was declared lost or whose database has lost commits.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plexus_protocol::{Decider, Error, ErrorKind, SessionId};
use plexus_store::{Change, Fenced, Fleet, HostRow, HostState, StoreError};

use super::Hub;
use crate::errors::store_error;

/// How often the clock of the database is read.
const READ_CLOCK: Duration = Duration::from_secs(10);
/// How long the store may take to store that agents are stopped.
const STORE_ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// A slower answer is ignored, because its time is out of date.
const CLOCK_ANSWERS_WITHIN: Duration = Duration::from_secs(1);

impl Hub {
    /// Connects to the other hubs; returns the number of the last transaction.
    pub(super) async fn join_other_hubs(self: &Arc<Self>) -> Result<u64, StoreError> {
        let Some(fleet) = self.fleet() else { return Ok(0) };
        let connection = Arc::clone(&fleet);
        self.in_background(|hub| async move {
            let fenced = connection.run().await;
            if fenced == Fenced::Lost {
                hub.end_processes("this host was declared lost").await;
            }
            hub.fenced.send_replace(Some(fenced));
        });
        let last_commit = fleet.last_commit().await?;
        // Before the first deadline is judged.
        read_clock(&*fleet).await?;
        self.in_background(|_| follow_clock(fleet));
        Ok(last_commit)
    }

    /// Waits until this hub can never write again, because its host was declared lost, another hub has replaced it, or the operator has accepted lost commits. The processes of a lost host
    /// have ended then. Their journals stay.
    pub async fn fenced(&self) -> Fenced {
        let mut fenced = self.fenced.subscribe();
        loop {
            if let Some(why) = *fenced.borrow_and_update() {
                return why;
            }
            // The sender lives as long as the hub.
            let _ = fenced.changed().await;
        }
    }

    /// Ends the processes of all children, without the store.
    pub(super) async fn end_processes(&self, why: &str) {
        let sessions = self.parts.keepers.sessions();
        tracing::error!(agents = sessions.len(), why, "ending all agents of this host");
        futures::future::join_all(sessions.iter().map(|id| end_processes_of(*id))).await;
    }

    /// Stops a session of this hub; returns when its processes have ended. If the store is unavailable, its owner stores that later.
    pub(crate) async fn stop_here(&self, session: SessionId, why: &str) {
        let owner = self.session(session);
        tokio::select! {
            () = owner.stop(why) => {}
            () = self.store_is_unavailable() => {
                end_processes_of(session).await;
            }
        }
    }

    /// Returns when changes have waited for the store, or it has not answered, for [`STORE_ANSWERS_WITHIN`].
    pub(super) async fn store_is_unavailable(&self) {
        loop {
            tokio::time::sleep(STORE_ANSWERS_WITHIN).await;
            let answer = tokio::time::timeout(STORE_ANSWERS_WITHIN, self.store().feed_head()).await;
            if !matches!(answer, Ok(Ok(_))) || self.parts.metrics.holds_changes() {
                return;
            }
        }
    }

    /// Completes the return of a host that was declared lost, or whose database has lost commits: ends the processes that an earlier hub left and
    /// that the store does not know as running.
    pub(super) async fn complete_return(&self) -> Result<(), StoreError> {
        let Some(fleet) = self.fleet() else { return Ok(()) };
        let host = fleet.host().clone();
        let hosts = fleet.hosts().await?;
        let returns = |row: &HostRow| matches!(row.state, HostState::Rejoined | HostState::RolledBack);
        if !hosts.iter().any(|row| row.name == host && returns(row)) {
            return Ok(());
        }
        let known: BTreeSet<SessionId> =
            self.store().open_runs().await?.into_iter().map(|run| run.key.session).collect();
        let left = sessions_with_files(&self.settings().data_dir);
        let left: Vec<SessionId> = left.into_iter().filter(|session| !known.contains(session)).collect();
        tracing::warn!(%host, sessions = left.len(), "this host rejoins: ending agents that the store does not know as running");
        for session in left {
            end_processes_of(session).await;
        }
        let change = Change::SetHostState { host, state: HostState::Active, by: Decider::Hub };
        self.commit(vec![change]).await.map(drop)
    }

    /// Lets the next hub of this host continue with a database that has lost commits, and ends this one, whose sessions may be ahead of it.
    pub(crate) fn accept_rollback(&self) -> Result<(), Error> {
        let lost = self.fleet().filter(|fleet| fleet.has_lost_commits());
        let fleet = lost.ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidParams,
                "the database has lost no commits that this hub had made or seen, so nothing was changed",
            )
        })?;
        fleet.accept_rollback().map_err(store_error)?;
        self.fenced.send_replace(Some(Fenced::RolledBack));
        Ok(())
    }
}

/// Uses the clock of the database, for as long as it is polled: rules and deadlines that one hub sets expire at the same time on all others.
async fn follow_clock(fleet: Arc<dyn Fleet>) -> Infallible {
    loop {
        tokio::time::sleep(READ_CLOCK).await;
        if let Err(error) = read_clock(&*fleet).await {
            tracing::debug!(%error, "cannot read the clock of the database");
        }
    }
}

async fn read_clock(fleet: &dyn Fleet) -> Result<(), StoreError> {
    let asked = Instant::now();
    let time = fleet.time_ms().await?;
    let took = asked.elapsed();
    if took < CLOCK_ANSWERS_WITHIN
        && let Some(wrong_by_ms) = plexus_book::correct_clock(time + took.as_millis() as u64 / 2)
    {
        tracing::warn!(
            wrong_by_ms,
            "the clock of this machine differs from that of the database, which this hub uses"
        );
    }
    Ok(())
}

/// Ends the processes of a session, without the store; returns whether it had any.
pub(crate) async fn end_processes_of(session: SessionId) -> bool {
    plexus_agent::sweep_all(&session.to_string()).await
}

/// Ends the processes of all sessions that have files in the data directory, without the store; returns how many sessions had any. No hub may use the
/// directory.
pub async fn end_processes_in(data_dir: &Path) -> usize {
    let mut ended = 0;
    for session in sessions_with_files(data_dir) {
        ended += usize::from(end_processes_of(session).await);
    }
    ended
}

/// The sessions that have files in the data directory.
fn sessions_with_files(data_dir: &Path) -> Vec<SessionId> {
    let Ok(entries) = std::fs::read_dir(data_dir.join("sessions")) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}
