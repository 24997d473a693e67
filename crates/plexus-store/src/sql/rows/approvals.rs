//! Approvals, calls and permit streams in SQL.

use plexus_protocol::{ApprovalId, SessionId, UnixSeconds};

use super::super::columns::{Json, Text, Word, int};
use super::super::{reads, statements};
use super::SqlRows;
use super::turns::end_of_turn;
use crate::rows::{
    ApprovalAndCall, ApprovalRows, ApprovalUpdate, BeforeApproval, CallKey, PreviousAddressee, Stored,
    TurnKey,
};
use crate::{ApprovalRow, CallIds, CallRow, NewApproval, PermitStream, RunKey, Verdict};

impl ApprovalRows for SqlRows<'_> {
    fn approval(&self, id: ApprovalId) -> Stored<Option<ApprovalRow>> {
        reads::approval(self.database, id)
    }

    fn approval_and_call(&self, id: ApprovalId) -> Stored<Option<ApprovalAndCall>> {
        self.database.one(self.database.dialect().approval_and_call, [Text(id)], |row| {
            let verdict: Option<Json<_>> = row.get("verdict")?;
            Ok(ApprovalAndCall {
                row: reads::approval_row(row)?,
                verdict: verdict.map(|Json(verdict)| Verdict::from_stored(verdict)),
                next_event: row.get("next_event")?,
            })
        })
    }

    fn pending_approval_of(&self, session: SessionId, tool_use_id: &str) -> Stored<Option<ApprovalId>> {
        let key = (Text(session), tool_use_id);
        let found: Option<Text<_>> = self.database.one(statements::PENDING_OF_CALL, key, |row| row.get(0))?;
        Ok(found.map(|Text(id)| id))
    }

    fn has_pending_approval(&self, turn: TurnKey) -> Stored<bool> {
        self.value(statements::HAS_PENDING, (Text(turn.session), int(turn.turn)))
    }

    fn before_approval(&self, key: &CallKey<'_>, turn: u64) -> Stored<Option<BeforeApproval>> {
        let CallKey { run, tool_use_id } = *key;
        let columns = (Text(run.session), run.run, tool_use_id, int(turn));
        self.database.one(self.database.dialect().before_approval, columns, |row| {
            Ok(BeforeApproval {
                end: end_of_turn(row)?,
                key_is_held: row.get("key_is_held")?,
                is_archived: row.get("is_archived")?,
            })
        })
    }

    fn insert_approval(&mut self, new: &NewApproval, number: u64) -> Stored<()> {
        let NewApproval { approval, run, turn, channel, request_id } = new;
        self.write(
            "INSERT INTO approvals \
             (id, number, session, run, turn, tool_use_id, asked_of, channel, request_id, question) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            (
                Text(approval.id),
                number,
                Text(approval.session_id),
                run,
                turn,
                &approval.tool_use_id,
                approval.asked_of.key(),
                Word(channel),
                request_id,
                Json(approval),
            ),
        )
    }

    fn update_approval(&mut self, id: ApprovalId, update: ApprovalUpdate<'_>) -> Stored<()> {
        let id = Text(id);
        match update {
            ApprovalUpdate::Resolved { status, decision, at } => self.write(
                "UPDATE approvals SET status = ?2, decision = ?3, resolved_at = ?4 WHERE id = ?1",
                (id, Word(status), Json(decision), at),
            ),
            ApprovalUpdate::Asked { approval, number } => self.write(
                "UPDATE approvals SET asked_of = ?2, number = ?3, question = ?4 WHERE id = ?1",
                (id, approval.asked_of.key(), number, Json(approval)),
            ),
        }
    }

    fn mark_delivered(&mut self, id: ApprovalId, at: UnixSeconds) -> Stored<()> {
        let sql = "UPDATE approvals SET delivered_at = ?2 WHERE id = ?1 AND delivered_at IS NULL";
        self.write(sql, (Text(id), at))
    }

    fn delete_approval(&mut self, id: ApprovalId) -> Stored<bool> {
        self.write(statements::DELETE_PERMIT_STREAMS, [Text(id)])?;
        Ok(self.execute(statements::DELETE_APPROVAL, [Text(id)])? > 0)
    }

    fn previous_addressees(&self, approval: ApprovalId) -> Stored<Vec<String>> {
        self.database.all(statements::ASKED_BEFORE, [Text(approval)], |row| row.get(0))
    }

    fn insert_previous_addressee(&mut self, previous: &PreviousAddressee<'_>) -> Stored<()> {
        let PreviousAddressee { key, approval, number, may_still_decide } = previous;
        self.write(
            "INSERT INTO asked_before (addressee, approval, number, passed_over) VALUES (?1, ?2, ?3, ?4)",
            (key, Text(approval), number, may_still_decide),
        )
    }

    fn delete_previous_addressees(&mut self, approval: ApprovalId) -> Stored<()> {
        self.write("DELETE FROM asked_before WHERE approval = ?1", [Text(approval)])
    }

    fn verdict(&self, key: &CallKey<'_>) -> Stored<Option<Verdict>> {
        let key = (Text(key.run.session), key.run.run, key.tool_use_id);
        let found: Option<Json<_>> = self.database.one(statements::VERDICT, key, |row| row.get(0))?;
        Ok(found.map(|Json(verdict)| Verdict::from_stored(verdict)))
    }

    fn insert_call(&mut self, call: &CallRow, at: UnixSeconds) -> Stored<()> {
        let CallRow { key, turn, tool_use_id, tool_name, digest, request_id, verdict, summary } = call;
        self.write(
            "INSERT INTO calls \
             (session, run, turn, tool_use_id, tool_name, digest, request_id, verdict, at, summary) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            (
                Text(key.session),
                key.run,
                turn,
                tool_use_id,
                tool_name,
                digest,
                request_id,
                Json(verdict),
                at,
                summary,
            ),
        )
    }

    fn set_verdict(&mut self, key: &CallKey<'_>, verdict: &Verdict) -> Stored<()> {
        let key = (Text(key.run.session), key.run.run, key.tool_use_id, Json(verdict));
        self.write(statements::SET_VERDICT, key)
    }

    fn release_keys(&mut self, key: &CallKey<'_>, at: UnixSeconds) -> Stored<()> {
        for sql in [
            "UPDATE calls SET settled_at = ?4 \
             WHERE session = ?1 AND run = ?2 AND tool_use_id = ?3 AND settled_at IS NULL",
            "UPDATE approvals SET settled_at = ?4 \
             WHERE session = ?1 AND run = ?2 AND tool_use_id = ?3 AND settled_at IS NULL",
        ] {
            self.write(sql, (Text(key.run.session), key.run.run, key.tool_use_id, at))?;
        }
        Ok(())
    }

    fn run_of_call(&self, ordinal: u64) -> Stored<Option<RunKey>> {
        self.database.one(statements::RUN_OF_CALL, [int(ordinal)], |row| {
            Ok(RunKey { session: row.get::<Text<_>>(0)?.0, run: row.get(1)? })
        })
    }

    fn delete_call(&mut self, ordinal: u64) -> Stored<()> {
        self.write(statements::DELETE_CALL, [int(ordinal)])
    }

    fn insert_permit_stream(&mut self, stream: &PermitStream, at: UnixSeconds) -> Stored<()> {
        let PermitStream { event_id, key, approval, ids: CallIds { jsonrpc_id, progress_token } } = stream;
        self.write(
            "INSERT INTO permit_streams (event_id, session, run, approval, jsonrpc_id, progress_token, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (
                event_id,
                Text(key.session),
                key.run,
                Text(approval),
                Json(jsonrpc_id),
                progress_token.as_ref().map(Json),
                at,
            ),
        )
    }
}
