//! The events of a turn that are stored already, read in pages.

use plexus_protocol::claudecode::{PollResult, Status};
use plexus_protocol::{Approval, NumberedEvent, SessionId};
use serde_json::{Value, json};

use crate::error::ExpectedError;
use crate::hub::HubClient;
use crate::output;

const PAGE: u64 = 500;

/// A place in a turn.
pub(crate) struct Stored {
    session: SessionId,
    turn: u64,
    seq: u64,
    more: bool,
    gone: bool,
}

/// Some events, and how things stood when they were read.
pub(crate) struct Page {
    /// As `GET /sessions/{id}/events` tells them.
    pub(crate) events: Vec<Value>,
    pub(crate) status: Status,
    pub(crate) pending: Vec<Approval>,
}

impl Stored {
    /// The beginning of a turn.
    pub(crate) fn of(session: SessionId, turn: u64) -> Self {
        Self { session, turn, seq: 0, more: turn > 0, gone: false }
    }

    /// The turn and the event with which what comes after this begins.
    pub(crate) fn next(&self) -> (u64, u64) {
        if self.gone { (self.turn + 1, 0) } else { (self.turn.max(1), self.seq) }
    }

    /// The next page, unless that was all. That old events are gone is said.
    pub(crate) async fn page(&mut self, hub: &HubClient) -> Result<Option<Page>, ExpectedError> {
        if !self.more {
            return Ok(None);
        }
        let place = json!({"session_id": self.session, "turn": self.turn, "from_seq": self.seq, "limit": PAGE, "max_bytes": u32::MAX});
        let PollResult::Ok { events, status, pending_approvals, read_position, has_more, .. } =
            match hub.call("claudecode.poll", place).await {
                Err(ExpectedError::Refused(why)) if why.ends_with("(gone)") => {
                    output::say(&format!("plexus: the events of turn {} were removed", self.turn));
                    (self.more, self.gone) = (false, true);
                    return Ok(None);
                }
                read => read?,
            };
        (self.seq, self.more) = (read_position, has_more);
        let numbered = |event: NumberedEvent| json!({"turn": self.turn, "seq": event.seq, "event": event.event, "at": event.at});
        Ok(Some(Page {
            events: events.into_iter().map(numbered).collect(),
            status,
            pending: pending_approvals,
        }))
    }
}
