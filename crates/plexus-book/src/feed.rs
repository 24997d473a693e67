//! Waiting for new entries in a feed.

use std::time::Duration;

use plexus_store::{FeedRow, StoreError};
use tokio::time::{Instant, sleep, timeout_at};

use crate::commits::Commits;
use crate::signals::{Topic, next};

/// How long entries are collected, so that simultaneous approval requests are returned in one round.
const GATHER: Duration = Duration::from_millis(50);
/// The number of entries in one answer; the rest follows with the next.
const PAGE: u64 = 500;

/// The new entries of a feed.
#[derive(Debug)]
pub struct NewEntries {
    /// The number of the last entry that was read.
    pub newest: u64,
    /// The entries for the reader; none if the deadline came first.
    pub rows: Vec<FeedRow>,
}

impl Commits {
    /// Waits for new entries for `to` after number `after`, until `deadline`. Entries that are `is_skipped` count as read and
    /// do not end the wait.
    ///
    /// # Errors
    /// When the store is unavailable.
    pub async fn wait_for_entries(
        &self,
        to: &str,
        after: u64,
        deadline: Instant,
        is_skipped: impl Fn(&FeedRow) -> bool,
    ) -> Result<NewEntries, StoreError> {
        let mut signal = self.signals().subscribe(Topic::Feed(to.to_owned()));
        let mut newest = after;
        loop {
            let rows = self.ledger().feed(to, newest, PAGE).await?;
            if !rows.iter().all(&is_skipped) {
                break;
            }
            newest = rows.last().map_or(newest, |row| row.number);
            if Instant::now() >= deadline {
                return Ok(NewEntries { newest, rows: Vec::new() });
            }
            if rows.is_empty() {
                // A timeout is not an error: the next round finds no entries.
                let _ = timeout_at(deadline, next(&mut signal)).await;
            }
        }
        sleep(GATHER).await;
        let mut rows = self.ledger().feed(to, newest, PAGE).await?;
        newest = rows.last().map_or(newest, |row| row.number);
        rows.retain(|row| !is_skipped(row));
        Ok(NewEntries { newest, rows })
    }
}
