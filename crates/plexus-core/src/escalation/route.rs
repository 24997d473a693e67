//! Decides who is asked about an approval: the first decider above the session that is present or can be woken, else the operator.

use plexus_book::now;
use plexus_protocol::{ApprovalKind, AskedOf, Decider, EscalationReason, EscalationStep, UnixSeconds};
use plexus_store::{ApprovalRow, Change};
use serde_json::Value;

use super::Escalation;
use crate::Settings;
use crate::lineage::{CheckedCall, Lineage};

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
    pub(super) fn is_reachable(&self, lineage: &Lineage, asked_of: &AskedOf) -> bool {
        let wakes = lineage.sessions().iter().any(|session| {
            session.config.wake && matches!(asked_of, AskedOf::Session { id } if *id == session.id)
        });
        wakes || self.presence.is_present(&asked_of.key(), self.present_for)
    }
}

/// The deciders above `asked_of`, nearest first.
pub(crate) fn deciders_above(
    settings: &Settings,
    lineage: &Lineage,
    row: &ApprovalRow,
    asked_of: &AskedOf,
) -> Vec<AskedOf> {
    let AskedOf::Session { id } = asked_of else { return vec![AskedOf::Operator] };
    let approval = &row.approval;
    if approval.kind == ApprovalKind::Budget {
        // A decider can grant what it has left, whatever its scope.
        return lineage.deciders(*id, |session| session.config.hub_tools);
    }
    let input = Value::Object(approval.input.clone());
    let home = lineage.home(settings);
    let call = CheckedCall::new(&approval.tool_name, input, (&approval.cwd).into(), home);
    lineage.deciders(*id, |session| lineage.may_allow(session.id, &call))
}
