//! Changes to the book of approvals: calls the gate saw, questions asked, answers given. An approval is decided once:
//! the one statement that ends it matches only while it is pending.

use plexus_protocol::{
    ApprovalId, ApprovalStatus, AskedOf, Decider, Decision, Event, Passed, SessionId, UnixSeconds,
};
use serde_json::json;

use super::changes::{About, Applying};
use super::columns::{Json, Text, Word};
use super::reads;
use crate::{
    ApprovalRow, CallInput, CallRow, FeedKind, NewApproval, PermitStream, Refusal, RunKey, StoreError,
};

impl Applying<'_> {
    pub(super) fn call(&mut self, call: &CallRow, seen: &CallInput) -> Result<(), StoreError> {
        self.known(call.key.session)?;
        let held = self.count_call(call, seen)?;
        self.execute(
            "INSERT INTO calls (session, run, turn, tool_use_id, tool_name, digest, request_id, verdict, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            (
                Text(call.key.session),
                call.key.run,
                call.turn,
                &call.tool_use_id,
                &call.tool_name,
                &call.digest,
                &call.request_id,
                Json(held.as_ref().unwrap_or(&call.verdict)),
                self.at,
            ),
        )?;
        match held {
            Some(_) => Ok(()),
            None => self.gate_answered(call, &seen.input),
        }
    }

    pub(super) fn ask(&mut self, new: &NewApproval) -> Result<(), StoreError> {
        let NewApproval { approval, run, turn, .. } = new;
        let session = approval.session_id;
        self.known(session)?;
        if self.key_lives(new)? {
            return Err(Refusal::KeyTaken.into());
        }
        let went_on: Vec<(String, u64)> = approval
            .passed
            .iter()
            .filter_map(|passed| passed.from.as_ref())
            .map(|from| Ok((from.key(), self.asked(from, session, approval.id, *turn)?)))
            .collect::<Result<_, StoreError>>()?;
        let to = approval.asked_of.key();
        let number = self.asked(&approval.asked_of, session, approval.id, *turn)?;
        self.execute(
            "INSERT INTO approvals \
             (id, number, session, run, turn, tool_use_id, asked_of, channel, request_id, question) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            (
                Text(approval.id),
                number,
                Text(session),
                run,
                turn,
                &approval.tool_use_id,
                to,
                Word(new.channel),
                &new.request_id,
                Json(approval),
            ),
        )?;
        for (key, number) in went_on {
            self.asked_before(&key, approval.id, number, true)?;
        }
        let tool_use_id = approval.tool_use_id.clone();
        self.event(session, *turn, &Event::ApprovalRequested { approval_id: approval.id, tool_use_id })?;
        self.made_approval(approval.id);
        Ok(())
    }

    pub(super) fn resolve(
        &mut self,
        id: ApprovalId,
        status: ApprovalStatus,
        decision: &Decision,
    ) -> Result<(), StoreError> {
        let resolved = self.execute(
            "UPDATE approvals SET status = ?2, decision = ?3, resolved_at = ?4 \
             WHERE id = ?1 AND status = 'pending'",
            (Text(id), Word(status), Json(decision), self.at),
        )?;
        let row = reads::approval(self.connection, id)?.ok_or(Refusal::NoSuchApproval(id))?;
        if resolved == 0 {
            return Err(Refusal::AlreadyResolved(Box::new(row)).into());
        }
        self.decided(&row, decision)?;
        self.settle_budget(&row, decision)?;
        let approval = row.approval;
        let event = Event::ApprovalResolved {
            approval_id: id,
            tool_use_id: approval.tool_use_id,
            status,
            by: decision.by.clone(),
            message: decision.message.clone(),
            updated_input: decision
                .updated_input
                .clone()
                .filter(|input| decision.approve && *input != approval.input),
        };
        self.event(approval.session_id, row.turn, &event)?;
        let mut told = reads::asked_before(self.connection, id)?;
        if !told.is_empty() {
            self.execute("DELETE FROM asked_before WHERE approval = ?1", [Text(id)])?;
        }
        told.push(approval.asked_of.key());
        for to in told {
            let about = About { approval: Some(id), turn: Some(row.turn) };
            let data = json!({"status": status, "by": decision.by});
            self.feed(&to, FeedKind::Resolved, approval.session_id, about, data)?;
        }
        self.made_approval(id);
        Ok(())
    }

    /// Whether its time is over. One that has been given more time is not due, whoever thought so.
    pub(super) fn is_due(&self, id: ApprovalId) -> Result<bool, StoreError> {
        let row = reads::approval(self.connection, id)?.ok_or(Refusal::NoSuchApproval(id))?;
        Ok(row.approval.expires_at.is_some_and(|at| at <= self.at))
    }

    pub(super) fn pass_on(
        &mut self,
        id: ApprovalId,
        passed: &[Passed],
        to: &AskedOf,
        passes_on_at: Option<UnixSeconds>,
    ) -> Result<(), StoreError> {
        let row = self.pending(id)?;
        if passed.first().and_then(|first| first.from.as_ref()) != Some(&row.approval.asked_of) {
            return Err(Refusal::AskedOfAnother(Box::new(row)).into());
        }
        let (session, turn, mut approval) = (row.approval.session_id, row.turn, row.approval);
        let mut number = row.number;
        let nexts = passed.iter().skip(1).filter_map(|next| next.from.as_ref()).chain([to]);
        for (passed, next) in passed.iter().zip(nexts) {
            // Whoever passed it on has done with it.
            let passed_over = passed.from.as_ref().map(Decider::from).as_ref() != Some(&passed.by);
            self.asked_before(&approval.asked_of.key(), id, number, passed_over)?;
            number = self.asked(next, session, id, turn)?;
            let data = json!({"approval_id": id, "asked_of": next, "by": passed.by, "why": passed.why});
            let data = data.as_object().cloned().unwrap_or_default();
            self.event(session, turn, &Event::System { subtype: "approval_passed_on".to_owned(), data })?;
            approval.asked_of = next.clone();
            approval.passed.push(Passed { at: self.at, ..passed.clone() });
        }
        approval.passes_on_at = passes_on_at;
        self.execute(
            "UPDATE approvals SET asked_of = ?2, number = ?3, question = ?4 WHERE id = ?1",
            (Text(id), to.key(), number, Json(&approval)),
        )?;
        self.made_approval(id);
        Ok(())
    }

    /// Tells somebody that they are asked.
    fn asked(
        &mut self,
        of: &AskedOf,
        session: SessionId,
        approval: ApprovalId,
        turn: u64,
    ) -> Result<u64, StoreError> {
        let about = About { approval: Some(approval), turn: Some(turn) };
        self.feed(&of.key(), FeedKind::Asked, session, about, json!({}))
    }

    /// Remembers who was asked under which number; those it went on without may come back.
    fn asked_before(
        &self,
        key: &str,
        approval: ApprovalId,
        number: u64,
        passed_over: bool,
    ) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO asked_before (addressee, approval, number, passed_over) VALUES (?1, ?2, ?3, ?4)",
            (key, Text(approval), number, passed_over),
        )?;
        Ok(())
    }

    pub(super) fn extend(&mut self, id: ApprovalId, expires_at: UnixSeconds) -> Result<(), StoreError> {
        let mut approval = self.pending(id)?.approval;
        approval.expires_at = Some(expires_at);
        self.execute("UPDATE approvals SET question = ?2 WHERE id = ?1", (Text(id), Json(&approval)))?;
        self.made_approval(id);
        Ok(())
    }

    /// An approval that has not come to its end.
    fn pending(&self, id: ApprovalId) -> Result<ApprovalRow, StoreError> {
        let row = reads::approval(self.connection, id)?.ok_or(Refusal::NoSuchApproval(id))?;
        if row.approval.status == ApprovalStatus::Pending {
            return Ok(row);
        }
        Err(Refusal::AlreadyResolved(Box::new(row)).into())
    }

    /// The first time counts: after a restart the same answer may be passed on again.
    pub(super) fn delivered(&self, id: ApprovalId) -> Result<(), StoreError> {
        let delivered = self.execute(
            "UPDATE approvals SET delivered_at = coalesce(delivered_at, ?2) WHERE id = ?1",
            (Text(id), self.at),
        )?;
        if delivered == 0 { Err(Refusal::NoSuchApproval(id).into()) } else { Ok(()) }
    }

    pub(super) fn settle(&self, key: RunKey, tool_use_id: &str) -> Result<(), StoreError> {
        for sql in [
            "UPDATE calls SET settled_at = ?4 \
             WHERE session = ?1 AND run = ?2 AND tool_use_id = ?3 AND settled_at IS NULL",
            "UPDATE approvals SET settled_at = ?4 \
             WHERE session = ?1 AND run = ?2 AND tool_use_id = ?3 AND settled_at IS NULL",
        ] {
            self.execute(sql, (Text(key.session), key.run, tool_use_id, self.at))?;
        }
        Ok(())
    }

    pub(super) fn stream(&self, stream: &PermitStream) -> Result<(), StoreError> {
        self.known(stream.key.session)?;
        if reads::approval(self.connection, stream.approval)?.is_none() {
            return Err(Refusal::NoSuchApproval(stream.approval).into());
        }
        self.execute(
            "INSERT INTO permit_streams (event_id, session, run, approval, jsonrpc_id, progress_token, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (
                &stream.event_id,
                Text(stream.key.session),
                stream.key.run,
                Text(stream.approval),
                Json(&stream.jsonrpc_id),
                stream.progress_token.as_ref().map(Json),
                self.at,
            ),
        )?;
        Ok(())
    }

    fn key_lives(&self, new: &NewApproval) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM approvals WHERE session = ?1 AND run = ?2 AND tool_use_id = ?3 \
                   AND turn = ?4 AND settled_at IS NULL)";
        let key = (Text(new.approval.session_id), new.run, &new.approval.tool_use_id, new.turn);
        Ok(self.connection.prepare_cached(sql)?.query_row(key, |row| row.get(0))?)
    }
}
