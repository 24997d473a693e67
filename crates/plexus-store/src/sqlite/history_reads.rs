//! Reads of the past. Turns and calls have an index by time that contains all that is read. The audit log has none, since each
//! index is one more page to write with every decision: its entries are in the order of time, so their numbers are searched.

use plexus_protocol::{ApprovalStatus, UnixSeconds};
use rusqlite::{Connection, OptionalExtension as _, Result, Row};

use super::columns::{Json, Text, Word, int};
use super::reads::all;
use super::sql;
use crate::domain::history::{StoredEnd, approval_span, audit_fact};
use crate::{ApprovalSpan, AuditBound, AuditFacts, CallCount, EndedTurn, Period, SessionParent};

/// By how much the clock may have been set back between two entries without entries being missed.
const CLOCK_SLACK_SECS: u64 = 60;

pub(super) fn ended_turns(connection: &Connection, period: Period, limit: u64) -> Result<Vec<EndedTurn>> {
    all(connection, sql::ENDED_TURNS, (int(period.from), int(period.to), int(limit)), |row| {
        Ok(EndedTurn {
            session: row.get::<_, Text<_>>("session")?.0,
            turn: row.get("turn")?,
            status: row.get::<_, Word<_>>("status")?.0,
            started_at: row.get("started_at")?,
            ended_at: row.get("ended_at")?,
            cost_usd: row.get("cost_usd")?,
        })
    })
}

pub(super) fn resolved_approvals(
    connection: &Connection,
    period: Period,
    limit: u64,
) -> Result<Vec<ApprovalSpan>> {
    let spans = (int(period.from), int(period.to), int(limit));
    let found = all(connection, sql::RESOLVED_SPANS, spans, |row| {
        let end = StoredEnd {
            at: row.get("resolved_at")?,
            status: row.get::<_, Word<ApprovalStatus>>("status")?.0,
            decision: row.get_ref("decision")?.as_str()?,
        };
        Ok(approval_span(row.get_ref("question")?.as_str()?, Some(&end)))
    })?;
    Ok(found.into_iter().flatten().collect())
}

pub(super) fn open_approval_spans(connection: &Connection) -> Result<Vec<ApprovalSpan>> {
    let found = all(connection, sql::OPEN_SPANS, [], |row| {
        Ok(approval_span(row.get_ref("question")?.as_str()?, None))
    })?;
    Ok(found.into_iter().flatten().collect())
}

pub(super) fn audit_facts(connection: &Connection, period: Period, bound: AuditBound) -> Result<AuditFacts> {
    let _snapshot = connection.unchecked_transaction()?;
    let first = first_entry_since(connection, period.from.saturating_sub(CLOCK_SLACK_SECS))?;
    let end = first_entry_since(connection, period.to.saturating_add(CLOCK_SLACK_SECS))?;
    let mut statement = connection.prepare_cached(sql::AUDIT_BY_NUMBER)?;
    let mut rows = statement.query((first, end))?;
    let mut found = AuditFacts { facts: Vec::new(), complete_from: None };
    let (mut entries, mut bytes, mut oldest) = (0, 0, period.to);
    while let Some(row) = rows.next()? {
        let at: UnixSeconds = row.get("at")?;
        if at < period.from || at >= period.to {
            continue;
        }
        let text = row.get_ref("entry")?.as_str()?;
        entries += 1;
        bytes += text.len() as u64;
        if entries > bound.entries || bytes > bound.bytes {
            found.complete_from = Some(oldest);
            break;
        }
        oldest = at;
        found.facts.extend(audit_fact(text));
    }
    Ok(found)
}

/// The number of the first entry at or after this time, or the number after the last one.
fn first_entry_since(connection: &Connection, at: UnixSeconds) -> Result<i64> {
    let (first, last): (Option<i64>, Option<i64>) =
        connection.prepare_cached(sql::AUDIT_NUMBERS)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(mut low), Some(last)) = (first, last) else { return Ok(0) };
    let mut high = last + 1;
    let mut time_of = connection.prepare_cached(sql::AUDIT_TIME)?;
    while low < high {
        let middle = low + (high - low) / 2;
        let found: Option<UnixSeconds> = time_of.query_row([middle], |row| row.get(0)).optional()?;
        // Numbers have no gaps; a log with a gap is reported by `audit.verify`.
        if found.is_some_and(|found| found >= at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

pub(super) fn call_counts(
    connection: &Connection,
    period: Period,
    part_secs: u64,
    limit: u64,
) -> Result<Vec<CallCount>> {
    let within = (int(period.from), int(period.to), int(part_secs.max(1)), int(limit));
    all(connection, sql::CALL_COUNTS, within, |row: &Row<'_>| {
        Ok(CallCount {
            part: row.get("part")?,
            session: row.get::<_, Text<_>>("session")?.0,
            calls: row.get("calls")?,
        })
    })
}

pub(super) fn session_parents(connection: &Connection) -> Result<Vec<SessionParent>> {
    all(connection, sql::SESSION_PARENTS, [], |row| {
        Ok(SessionParent {
            id: row.get::<_, Text<_>>("id")?.0,
            answers_to: row.get::<_, Json<_>>("answers_to")?.0,
        })
    })
}
