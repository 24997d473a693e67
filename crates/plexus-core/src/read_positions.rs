//! The read position of each caller in a session. A response may be lost, with or without the hub that sent it. A
//! position therefore advances only when the caller's next poll arrives; if the hub is killed in between, the next one
//! shows the same events again. The store keeps confirmed positions; this module keeps in memory what was shown and not
//! yet confirmed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use plexus_protocol::SessionId;

/// The positions of all readers since this hub started, by reader and session.
#[derive(Debug, Default)]
pub(crate) struct ReadPositions {
    positions: Mutex<HashMap<(String, SessionId), ReadPosition>>,
}

/// The position of a reader in the turn it read last.
#[derive(Debug)]
struct ReadPosition {
    turn: u64,
    read: u64,
    shown: u64,
}

/// A position to store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfirmedPosition {
    pub(crate) turn: u64,
    pub(crate) position: u64,
}

impl ReadPositions {
    /// Confirms what the reader was shown, because it polls again. Returns the position to store, if it
    /// advanced.
    pub(crate) fn confirm_shown(&self, reader: &str, session: SessionId) -> Option<ConfirmedPosition> {
        let mut positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        let position = positions
            .get_mut(&(reader.to_owned(), session))
            .filter(|position| position.shown > position.read)?;
        position.read = position.shown;
        Some(ConfirmedPosition { turn: position.turn, position: position.read })
    }

    /// The confirmed position of the reader in this turn, if it is in memory.
    pub(crate) fn read(&self, reader: &str, session: SessionId, turn: u64) -> Option<u64> {
        let positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        positions
            .get(&(reader.to_owned(), session))
            .filter(|position| position.turn == turn)
            .map(|position| position.read)
    }

    /// Notes that the reader, whose position is `read`, is shown everything up to `shown`.
    pub(crate) fn shown(&self, reader: String, session: SessionId, turn: u64, read: u64, shown: u64) {
        let mut positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        positions.insert((reader, session), ReadPosition { turn, read, shown });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_moves_when_the_next_poll_arrives() {
        let (positions, session) = (ReadPositions::default(), SessionId::random());
        assert_eq!(positions.confirm_shown("me", session), None);
        positions.shown("me".to_owned(), session, 1, 0, 5);
        assert_eq!(positions.read("me", session, 1), Some(0), "the response may not have arrived");
        assert_eq!(positions.read("you", session, 1), None, "each reader has its own position");
        assert_eq!(positions.confirm_shown("me", session), Some(ConfirmedPosition { turn: 1, position: 5 }));
        assert_eq!(positions.read("me", session, 1), Some(5));
        assert_eq!(positions.confirm_shown("me", session), None, "nothing more was shown");
        assert_eq!(positions.read("me", session, 2), None, "each turn has its own position");
    }
}
