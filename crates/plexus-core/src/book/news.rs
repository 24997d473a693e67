//! Waiting for what is new in someone's feed.

use std::time::Duration;

use plexus_store::{FeedRow, StoreError};
use tokio::time::{Instant, sleep, timeout_at};

use super::{Book, Topic, next};

/// How long what comes together is gathered: agents that ask in lockstep are answered in one round.
const GATHER: Duration = Duration::from_millis(50);
/// How many entries one answer can hold; the rest comes with the next.
const PAGE: u64 = 500;

/// What is new in a feed.
#[derive(Debug)]
pub(crate) struct News {
    /// Up to here the feed has been read.
    pub(crate) newest: u64,
    /// What is there for its reader; nothing when the time was over first.
    pub(crate) rows: Vec<FeedRow>,
}

impl Book {
    /// Waits for what is new for `to` after number `after`, until `deadline`. Entries that are `passed_over` count as
    /// read, and end no wait.
    pub(crate) async fn news(
        &self,
        to: &str,
        after: u64,
        deadline: Instant,
        passed_over: impl Fn(&FeedRow) -> bool,
    ) -> Result<News, StoreError> {
        let mut signal = self.signals.subscribe(Topic::Feed(to.to_owned()));
        let mut newest = after;
        loop {
            let rows = self.ledger.feed(to, newest, PAGE).await?;
            if !rows.iter().all(&passed_over) {
                break;
            }
            newest = rows.last().map_or(newest, |row| row.number);
            if Instant::now() >= deadline {
                return Ok(News { newest, rows: Vec::new() });
            }
            if rows.is_empty() {
                // A time-out is no error: the next round says that there is nothing.
                let _ = timeout_at(deadline, next(&mut signal)).await;
            }
        }
        sleep(GATHER).await;
        let mut rows = self.ledger.feed(to, newest, PAGE).await?;
        newest = rows.last().map_or(newest, |row| row.number);
        rows.retain(|row| !passed_over(row));
        Ok(News { newest, rows })
    }
}
