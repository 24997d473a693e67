//! Turns, events, feed entries and positions in memory.

use plexus_protocol::UnixSeconds;
use serde_json::Value;

use super::super::tables::{EventKey, PositionKey, Tables};
use crate::rows::{
    EndOfTurn, EventSize, NewFeedEntry, SessionRows as _, Stored, TurnKey, TurnRows, TurnUpdate,
};
use crate::{EventRow, EventsOfTurn, FeedRow, TurnRow, TurnStatus};

impl TurnRows for Tables {
    fn turn(&self, key: TurnKey) -> Stored<Option<TurnRow>> {
        Ok(self.turns.get(&key).cloned())
    }

    fn insert_turn(&mut self, key: TurnKey, prompt: &str, started_at: UnixSeconds) -> Stored<()> {
        let row = TurnRow {
            session: key.session,
            turn: key.turn,
            status: TurnStatus::Running,
            run: None,
            prompt: prompt.to_owned(),
            prompt_uuid: String::new(),
            progress: Value::Null,
            started_at,
            ended_at: None,
            events: EventsOfTurn::Kept,
            head: None,
            cost_usd: 0.0,
        };
        self.turns.put(key, row);
        Ok(())
    }

    fn update_turn(&mut self, key: TurnKey, update: TurnUpdate<'_>) -> Stored<bool> {
        Ok(self.turns.update(&key, |row| match update {
            TurnUpdate::Bound { run, prompt_uuid } => {
                row.run = Some(run);
                prompt_uuid.clone_into(&mut row.prompt_uuid);
            }
            TurnUpdate::Progress(progress) => row.progress = progress.clone(),
            TurnUpdate::Ended { status, at, head, cost_usd } => {
                row.cost_usd = cost_usd;
                row.status = status;
                row.ended_at = Some(at);
                row.head = Some(head);
            }
            TurnUpdate::Events(events) => row.events = events,
        }))
    }

    fn end_of_turn(&self, key: TurnKey) -> Stored<Option<EndOfTurn>> {
        let found = self.session_identity(key.session)?;
        Ok(found.map(|session| EndOfTurn { session, next_event: self.event_count(key) }))
    }

    fn insert_event(&mut self, event: &EventRow) -> Stored<()> {
        let turn = TurnKey { session: event.session, turn: event.turn };
        self.events.put(EventKey { turn, seq: event.seq }, event.clone());
        Ok(())
    }

    fn first_event_sizes(&self, key: TurnKey, limit: u64) -> Stored<Vec<EventSize>> {
        let first = self.events_from(key, 0).take(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(first.map(|row| EventSize { seq: row.seq, bytes: row.event.as_str().len() as u64 }).collect())
    }

    fn delete_events(&mut self, key: TurnKey, upto: u64) -> Stored<usize> {
        Ok(self.events.delete_where(|event, _| event.turn == key && event.seq <= upto))
    }

    fn insert_feed_entry(&mut self, entry: &NewFeedEntry<'_>) -> Stored<u64> {
        let NewFeedEntry { to, session, entry, at: _ } = *entry;
        let number = self.feed.next_number();
        Ok(self.feed.append(FeedRow { number, to: to.to_owned(), session, entry: entry.clone() }))
    }

    fn put_position(&mut self, reader: &str, turn: TurnKey, position: u64) -> Stored<()> {
        self.positions.put(PositionKey { reader: reader.to_owned(), turn }, position);
        Ok(())
    }
}

impl Tables {
    /// How many events the turn has: the number of the next one.
    pub(in crate::memory) fn event_count(&self, turn: TurnKey) -> u64 {
        self.events_from(turn, 0).next_back().map_or(0, |event| event.seq + 1)
    }

    /// The events of a turn from number `from` on.
    pub(in crate::memory) fn events_from(
        &self,
        turn: TurnKey,
        from: u64,
    ) -> impl DoubleEndedIterator<Item = &EventRow> {
        let range = EventKey { turn, seq: from }..=EventKey { turn, seq: u64::MAX };
        self.events.range(range).map(|(_, event)| event)
    }
}
