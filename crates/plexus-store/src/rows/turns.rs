//! The rows of turns, their events, the feed and the readers' positions.

use plexus_protocol::{NodeId, SessionId, UnixSeconds};
use serde_json::Value;

use super::{SessionIdentity, Stored};
use crate::{EventRow, EventsOfTurn, FeedEntry, TurnRow, TurnStatus};

/// Turns, events, feed entries and positions.
pub(crate) trait TurnRows {
    /// One turn.
    fn turn(&self, key: TurnKey) -> Stored<Option<TurnRow>>;
    /// Inserts a running turn that is not bound to a run.
    fn insert_turn(&mut self, key: TurnKey, prompt: &str, started_at: UnixSeconds) -> Stored<()>;
    /// Updates a turn; returns whether it exists.
    fn update_turn(&mut self, key: TurnKey, update: TurnUpdate<'_>) -> Stored<bool>;

    /// What an event that is appended to the turn needs; `None` if the session does not exist.
    fn end_of_turn(&self, key: TurnKey) -> Stored<Option<EndOfTurn>>;
    /// Inserts an event.
    fn insert_event(&mut self, event: &EventRow) -> Stored<()>;
    /// The numbers and sizes of the first `limit` events of a turn.
    fn first_event_sizes(&self, key: TurnKey, limit: u64) -> Stored<Vec<EventSize>>;
    /// Deletes the events of a turn up to number `upto`; returns how many.
    fn delete_events(&mut self, key: TurnKey, upto: u64) -> Stored<usize>;

    /// Inserts a feed entry under the next number of the feed, which it returns.
    fn insert_feed_entry(&mut self, entry: &NewFeedEntry<'_>) -> Stored<u64>;

    /// Stores how far a reader has read a turn.
    fn put_position(&mut self, reader: &str, key: TurnKey, position: u64) -> Stored<()>;
}

/// One turn of one session; turn 0 collects the events outside any turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TurnKey {
    pub(crate) session: SessionId,
    pub(crate) turn: u64,
}

/// What an event that is appended to a turn needs.
#[derive(Debug, Clone)]
pub(crate) struct EndOfTurn {
    /// The identity of the session.
    pub(crate) session: SessionIdentity,
    /// The number of the next event.
    pub(crate) next_event: u64,
}

/// New values for some columns of a turn.
pub(crate) enum TurnUpdate<'a> {
    Bound { run: u32, prompt_uuid: &'a str },
    Progress(&'a Value),
    Ended { status: TurnStatus, at: UnixSeconds, head: NodeId, cost_usd: f64 },
    Events(EventsOfTurn),
}

/// The number and the size of one event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventSize {
    pub(crate) seq: u64,
    pub(crate) bytes: u64,
}

/// A feed entry without its number.
pub(crate) struct NewFeedEntry<'a> {
    pub(crate) to: &'a str,
    pub(crate) session: SessionId,
    pub(crate) entry: &'a FeedEntry,
    pub(crate) at: UnixSeconds,
}
