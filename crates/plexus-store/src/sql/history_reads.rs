//! Reads of the past. Turns and calls have an index by time that contains all that is read. The audit log has none, since each
//! index is one more page to write with every decision: its entries are in the order of time, so their numbers are searched.

use std::ops::ControlFlow;

use plexus_protocol::{ApprovalStatus, UnixSeconds};

use super::columns::{Json, Text, Word, int};
use super::{Database, Row, statements};
use crate::domain::history::{StoredEnd, approval_span, audit_fact};
use crate::rows::Stored;
use crate::{ApprovalSpan, AuditBound, AuditFacts, CallCount, EndedTurn, Period, SessionParent};

/// By how much the clock may have been set back between two entries without entries being missed.
const CLOCK_SLACK_SECS: u64 = 60;

pub(crate) fn ended_turns(database: &dyn Database, period: Period, limit: u64) -> Stored<Vec<EndedTurn>> {
    database.all(statements::ENDED_TURNS, (int(period.from), int(period.to), int(limit)), |row| {
        Ok(EndedTurn {
            session: row.get::<Text<_>>("session")?.0,
            turn: row.get("turn")?,
            status: row.get::<Word<_>>("status")?.0,
            started_at: row.get("started_at")?,
            ended_at: row.get("ended_at")?,
            cost_usd: row.get("cost_usd")?,
        })
    })
}

pub(crate) fn resolved_approvals(
    database: &dyn Database,
    period: Period,
    limit: u64,
) -> Stored<Vec<ApprovalSpan>> {
    let spans = (int(period.from), int(period.to), int(limit));
    let found = database.all(statements::RESOLVED_SPANS, spans, |row| {
        let decision = row.text("decision")?;
        let end = StoredEnd {
            at: row.get("resolved_at")?,
            status: row.get::<Word<ApprovalStatus>>("status")?.0,
            decision: &decision,
        };
        Ok(approval_span(&row.text("question")?, Some(&end)))
    })?;
    Ok(found.into_iter().flatten().collect())
}

pub(crate) fn open_approval_spans(database: &dyn Database) -> Stored<Vec<ApprovalSpan>> {
    let found =
        database.all(statements::OPEN_SPANS, (), |row| Ok(approval_span(&row.text("question")?, None)))?;
    Ok(found.into_iter().flatten().collect())
}

pub(crate) fn audit_facts(database: &dyn Database, period: Period, bound: AuditBound) -> Stored<AuditFacts> {
    let _snapshot = database.snapshot()?;
    let first = first_entry_since(database, period.from.saturating_sub(CLOCK_SLACK_SECS))?;
    let end = first_entry_since(database, period.to.saturating_add(CLOCK_SLACK_SECS))?;
    let mut found = AuditFacts { facts: Vec::new(), complete_from: None };
    let (mut entries, mut bytes, mut oldest) = (0, 0, period.to);
    // One more than the bound shows that there are more.
    let within = (first, end, int(period.from), int(period.to), int(bound.entries.saturating_add(1)));
    database.each(statements::AUDIT_BY_NUMBER, within, |row| {
        let at: UnixSeconds = row.get("at")?;
        let text = row.text("entry")?;
        entries += 1;
        bytes += text.len() as u64;
        if entries > bound.entries || bytes > bound.bytes {
            found.complete_from = Some(oldest);
            return Ok(ControlFlow::Break(()));
        }
        oldest = at;
        found.facts.extend(audit_fact(&text));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The number of the first entry at or after this time, or the number after the last one.
fn first_entry_since(database: &dyn Database, at: UnixSeconds) -> Stored<i64> {
    let (first, last): (Option<i64>, Option<i64>) =
        database.only(statements::AUDIT_NUMBERS, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(mut low), Some(last)) = (first, last) else { return Ok(0) };
    let mut high = last + 1;
    while low < high {
        let middle = low + (high - low) / 2;
        let found: Option<UnixSeconds> = database.one(statements::AUDIT_TIME, [middle], |row| row.get(0))?;
        // Numbers have no gaps; a log with a gap is reported by `audit.verify`.
        if found.is_some_and(|found| found >= at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

pub(crate) fn call_counts(
    database: &dyn Database,
    period: Period,
    part_secs: u64,
    limit: u64,
) -> Stored<Vec<CallCount>> {
    let within = (int(period.from), int(period.to), int(part_secs.max(1)), int(limit));
    database.all(statements::CALL_COUNTS, within, |row: &Row<'_>| {
        Ok(CallCount {
            part: row.get("part")?,
            session: row.get::<Text<_>>("session")?.0,
            calls: row.get("calls")?,
        })
    })
}

pub(crate) fn session_parents(database: &dyn Database) -> Stored<Vec<SessionParent>> {
    database.all(statements::SESSION_PARENTS, (), |row| {
        Ok(SessionParent { id: row.get::<Text<_>>("id")?.0, answers_to: row.get::<Json<_>>("answers_to")?.0 })
    })
}
