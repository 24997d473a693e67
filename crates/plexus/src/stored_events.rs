//! Reads the stored events of a turn in pages.

use plexus_protocol::claudecode::{PollResult, Status};
use plexus_protocol::{Approval, NumberedEvent, SessionId};
use serde_json::{Value, json};

use crate::error::ExpectedError;
use crate::follow::EventPosition;
use crate::hub::HubClient;
use crate::output;

const PAGE: u64 = 500;

/// A position in a turn.
pub(crate) struct StoredEvents {
    session: SessionId,
    turn: u64,
    seq: u64,
    more: bool,
    gone: bool,
}

/// A page of events, with the status and the open approvals at the time of reading.
pub(crate) struct Page {
    /// In the format of `GET /sessions/{id}/events`.
    pub(crate) events: Vec<Value>,
    pub(crate) status: Status,
    pub(crate) pending: Vec<Approval>,
}

impl StoredEvents {
    /// The start of a turn.
    pub(crate) fn of(session: SessionId, turn: u64) -> Self {
        Self { session, turn, seq: 0, more: turn > 0, gone: false }
    }

    /// The position after the pages read so far.
    pub(crate) fn next(&self) -> EventPosition {
        if self.gone {
            EventPosition { turn: self.turn + 1, seq: 0 }
        } else {
            EventPosition { turn: self.turn.max(1), seq: self.seq }
        }
    }

    /// The next page; `None` after the last one. Reports on stderr if the events were deleted.
    pub(crate) async fn page(&mut self, hub: &HubClient) -> Result<Option<Page>, ExpectedError> {
        if !self.more {
            return Ok(None);
        }
        let params = json!({"session_id": self.session, "turn": self.turn, "from_seq": self.seq, "limit": PAGE, "max_bytes": u32::MAX});
        let PollResult::Ok { events, status, pending_approvals, read_position, has_more, .. } =
            match hub.call("claudecode.poll", params).await {
                Err(ExpectedError::Refused(why)) if why.ends_with("(gone)") => {
                    output::say(&format!("plexus: the events of turn {} were deleted", self.turn));
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
