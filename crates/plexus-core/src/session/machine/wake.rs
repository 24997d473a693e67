//! Waking a session: the hub starts a turn in an idle session when approvals of its descendants wait for it. One turn
//! covers all approvals that are open at that time; only a later approval starts another.

use std::time::{Duration, Instant};

use plexus_protocol::{Error, ErrorKind, SessionName};
use plexus_store::ApprovalRow;

use super::Machine;
use super::commands::{Origin, TurnRequest};
use crate::attachments::Attachments;
use crate::session::{Prompt, PromptFormat};

/// The pause before another try when the store is unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Whether the session is to be woken as soon as it has no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    No,
    Wanted,
    /// The store was unavailable; the next try is then.
    At(Instant),
}

impl Wake {
    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            Self::No | Self::Wanted => None,
        }
    }
}

impl Machine {
    /// Starts a turn if an approval has arrived since the session was last woken.
    pub(super) fn on_open_approvals(&mut self, open: &[ApprovalRow]) {
        let Some(newest) = open.last().map(|row| row.number).filter(|newest| *newest > self.row.woken_to)
        else {
            return;
        };
        let mut askers: Vec<&SessionName> = open.iter().map(|row| &row.approval.session_name).collect();
        askers.dedup();
        self.kill_point("wake", "asked");
        let prompt = Prompt {
            text: prompt(open.len(), &askers),
            format: PromptFormat::Plain,
            attachments: Attachments::default(),
        };
        self.check_cost_then_start(TurnRequest { prompt, origin: Origin::Wake { to: newest } });
    }

    pub(super) fn on_wake_failed(&mut self, error: &Error) {
        if error.kind == ErrorKind::StoreUnavailable {
            self.wake = Wake::At(self.now.instant + RETRY_AFTER);
        } else {
            // The approval escalates by itself.
            tracing::warn!(session = %self.row.id, %error, "cannot wake a session");
        }
    }
}

/// The prompt of a woken session. It contains no text of its descendants.
fn prompt(open: usize, askers: &[&SessionName]) -> String {
    let askers: Vec<&str> = askers.iter().map(|name| name.as_str()).collect();
    format!(
        "Plexus: {open} approval(s) of {} wait for your answer. Call loopback_wait without a cursor to see \
         them, then loopback_respond or loopback_escalate. If you do not answer, they escalate.",
        askers.join(", ")
    )
}
