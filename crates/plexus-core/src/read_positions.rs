//! How far each caller has read in a session. An answer may be lost on its way, with the hub that gave it or without:
//! so a position moves only when the caller's next poll arrives, and a hub that dies in between shows the same again.
//! What has moved is kept in the store; what was merely shown is known here alone.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use plexus_protocol::SessionId;

/// The positions of all readers since this hub came up, by reader and session.
#[derive(Debug, Default)]
pub(crate) struct ReadPositions {
    places: Mutex<HashMap<(String, SessionId), ReadPosition>>,
}

/// Where a reader is in the turn it read last.
#[derive(Debug)]
struct ReadPosition {
    turn: u64,
    read: u64,
    shown: u64,
}

impl ReadPositions {
    /// The reader polls again, so it has what it was shown: the turn and the position to be kept, if that is news.
    pub(crate) fn arrived(&self, reader: &str, session: SessionId) -> Option<(u64, u64)> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.get_mut(&(reader.to_owned(), session)).filter(|place| place.shown > place.read)?;
        place.read = place.shown;
        Some((place.turn, place.read))
    }

    /// Where the reader is in this turn, if that is known here.
    pub(crate) fn read(&self, reader: &str, session: SessionId, turn: u64) -> Option<u64> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(&(reader.to_owned(), session)).filter(|place| place.turn == turn).map(|place| place.read)
    }

    /// The reader, which is at `read`, is shown everything up to `shown`.
    pub(crate) fn shown(&self, reader: String, session: SessionId, turn: u64, read: u64, shown: u64) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.insert((reader, session), ReadPosition { turn, read, shown });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_moves_when_the_next_poll_arrives() {
        let (positions, session) = (ReadPositions::default(), SessionId::random());
        assert_eq!(positions.arrived("me", session), None);
        positions.shown("me".to_owned(), session, 1, 0, 5);
        assert_eq!(positions.read("me", session, 1), Some(0), "what is shown may not have arrived");
        assert_eq!(positions.read("you", session, 1), None, "each reader has its own");
        assert_eq!(positions.arrived("me", session), Some((1, 5)));
        assert_eq!(positions.read("me", session, 1), Some(5));
        assert_eq!(positions.arrived("me", session), None, "nothing more was shown");
        assert_eq!(positions.read("me", session, 2), None, "turns are counted each by itself");
    }
}
