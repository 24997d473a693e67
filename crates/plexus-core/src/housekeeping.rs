//! Deletes old data as the settings say: files of finished runs and, if configured, events and decisions. One task
//! deletes a little at a time and pauses for longer than each step took, so that no decision waits for the disk. The
//! store decides what may be deleted; if a hub is killed in between, the next one finds and deletes the rest.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use plexus_agent::RunDir;
use plexus_protocol::{Error, ErrorKind};
use plexus_store::{
    Change, EventsOfTurn, FinishedRun, OldRecords, Removable, RunKey, Store, StoreError, TurnRow,
};
use tokio::time::Instant;

use crate::{Retention, Settings};
use plexus_book::Commits;
use plexus_book::now;

/// The maximum number of items that one step reads or deletes.
const PAGE: u64 = 20;
/// The pause after a step, as a multiple of the duration of the step, and its minimum.
const PAUSE_FACTOR: u32 = 4;
const MIN_PAUSE: Duration = Duration::from_millis(5);

/// Deletes old data periodically, for as long as it is polled.
pub(crate) async fn run(keeping: Housekeeping) -> Infallible {
    loop {
        tokio::time::sleep(keeping.settings.retention.every).await;
        if let Err(error) = tidy_up(&keeping).await {
            tracing::warn!(%error, "cannot delete old data; trying again at the next interval");
        }
    }
}

/// The parts of the hub that housekeeping uses.
pub(crate) struct Housekeeping {
    pub(crate) settings: Arc<Settings>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) commits: Arc<Commits>,
}

/// Returns an error if the events of a turn were deleted.
pub(crate) fn check_kept(turn: Option<&TurnRow>) -> Result<(), Error> {
    match turn {
        Some(turn) if turn.events != EventsOfTurn::Kept => Err(gone(turn.turn)),
        _ => Ok(()),
    }
}

/// The error for a request for events that were deleted.
pub(crate) fn gone(turn: u64) -> Error {
    let message =
        format!("the events of turn {turn} were deleted because of their age; later turns are available");
    Error::new(ErrorKind::Gone, message).with("turn", turn)
}

async fn tidy_up(keeping: &Housekeeping) -> Result<(), StoreError> {
    let kept = keeping.settings.retention;
    tidy_run_files(keeping, &kept).await?;
    if let Some(age) = kept.events_for {
        remove_records(keeping, OldRecords::Events, age).await?;
    }
    if let Some(age) = kept.decisions_for {
        remove_records(keeping, OldRecords::Approvals, age).await?;
        remove_records(keeping, OldRecords::Calls, age).await?;
    }
    Ok(())
}

fn before(age: Duration) -> u64 {
    now().saturating_sub(age.as_secs())
}

async fn remove_records(keeping: &Housekeeping, which: OldRecords, age: Duration) -> Result<(), StoreError> {
    loop {
        let old = keeping.store.old_records(which, before(age), PAGE).await?;
        let mut removed = 0;
        if which == OldRecords::Events {
            for turn in old {
                // One step deletes a part of the events of a turn.
                while let rows @ 1.. = step(keeping, vec![Change::Remove(turn)]).await? {
                    removed += rows;
                }
            }
        } else {
            removed = step(keeping, old.into_iter().map(Change::Remove).collect()).await?;
        }
        if removed == 0 {
            return Ok(());
        }
        tracing::debug!(?which, removed, "deleted old data");
    }
}

/// Performs one commit and then pauses. Returns the number of rows that it deleted.
async fn step(keeping: &Housekeeping, changes: Vec<Change>) -> Result<usize, StoreError> {
    if changes.is_empty() {
        return Ok(0);
    }
    let started = Instant::now();
    let removed = keeping.commits.commit(changes).await?.removed;
    tokio::time::sleep((started.elapsed() * PAUSE_FACTOR).max(MIN_PAUSE)).await;
    Ok(removed)
}

/// Deletes the run files that are too old and those of deleted sessions, then the oldest until the rest is within the
/// limit.
async fn tidy_run_files(keeping: &Housekeeping, kept: &Retention) -> Result<(), StoreError> {
    let too_old = |run: &FinishedRun| kept.run_files_for.is_some_and(|age| run.ended_at < before(age));
    let mut sizes: Vec<(RunKey, u64)> = Vec::new();
    let mut last = None;
    loop {
        let page = keeping.store.finished_runs(last, PAGE).await?;
        let Some(newest) = page.last() else { break };
        last = Some(*newest);
        let (gone, stays): (Vec<_>, Vec<_>) =
            page.into_iter().partition(|run| run.session_deleted_at.is_some() || too_old(run));
        remove_files(keeping, gone.into_iter().map(|run| run.key).collect()).await;
        if kept.run_files_bytes.is_some() {
            sizes.extend(measure(keeping, stays).await);
        }
    }
    let Some(most) = kept.run_files_bytes else { return Ok(()) };
    let mut total: u64 = sizes.iter().map(|(_, size)| size).sum();
    let mut surplus = Vec::new();
    for (key, size) in sizes {
        if total <= most {
            break;
        }
        total -= size;
        surplus.push(key);
    }
    for some in surplus.chunks(PAGE as usize) {
        remove_files(keeping, some.to_vec()).await;
    }
    Ok(())
}

async fn measure(keeping: &Housekeeping, runs: Vec<FinishedRun>) -> Vec<(RunKey, u64)> {
    let settings = Arc::clone(&keeping.settings);
    let measured = tokio::task::spawn_blocking(move || {
        let size = |run: FinishedRun| (run.key, RunDir::new(settings.run_dir(run.key)).size());
        runs.into_iter().map(size).collect()
    });
    measured.await.unwrap_or_default()
}

/// Deletes the files before it commits that they are deleted. If the hub is killed in between, the next one finds the
/// runs again, without files. On a full disk the commit fails until later, but the space is free.
async fn remove_files(keeping: &Housekeeping, runs: Vec<RunKey>) {
    let mut removed = Vec::new();
    for key in runs {
        let dir = RunDir::new(keeping.settings.run_dir(key));
        match tokio::task::spawn_blocking(move || dir.remove(MIN_PAUSE)).await {
            Ok(Ok(())) => removed.push(Change::Remove(Removable::RunFiles(key))),
            Ok(Err(error)) => {
                tracing::warn!(session = %key.session, run = key.run, %error, "cannot delete the files of a \
                    run");
            }
            // The hub is shutting down.
            Err(_) => return,
        }
    }
    if let Err(error) = step(keeping, removed).await {
        tracing::warn!(%error, "the files of some runs were deleted, but the store does not know it yet; \
            trying again at the next interval");
    }
}
