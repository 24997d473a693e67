//! The way a question goes: to the nearest above that may decide it and is there, and on by itself when nobody answers,
//! up to the operator. Who may decide what is for `lineage` and `access`; whoever was asked may decide for as long as
//! it is open, wherever it has gone since.

mod passing;
mod presence;
mod waking;

use plexus_protocol::{AskedOf, Decider, Passed, Principal, UnixSeconds, WentOn};
use plexus_store::{ApprovalRow, Change};

use crate::Hub;
use crate::book::Deadlines;
use crate::clock::now;
use crate::lineage::Lineage;

use passing::has_no_deadline;
pub(crate) use presence::Here;
use presence::Presence;
use waking::ToWake;

/// What the hub remembers of those who are asked; all of it can be found out again.
#[derive(Debug, Default)]
pub(crate) struct WayUp {
    presence: Presence,
    going_on: Deadlines,
    to_wake: ToWake,
}

impl WayUp {
    /// This caller is there for as long as it holds what is returned, and a while longer.
    pub(crate) fn enter(&self, principal: &Principal) -> Option<Here<'_>> {
        match principal {
            Principal::Session { .. } | Principal::Parent { .. } => {
                Some(self.presence.enter(principal.key()))
            }
            // The operator is asked last, there or not.
            Principal::Operator | Principal::Token { .. } => None,
        }
    }

    /// An approval is open, and asked of somebody.
    pub(crate) fn open(&self, row: &ApprovalRow) {
        let at = if has_no_deadline(row) { Some(now()) } else { row.approval.passes_on_at };
        self.going_on.set(row.approval.id, at);
        if let AskedOf::Session { id } = row.approval.asked_of {
            self.to_wake.add(id);
        }
    }

    /// An approval has come to its end.
    pub(crate) fn ended(&self, row: &ApprovalRow) {
        self.going_on.set(row.approval.id, None);
    }
}

/// Who is asked, and who would have been.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) asked_of: AskedOf,
    /// Those who are passed over, being absent.
    pub(crate) passed: Vec<Passed>,
    pub(crate) passes_on_at: Option<UnixSeconds>,
}

impl Route {
    /// An open approval takes it, from the one who is asked now.
    pub(crate) fn from(self, row: &ApprovalRow, why: WentOn, by: Decider, opinion: Option<String>) -> Change {
        let Self { asked_of: to, passed: absent, passes_on_at } = self;
        let mut passed =
            vec![Passed { from: Some(row.approval.asked_of.clone()), why, by, opinion, at: now() }];
        passed.extend(absent);
        Change::Escalate { approval: row.approval.id, passed, to, passes_on_at }
    }
}

impl Hub {
    /// The first of `deciders` that is there; the operator, if none is.
    pub(crate) fn route(&self, lineage: &Lineage, deciders: Vec<AskedOf>) -> Route {
        let mut passed = Vec::new();
        for asked_of in deciders {
            if asked_of == AskedOf::Operator {
                break;
            }
            if self.can_be_reached(lineage, &asked_of) {
                let passes_on_at = Some(now() + self.patience(lineage));
                return Route { asked_of, passed, passes_on_at };
            }
            let (from, why, by) = (Some(asked_of), WentOn::Absent, Decider::Hub);
            passed.push(Passed { from, why, by, opinion: None, at: now() });
        }
        Route { asked_of: AskedOf::Operator, passed, passes_on_at: None }
    }

    /// Whether somebody is there, or comes when woken.
    fn can_be_reached(&self, lineage: &Lineage, asked_of: &AskedOf) -> bool {
        let wakes = lineage.sessions().iter().any(|session| {
            session.config.wake && matches!(asked_of, AskedOf::Session { id } if *id == session.id)
        });
        wakes || self.way_up().presence.is_here(&asked_of.key(), self.settings().present_for)
    }

    /// How many seconds somebody has before a question goes on.
    fn patience(&self, lineage: &Lineage) -> u64 {
        let given = lineage.sessions().iter().rev().find_map(|session| session.config.escalate_after_secs);
        given.unwrap_or(self.settings().escalate_after_secs)
    }
}
