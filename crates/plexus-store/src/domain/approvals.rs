//! The lifecycle of an approval. It is created once and resolved once. Every addressee is notified when it is resolved.

use plexus_protocol::claudecode::PermissionMode;
use plexus_protocol::{
    Approval, ApprovalId, ApprovalStatus, AskedOf, Decision, Event, Object, SessionId, UnixSeconds,
};

use super::{Commit, audit_entries, feed, no_such};
use crate::rows::{
    ApprovalAndCall, ApprovalUpdate, BeforeApproval, CallKey, PreviousAddressee, SessionIdentity,
    SessionUpdate, Stored, TurnKey,
};
use crate::{
    ApprovalRow, FeedEntry, NewApproval, PermitStream, Refusal, Resolution, RunKey, StoreError, Verdict,
};

impl Commit<'_> {
    pub(super) fn ask(&mut self, new: &NewApproval) -> Stored<()> {
        let NewApproval { approval, run, turn, .. } = new;
        let turn = TurnKey { session: approval.session_id, turn: *turn };
        let run = RunKey { session: turn.session, run: *run };
        let key = CallKey { run, tool_use_id: &approval.tool_use_id };
        let found = self.rows.before_approval(&key, turn.turn)?.ok_or_else(|| no_such(turn.session))?;
        let BeforeApproval { end, key_is_held, is_archived } = found;
        if key_is_held {
            return Err(Refusal::KeyTaken.into());
        }
        let asking = self.note_end(turn, end);
        let mut passed_over = Vec::new();
        for from in approval.passed.iter().filter_map(|passed| passed.from.as_ref()) {
            passed_over.push((from.key(), self.notify_asked(from, approval.id, turn)?));
        }
        let number = self.notify_asked(&approval.asked_of, approval.id, turn)?;
        self.rows.insert_approval(new, number)?;
        for (key, number) in &passed_over {
            let (approval, number) = (approval.id, *number);
            let previous = PreviousAddressee { key, approval, number, may_still_decide: true };
            self.rows.insert_previous_addressee(&previous)?;
        }
        if is_archived {
            self.rows.update_session(turn.session, SessionUpdate::ArchivedAt(None))?;
        }
        let tool_use_id = approval.tool_use_id.clone();
        self.event(turn, &Event::ApprovalRequested { approval_id: approval.id, tool_use_id })?;
        let SessionIdentity { name: session_name, answers_to, host } = asking;
        let row = new.stored(number, answers_to);
        let approval = Approval { session_name, host, ..row.approval };
        self.publish_approval(ApprovalRow { approval, ..row });
        Ok(())
    }

    pub(super) fn resolve(
        &mut self,
        id: ApprovalId,
        status: ApprovalStatus,
        decision: &Decision,
    ) -> Stored<()> {
        let (mut row, verdict) = self.pending_and_verdict(id)?;
        if let Some(rule) = decision.rule.filter(|_| status == ApprovalStatus::Allowed)
            && !self.rows.rule_is_in_force(rule)?
        {
            return Err(Refusal::NoSuchRule(rule).into());
        }
        self.rows.update_approval(id, ApprovalUpdate::Resolved { status, decision, at: self.at })?;
        row.approval.status = status;
        row.approval.decision = Some(decision.clone());
        row.approval.resolved_at = Some(self.at);
        let run = RunKey { session: row.approval.session_id, run: row.run };
        self.audit(audit_entries::approval_resolved(self.at, &row.approval, decision, verdict))?;
        self.grant_budget(&row, decision)?;
        if let Some(mode) = decision.mode.filter(|_| status == ApprovalStatus::Allowed) {
            self.set_mode(run.session, mode)?;
        }
        let turn = TurnKey { session: run.session, turn: row.turn };
        self.event(turn, &resolved_event(&row, status, decision))?;
        // Each step of the escalation has added one.
        let mut previous = Vec::new();
        if !row.approval.passed.is_empty() {
            previous = self.rows.previous_addressees(id)?;
            self.rows.delete_previous_addressees(id)?;
        }
        for to in feed::everyone_asked(previous, &row.approval.asked_of) {
            let resolution = Some(Resolution { status, by: decision.by.clone() });
            self.feed(to, turn.session, FeedEntry::Resolved { approval: id, turn: turn.turn, resolution })?;
        }
        self.publish_approval(row);
        Ok(())
    }

    /// Sets the permission mode of a session in the commit of the answer that names it. The owner of the session sets it again when it
    /// learns of the answer.
    fn set_mode(&mut self, session: SessionId, mode: PermissionMode) -> Stored<()> {
        let mut config = self.session(session)?.config;
        config.permission_mode = mode;
        self.rows.update_session(session, SessionUpdate::Config(&config))
    }

    pub(super) fn resolve_if_pending(
        &mut self,
        id: ApprovalId,
        status: ApprovalStatus,
        decision: &Decision,
    ) -> Stored<()> {
        // The deadline may have been extended since the caller read it.
        if status == ApprovalStatus::Expired && !self.is_due(id)? {
            return Ok(());
        }
        match self.resolve(id, status, decision) {
            Err(StoreError::Refused(Refusal::AlreadyResolved(_))) => Ok(()),
            other => other,
        }
    }

    /// Whether the deadline has passed.
    fn is_due(&mut self, id: ApprovalId) -> Stored<bool> {
        Ok(self.approval(id)?.approval.expires_at.is_some_and(|at| at <= self.at))
    }

    pub(super) fn extend(&mut self, id: ApprovalId, expires_at: UnixSeconds) -> Stored<()> {
        let mut row = self.pending(id)?;
        row.approval.expires_at = Some(expires_at);
        self.update_asked(row)
    }

    /// The first delivery counts: after a restart the same answer may be delivered again.
    pub(super) fn delivered(&mut self, id: ApprovalId) -> Stored<()> {
        let changed = self.changed_approvals.get(&id).and_then(|at| self.published.approvals.get_mut(*at));
        changed.into_iter().for_each(|row| {
            row.approval.delivered_at.get_or_insert(self.at);
        });
        self.rows.mark_delivered(id, self.at)
    }

    pub(super) fn release_keys(&mut self, run: RunKey, tool_use_id: &str) -> Stored<()> {
        self.rows.release_keys(&CallKey { run, tool_use_id }, self.at)
    }

    pub(super) fn permit_stream(&mut self, stream: &PermitStream) -> Stored<()> {
        self.check_exists(stream.key.session)?;
        self.approval(stream.approval)?;
        self.rows.insert_permit_stream(stream, self.at)
    }

    /// Appends an `Asked` entry to the feed of `of` and returns its number.
    pub(super) fn notify_asked(&mut self, of: &AskedOf, approval: ApprovalId, turn: TurnKey) -> Stored<u64> {
        self.feed(of.key(), turn.session, FeedEntry::Asked { approval, turn: turn.turn })
    }

    /// Stores who is asked and until when.
    pub(super) fn update_asked(&mut self, row: ApprovalRow) -> Stored<()> {
        let update = ApprovalUpdate::Asked { approval: &row.approval, number: row.number };
        self.rows.update_approval(row.approval.id, update)?;
        self.publish_approval(row);
        Ok(())
    }

    /// An approval that is not resolved.
    pub(super) fn pending(&mut self, id: ApprovalId) -> Stored<ApprovalRow> {
        still_pending(self.approval(id)?)
    }

    /// An approval that is not resolved, and the stored verdict of its call.
    fn pending_and_verdict(&mut self, id: ApprovalId) -> Stored<(ApprovalRow, Option<Verdict>)> {
        if let Some(row) = self.changed(id) {
            let run = RunKey { session: row.approval.session_id, run: row.run };
            let verdict = self.rows.verdict(&CallKey { run, tool_use_id: &row.approval.tool_use_id })?;
            return Ok((still_pending(row)?, verdict));
        }
        let found = self.rows.approval_and_call(id)?.ok_or(Refusal::NoSuchApproval(id))?;
        let ApprovalAndCall { row, verdict, next_event } = found;
        self.note_identity(&row);
        self.next_event = Some((TurnKey { session: row.approval.session_id, turn: row.turn }, next_event));
        Ok((still_pending(row)?, verdict))
    }

    fn approval(&mut self, id: ApprovalId) -> Stored<ApprovalRow> {
        if let Some(row) = self.changed(id) {
            return Ok(row);
        }
        let row = self.rows.approval(id)?.ok_or(Refusal::NoSuchApproval(id))?;
        self.note_identity(&row);
        Ok(row)
    }

    /// An approval that this commit has created or changed.
    fn changed(&self, id: ApprovalId) -> Option<ApprovalRow> {
        self.changed_approvals.get(&id).and_then(|at| self.published.approvals.get(*at)).cloned()
    }

    /// Notes the identity of the session that was read with its approval.
    fn note_identity(&mut self, row: &ApprovalRow) {
        let ApprovalRow { approval, answers_to, .. } = row;
        let (name, answers_to, host) =
            (approval.session_name.clone(), answers_to.clone(), approval.host.clone());
        self.identities.insert(approval.session_id, SessionIdentity { name, answers_to, host });
    }
}

fn still_pending(row: ApprovalRow) -> Stored<ApprovalRow> {
    match row.approval.status {
        ApprovalStatus::Pending => Ok(row),
        _ => Err(Refusal::AlreadyResolved(Box::new(row)).into()),
    }
}

/// The event of a resolved approval. It contains the input only if the call is allowed with another one.
fn resolved_event(row: &ApprovalRow, status: ApprovalStatus, decision: &Decision) -> Event {
    let approval = &row.approval;
    let edited = |input: &&Object| decision.approve && **input != approval.input;
    Event::ApprovalResolved {
        approval_id: approval.id,
        tool_use_id: approval.tool_use_id.clone(),
        status,
        by: decision.by.clone(),
        message: decision.message.clone(),
        updated_input: decision.updated_input.as_ref().filter(edited).cloned(),
    }
}
