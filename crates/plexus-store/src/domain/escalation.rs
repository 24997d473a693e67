//! Escalation: a pending approval moves up the tree, from one addressee to the next.

use plexus_protocol::{ApprovalId, AskedOf, Decider, EscalationStep, Event, UnixSeconds};
use serde_json::json;

use super::Commit;
use crate::rows::{PreviousAddressee, Stored, TurnKey};
use crate::{ApprovalRow, Refusal};

impl Commit<'_> {
    pub(super) fn escalate(
        &mut self,
        id: ApprovalId,
        passed_over: &[EscalationStep],
        to: &AskedOf,
        escalates_at: Option<UnixSeconds>,
    ) -> Stored<()> {
        let mut row = self.pending(id)?;
        check_addressee(&row, passed_over.first().and_then(|first| first.from.as_ref()))?;
        let turn = TurnKey { session: row.approval.session_id, turn: row.turn };
        let nexts = passed_over.iter().skip(1).filter_map(|next| next.from.as_ref()).chain([to]);
        for (passed, next) in passed_over.iter().zip(nexts) {
            let key = row.approval.asked_of.key();
            let may_still_decide = may_still_decide(passed);
            let previous =
                PreviousAddressee { key: &key, approval: id, number: row.number, may_still_decide };
            self.rows.insert_previous_addressee(&previous)?;
            row.number = self.notify_asked(next, id, turn)?;
            let data = json!({"approval_id": id, "asked_of": next, "by": passed.by, "why": passed.why});
            let data = data.as_object().cloned().unwrap_or_default();
            self.event(turn, &Event::System { subtype: "approval_passed_on".to_owned(), data })?;
            row.approval.asked_of = next.clone();
            row.approval.passed.push(EscalationStep { at: self.at, ..passed.clone() });
        }
        row.approval.passes_on_at = escalates_at;
        self.update_asked(row)
    }

    pub(super) fn set_deadlines(
        &mut self,
        id: ApprovalId,
        asked_of: &AskedOf,
        expires_at: UnixSeconds,
        escalates_at: Option<UnixSeconds>,
    ) -> Stored<()> {
        let mut row = self.pending(id)?;
        check_addressee(&row, Some(asked_of))?;
        row.approval.expires_at = Some(expires_at);
        row.approval.passes_on_at = escalates_at;
        self.update_asked(row)
    }
}

/// Refuses a change that was decided when the approval had another addressee.
fn check_addressee(row: &ApprovalRow, expected: Option<&AskedOf>) -> Result<(), Refusal> {
    if expected == Some(&row.approval.asked_of) {
        return Ok(());
    }
    Err(Refusal::AskedOfAnother(Box::new(row.clone())))
}

/// An addressee that escalates an approval itself gives it up. An addressee that is skipped may still decide.
fn may_still_decide(passed: &EscalationStep) -> bool {
    passed.from.as_ref().map(Decider::from).as_ref() != Some(&passed.by)
}
