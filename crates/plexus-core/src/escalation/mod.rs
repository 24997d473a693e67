//! Escalation: an approval goes to the nearest ancestor that may decide it and is present. Unanswered, it moves up the tree to
//! the operator. `lineage` and `access` say who may decide; everyone who was asked may decide until it is resolved.

mod deadlines;
mod presence;
mod waking;

use std::time::Duration;

use plexus_protocol::{AskedOf, Decider, EscalationReason, EscalationStep, Principal, UnixSeconds};
use plexus_store::{ApprovalRow, Change};

use crate::Settings;
use crate::lineage::Lineage;
use plexus_book::Deadlines;
use plexus_book::now;

pub(crate) use deadlines::deciders_above;
use deadlines::has_no_deadline;
pub(crate) use presence::CallGuard;
use presence::Presence;
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

    /// An approval was asked or has escalated.
    pub(crate) fn open(&self, row: &ApprovalRow) {
        let at = if has_no_deadline(row) { Some(now()) } else { row.approval.passes_on_at };
        self.deadlines.set(row.approval.id, at);
        if let AskedOf::Session { id } = row.approval.asked_of {
            self.wake_queue.add(id);
        }
    }

    /// An approval was resolved.
    pub(crate) fn resolved(&self, row: &ApprovalRow) {
        self.deadlines.set(row.approval.id, None);
    }
}

/// Who is asked, and who was passed over.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) asked_of: AskedOf,
    /// Absent deciders that were passed over.
    pub(crate) passed_over: Vec<EscalationStep>,
    pub(crate) escalates_at: Option<UnixSeconds>,
}

impl Route {
    /// The change that moves an open approval along this route.
    pub(crate) fn from(
        self,
        row: &ApprovalRow,
        why: EscalationReason,
        by: Decider,
        opinion: Option<String>,
    ) -> Change {
        let Self { asked_of: to, passed_over: absent, escalates_at } = self;
        let mut passed_over =
            vec![EscalationStep { from: Some(row.approval.asked_of.clone()), why, by, opinion, at: now() }];
        passed_over.extend(absent);
        Change::Escalate { approval: row.approval.id, passed_over, to, escalates_at }
    }
}

impl Escalation {
    /// The first of `deciders` that is present; the operator, if none is.
    pub(crate) fn route(&self, lineage: &Lineage, deciders: Vec<AskedOf>, now: UnixSeconds) -> Route {
        let mut passed_over = Vec::new();
        for asked_of in deciders {
            if asked_of == AskedOf::Operator {
                break;
            }
            if self.is_reachable(lineage, &asked_of) {
                let escalates_at = Some(now + self.escalate_after(lineage));
                return Route { asked_of, passed_over, escalates_at };
            }
            let (from, why, by) = (Some(asked_of), EscalationReason::Absent, Decider::Hub);
            passed_over.push(EscalationStep { from, why, by, opinion: None, at: now });
        }
        Route { asked_of: AskedOf::Operator, passed_over, escalates_at: None }
    }

    /// Whether a decider is present, or can be woken.
    fn is_reachable(&self, lineage: &Lineage, asked_of: &AskedOf) -> bool {
        let wakes = lineage.sessions().iter().any(|session| {
            session.config.wake && matches!(asked_of, AskedOf::Session { id } if *id == session.id)
        });
        wakes || self.presence.is_present(&asked_of.key(), self.present_for)
    }
}
