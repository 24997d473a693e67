//! Escalation: an approval goes to the nearest ancestor that may decide it and is present. Unanswered, it moves up the tree to
//! the operator. `lineage` and `access` say who may decide; everyone who was asked may decide until it is resolved.

mod deadlines;
mod presence;
mod route;
mod waking;

use std::time::Duration;

use plexus_protocol::{AskedOf, Principal};
use plexus_store::ApprovalRow;

use crate::Settings;
use plexus_book::Deadlines;
use plexus_book::now;

use deadlines::has_no_deadline;
pub(crate) use presence::CallGuard;
use presence::Presence;
pub(crate) use route::{Route, deciders_above};
use waking::WakeQueue;

/// Who is present, when approvals escalate, and which sessions are to be woken. All of it can be computed again.
#[derive(Debug)]
pub(crate) struct Escalation {
    /// How long a caller counts as present after a call.
    present_for: Duration,
    /// How many seconds a decider has before an approval escalates, unless the session says otherwise.
    escalate_after_secs: u64,
    presence: Presence,
    deadlines: Deadlines,
    wake_queue: WakeQueue,
}

impl Escalation {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            present_for: settings.present_for,
            escalate_after_secs: settings.escalate_after_secs,
            presence: Presence::default(),
            deadlines: Deadlines::default(),
            wake_queue: WakeQueue::default(),
        }
    }

    /// Marks a caller as present until the returned value is dropped, and for a while after that.
    pub(crate) fn enter(&self, principal: &Principal) -> Option<CallGuard<'_>> {
        match principal {
            Principal::Session { .. } | Principal::Parent { .. } => {
                Some(self.presence.enter(principal.key()))
            }
            // The operator is asked last, present or not.
            Principal::Operator | Principal::Token { .. } => None,
        }
    }

    /// The callers that were present at this hub within this time.
    pub(crate) fn present_here(&self, within: Duration) -> Vec<String> {
        self.presence.within(within)
    }

    /// How long a caller counts as present after a call.
    pub(crate) fn present_for(&self) -> Duration {
        self.present_for
    }

    /// The callers that other hubs have seen, and how long ago.
    pub(crate) fn set_present_elsewhere(&self, callers: Vec<(String, Duration)>) {
        self.presence.set_elsewhere(callers);
    }

    /// An approval was asked or has escalated.
    pub(crate) fn open(&self, row: &ApprovalRow) {
        let at = if has_no_deadline(row) { Some(now()) } else { row.approval.passes_on_at };
        self.deadlines.set(row.approval.id, at);
    }

    /// An approval is addressed to a session, which may have to be woken.
    pub(crate) fn wake(&self, asked_of: &AskedOf) {
        if let AskedOf::Session { id } = asked_of {
            self.wake_queue.add(*id);
        }
    }

    /// An approval was resolved.
    pub(crate) fn resolved(&self, row: &ApprovalRow) {
        self.deadlines.set(row.approval.id, None);
    }
}
