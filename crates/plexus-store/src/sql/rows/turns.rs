//! Turns, events, feed entries and positions in SQL.

use plexus_protocol::UnixSeconds;

use super::super::columns::{Json, Text, Word, int};
use super::super::{Row, reads, statements};
use super::SqlRows;
use super::sessions::identity;
use crate::rows::{EndOfTurn, EventSize, NewFeedEntry, Stored, TurnKey, TurnRows, TurnUpdate};
use crate::{EventRow, FeedColumns, TurnRow};

impl TurnRows for SqlRows<'_> {
    fn turn(&self, key: TurnKey) -> Stored<Option<TurnRow>> {
        reads::turn(self.database, key.session, key.turn)
    }

    fn insert_turn(&mut self, key: TurnKey, prompt: &str, started_at: UnixSeconds) -> Stored<()> {
        self.write(
            "INSERT INTO turns (session, turn, prompt, started_at) VALUES (?1, ?2, ?3, ?4)",
            (Text(key.session), key.turn, prompt, started_at),
        )
    }

    fn update_turn(&mut self, key: TurnKey, update: TurnUpdate<'_>) -> Stored<bool> {
        let (session, turn) = (Text(key.session), int(key.turn));
        let updated = match update {
            TurnUpdate::Bound { run, prompt_uuid } => self.execute(
                "UPDATE turns SET run = ?3, prompt_uuid = ?4 WHERE session = ?1 AND turn = ?2",
                (session, turn, run, prompt_uuid),
            ),
            TurnUpdate::Progress(progress) => self.execute(
                "UPDATE turns SET progress = ?3 WHERE session = ?1 AND turn = ?2",
                (session, turn, Json(progress)),
            ),
            TurnUpdate::Ended { status, at, head, cost_usd } => self.execute(
                "UPDATE turns SET status = ?3, ended_at = ?4, head = ?5, cost_usd = ?6 \
                 WHERE session = ?1 AND turn = ?2",
                (session, turn, Word(status), at, Text(head), cost_usd),
            ),
            TurnUpdate::Events(events) => self.execute(
                "UPDATE turns SET events = ?3 WHERE session = ?1 AND turn = ?2",
                (session, turn, Word(events)),
            ),
        }?;
        Ok(updated > 0)
    }

    fn end_of_turn(&self, key: TurnKey) -> Stored<Option<EndOfTurn>> {
        let sql = self.database.dialect().end_of_turn;
        self.database.one(sql, (Text(key.session), int(key.turn)), end_of_turn)
    }

    fn insert_event(&mut self, event: &EventRow) -> Stored<()> {
        let EventRow { session, turn, seq, event, at } = event;
        self.write(
            "INSERT INTO events (session, turn, seq, event, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (Text(session), turn, seq, event.as_str(), at),
        )
    }

    fn first_event_sizes(&self, key: TurnKey, limit: u64) -> Stored<Vec<EventSize>> {
        let which = (Text(key.session), int(key.turn), int(limit));
        self.database.all(statements::FIRST_EVENTS, which, |row| {
            Ok(EventSize { seq: row.get(0)?, bytes: row.get(1)? })
        })
    }

    fn delete_events(&mut self, key: TurnKey, upto: u64) -> Stored<usize> {
        self.execute(statements::DELETE_EVENTS, (Text(key.session), int(key.turn), int(upto)))
    }

    fn insert_feed_entry(&mut self, entry: &NewFeedEntry<'_>) -> Stored<u64> {
        let NewFeedEntry { to, session, entry, at } = entry;
        let FeedColumns { kind, approval, turn, data } = entry.columns();
        let columns = (to, Word(kind), Text(session), approval.map(Text), turn, Json(data), at);
        match self.known.next_in_feed() {
            Some(number) => self.write(statements::INSERT_FEED_ENTRY, columns).map(|()| number),
            None => self.value(statements::INSERT_FEED_ENTRY_AND_RETURN_NUMBER, columns),
        }
    }

    fn put_position(&mut self, reader: &str, key: TurnKey, position: u64) -> Stored<()> {
        self.write(
            "INSERT INTO positions (reader, session, turn, position) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (reader, session, turn) DO UPDATE SET position = excluded.position",
            (reader, Text(key.session), int(key.turn), int(position)),
        )
    }
}

/// The end of the turn in a row.
pub(super) fn end_of_turn(row: &Row<'_>) -> Stored<EndOfTurn> {
    Ok(EndOfTurn { session: identity(row)?, next_event: row.get("next_event")? })
}
