//! Approvals, calls and permit streams in memory.

use plexus_protocol::{ApprovalId, ApprovalStatus, AskedOf, SessionId, UnixSeconds};

use super::super::tables::{Call, CallKeyState, Previous, StoredApproval, Tables};
use crate::rows::{
    ApprovalAndCall, ApprovalRows, ApprovalUpdate, BeforeApproval, CallKey, PreviousAddressee,
    SessionRows as _, Stored, TurnKey, TurnRows as _,
};
use crate::{ApprovalRow, CallRow, NewApproval, PermitStream, RunKey, Verdict};

impl ApprovalRows for Tables {
    fn approval(&self, id: ApprovalId) -> Stored<Option<ApprovalRow>> {
        Ok(self.approval_row(id))
    }

    fn approval_and_call(&self, id: ApprovalId) -> Stored<Option<ApprovalAndCall>> {
        let Some(row) = self.approval_row(id) else { return Ok(None) };
        let session = row.approval.session_id;
        let call = CallKey { run: RunKey { session, run: row.run }, tool_use_id: &row.approval.tool_use_id };
        let verdict = self.verdict(&call)?;
        let next_event = self.event_count(TurnKey { session, turn: row.turn });
        Ok(Some(ApprovalAndCall { row, verdict, next_event }))
    }

    fn pending_approval_of(&self, session: SessionId, tool_use_id: &str) -> Stored<Option<ApprovalId>> {
        let matches = |row: &&ApprovalRow| {
            row.approval.session_id == session && row.approval.tool_use_id == tool_use_id
        };
        Ok(self.pending().find(matches).map(|row| row.approval.id))
    }

    fn has_pending_approval(&self, key: TurnKey) -> Stored<bool> {
        Ok(self.pending().any(|row| row.approval.session_id == key.session && row.turn == key.turn))
    }

    fn before_approval(&self, key: &CallKey<'_>, turn: u64) -> Stored<Option<BeforeApproval>> {
        let session = key.run.session;
        let Some(end) = self.end_of_turn(TurnKey { session, turn })? else { return Ok(None) };
        let key_is_held = self.approvals.values().any(|stored| stored.holds(key) && stored.row.turn == turn);
        let is_archived = self.session(session)?.is_some_and(|row| row.archived_at.is_some());
        Ok(Some(BeforeApproval { end, key_is_held, is_archived }))
    }

    fn insert_approval(&mut self, new: &NewApproval, number: u64) -> Stored<()> {
        let id = new.approval.id;
        // Reads replace what comes from the session.
        let row = new.stored(number, AskedOf::Operator);
        self.approvals.put(id, StoredApproval { row, key: CallKeyState::Held });
        Ok(())
    }

    fn update_approval(&mut self, id: ApprovalId, update: ApprovalUpdate<'_>) -> Stored<()> {
        self.approvals.update(&id, |StoredApproval { row, .. }| match update {
            ApprovalUpdate::Resolved { status, decision, at } => {
                row.approval.status = status;
                row.approval.decision = Some(decision.clone());
                row.approval.resolved_at = Some(at);
            }
            ApprovalUpdate::Asked { approval, number } => {
                row.approval = approval.clone();
                row.number = number;
            }
        });
        Ok(())
    }

    fn mark_delivered(&mut self, id: ApprovalId, at: UnixSeconds) -> Stored<()> {
        self.approvals.update(&id, |stored| {
            stored.row.approval.delivered_at.get_or_insert(at);
        });
        Ok(())
    }

    fn delete_approval(&mut self, id: ApprovalId) -> Stored<bool> {
        self.permit_streams.delete_where(|_, stream| stream.approval == id);
        Ok(self.approvals.delete(&id))
    }

    fn previous_addressees(&self, approval: ApprovalId) -> Stored<Vec<String>> {
        let previous = self.previous_addressees.values().filter(|previous| previous.approval == approval);
        Ok(previous.map(|previous| previous.key.clone()).collect())
    }

    fn insert_previous_addressee(&mut self, previous: &PreviousAddressee<'_>) -> Stored<()> {
        let PreviousAddressee { key, approval, number, may_still_decide } = *previous;
        let previous = Previous { key: key.to_owned(), approval, may_still_decide };
        self.previous_addressees.put(number, previous);
        Ok(())
    }

    fn delete_previous_addressees(&mut self, approval: ApprovalId) -> Stored<()> {
        self.previous_addressees.delete_where(|_, previous| previous.approval == approval);
        Ok(())
    }

    fn verdict(&self, key: &CallKey<'_>) -> Stored<Option<Verdict>> {
        Ok(self.calls.values().find(|call| call.holds(key)).map(|call| call.row.verdict.clone()))
    }

    fn insert_call(&mut self, call: &CallRow, at: UnixSeconds) -> Stored<()> {
        self.calls.append(Call { row: call.clone(), at, key: CallKeyState::Held });
        Ok(())
    }

    fn set_verdict(&mut self, key: &CallKey<'_>, verdict: &Verdict) -> Stored<()> {
        self.calls.update_where(|call| call.holds(key), |call| call.row.verdict = verdict.clone());
        Ok(())
    }

    fn release_keys(&mut self, key: &CallKey<'_>, _at: UnixSeconds) -> Stored<()> {
        self.calls.update_where(|call| call.holds(key), |call| call.key = CallKeyState::Released);
        self.approvals.update_where(|stored| stored.holds(key), |stored| stored.key = CallKeyState::Released);
        Ok(())
    }

    fn run_of_call(&self, ordinal: u64) -> Stored<Option<RunKey>> {
        Ok(self.calls.get(&ordinal).map(|call| call.row.key))
    }

    fn delete_call(&mut self, ordinal: u64) -> Stored<()> {
        self.calls.delete(&ordinal);
        Ok(())
    }

    fn insert_permit_stream(&mut self, stream: &PermitStream, _at: UnixSeconds) -> Stored<()> {
        self.permit_streams.put(stream.event_id.clone(), stream.clone());
        Ok(())
    }
}

impl StoredApproval {
    fn holds(&self, key: &CallKey<'_>) -> bool {
        let run = RunKey { session: self.row.approval.session_id, run: self.row.run };
        let is_held = self.key == CallKeyState::Held;
        is_held && run == key.run && self.row.approval.tool_use_id == key.tool_use_id
    }
}

impl Call {
    fn holds(&self, key: &CallKey<'_>) -> bool {
        let is_held = self.key == CallKeyState::Held;
        is_held && self.row.key == key.run && self.row.tool_use_id == key.tool_use_id
    }
}

impl Tables {
    /// The pending approvals, as they were inserted.
    pub(in crate::memory) fn pending(&self) -> impl Iterator<Item = &ApprovalRow> {
        let rows = self.approvals.values().map(|stored| &stored.row);
        rows.filter(|row| row.approval.status == ApprovalStatus::Pending)
    }

    /// One approval, with the current name of its session.
    pub(in crate::memory) fn approval_row(&self, id: ApprovalId) -> Option<ApprovalRow> {
        self.approvals.get(&id).map(|stored| self.with_name(&stored.row))
    }

    /// An approval with the current name, the creator and the host of its session.
    pub(in crate::memory) fn with_name(&self, row: &ApprovalRow) -> ApprovalRow {
        let mut row = row.clone();
        if let Some(session) = self.sessions.get(&row.approval.session_id) {
            row.approval.session_name = session.row.name.clone();
            row.approval.host = session.row.host.clone();
            row.answers_to = session.row.answers_to.clone();
        }
        row
    }
}
