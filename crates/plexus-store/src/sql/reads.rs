//! The reads of the store. Each sees one snapshot: it is one statement, or a transaction. The statements are in `statements`.

use std::collections::HashMap;
use std::ops::ControlFlow;

use plexus_protocol::{Approval, ApprovalId, ApprovalKind, AskedOf, HostName, SessionId, UnixSeconds};
use serde::Deserialize;

use serde_json::Value;

use super::columns::{Json, Text, Word, int};
use super::known::Known;
use super::rows::SqlRows;
use super::{ColumnRef, Database, Params, Row, statements};
use crate::domain;
use crate::page::Page;
use crate::rows::Stored;
use crate::{
    ApprovalRow, BudgetRow, CallIds, CallRow, EventJson, EventRow, FeedColumns, FeedRow, FinishedRun,
    OldRecords, OpenCall, OpenFilter, PermitStream, Removable, RunKey, RunRow, SessionRow, SessionWithState,
    StoreError, Tally, TurnRow, TurnState, TurnStatus, UnfinishedCall, Verdict,
};

pub(crate) fn session(database: &dyn Database, id: SessionId) -> Stored<Option<SessionRow>> {
    one_readable(database, statements::SESSION, [Text(id)], session_row)
}

/// The first row of a table to which several hosts contribute. One that cannot be read is missing here as in the lists, so that it stops no task.
fn one_readable<T>(
    database: &dyn Database,
    sql: &'static str,
    params: impl Params,
    map: impl FnMut(&Row<'_>) -> Stored<T>,
) -> Stored<Option<T>> {
    Ok(database.readable(database.one(sql, params, map))?.flatten())
}

pub(crate) fn sessions_named(database: &dyn Database, name: &str) -> Stored<Vec<SessionRow>> {
    database.all(statements::SESSIONS_NAMED, [name], session_row)
}

pub(crate) fn sessions(database: &dyn Database) -> Stored<Vec<SessionRow>> {
    database.all(statements::SESSIONS, (), session_row)
}

/// All sessions that are not deleted, and what they do.
pub(crate) fn sessions_with_state(database: &dyn Database) -> Stored<Vec<SessionWithState>> {
    let _snapshot = database.snapshot()?;
    let mut sessions = database.all(statements::SESSIONS_WITH_TURN, (), session_with_turn)?;
    let place: HashMap<SessionId, usize> =
        sessions.iter().enumerate().map(|(i, session)| (session.row.id, i)).collect();
    let mut with = |row: &Row<'_>, add: &mut dyn FnMut(&mut SessionWithState) -> Stored<()>| {
        let id: Stored<Text<SessionId>> = row.get("session");
        database.readable(id.and_then(|Text(id)| {
            let session = place.get(&id).and_then(|i| sessions.get_mut(*i));
            session.map_or(Ok(()), &mut *add)
        }))?;
        Ok(ControlFlow::Continue(()))
    };
    database.each(statements::OPEN_CALLS, (), |row| {
        with(row, &mut |session| {
            let Json(Question { kind, tool_name, asked_of }) = row.get("question")?;
            session.open.push(OpenCall { kind, tool_name, tool_use_id: row.get("tool_use_id")?, asked_of });
            Ok(())
        })
    })?;
    database.each(statements::BUDGETS, (), |row| {
        with(row, &mut |session| {
            session.budget.push(BudgetRow {
                session: session.row.id,
                limit: row.get::<Word<_>>("kind")?.0,
                granted: row.get("granted")?,
                own: row.get("own")?,
                below: row.get("below")?,
                used: row.get("used")?,
            });
            Ok(())
        })
    })?;
    let is_running = |session: &&mut SessionWithState| {
        session.turn.as_ref().is_some_and(|turn| turn.status == TurnStatus::Running)
    };
    for session in sessions.iter_mut().filter(is_running) {
        let SessionRow { id, latest_run, latest_turn, .. } = &session.row;
        let which = (Text(id), latest_run, int(*latest_turn), SessionWithState::MAX_CALLS);
        session.calls = database.all(statements::UNFINISHED_CALLS, which, |row| {
            Ok(UnfinishedCall {
                tool_use_id: row.get("tool_use_id")?,
                tool_name: row.get("tool_name")?,
                summary: row.get("summary")?,
            })
        })?;
    }
    Ok(sessions)
}

/// The part of a question that the list of sessions shows. Its input, which may be large, is skipped.
#[derive(Deserialize)]
struct Question {
    kind: ApprovalKind,
    tool_name: String,
    asked_of: AskedOf,
}

fn session_with_turn(row: &Row<'_>) -> Stored<SessionWithState> {
    let status: Option<Word<_>> = row.get("turn_status")?;
    let turn = match status {
        Some(Word(status)) => Some(TurnState {
            status,
            progress: row.get::<Json<_>>("turn_progress")?.0,
            started_at: row.get("turn_started_at")?,
        }),
        None => None,
    };
    Ok(SessionWithState {
        row: session_row(row)?,
        turn,
        open: Vec::new(),
        calls: Vec::new(),
        budget: Vec::new(),
        last_event_at: row.get("last_event_at")?,
    })
}

pub(crate) fn newest_sessions(database: &dyn Database, limit: u64) -> Stored<Vec<SessionRow>> {
    database.all(statements::NEWEST_SESSIONS, [int(limit)], session_row)
}

pub(crate) fn budget(database: &dyn Database, session: SessionId) -> Stored<Vec<BudgetRow>> {
    let _snapshot = database.snapshot()?;
    domain::budgets::drawn_on(&SqlRows::new(database, &mut Known::default()), session)
}

pub(crate) fn run(database: &dyn Database, key: RunKey) -> Stored<Option<RunRow>> {
    database.one(statements::RUN, (Text(key.session), key.run), run_row)
}

pub(crate) fn open_runs(database: &dyn Database, host: Option<&HostName>) -> Stored<Vec<RunRow>> {
    database.all(statements::OPEN_RUNS, [host.map(HostName::as_str)], run_row)
}

pub(crate) fn run_of_token(
    database: &dyn Database,
    token_hash: &str,
    host: Option<&HostName>,
) -> Stored<Option<RunRow>> {
    match (host, &database.dialect().hosts) {
        (Some(host), Some(hosts)) => database.one(hosts.run_of_token, (host.as_str(), token_hash), run_row),
        _ => database.one(statements::RUN_OF_TOKEN, [token_hash], run_row),
    }
}

pub(crate) fn turn(database: &dyn Database, session: SessionId, turn: u64) -> Stored<Option<TurnRow>> {
    database.one(statements::TURN, (Text(session), int(turn)), turn_row)
}

pub(crate) fn events(
    database: &dyn Database,
    session: SessionId,
    turn: u64,
    from: u64,
    limit: u64,
) -> Stored<Vec<EventRow>> {
    let mut page = Page::new();
    database.each(statements::EVENTS, (Text(session), int(turn), int(from), int(limit)), |row| {
        let text = row.text("event")?;
        if !page.has_room_for(text.len()) {
            return Ok(ControlFlow::Break(()));
        }
        let event = EventJson::stored(&text)
            .map_err(|error| ColumnRef::from("event").unreadable(&error.to_string()))?;
        page.push(EventRow { session, turn, seq: row.get("seq")?, event, at: row.get("at")? });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(page.rows())
}

pub(crate) fn event_count(database: &dyn Database, session: SessionId, turn: u64) -> Stored<u64> {
    database.value(database.dialect().event_count, (Text(session), int(turn)))
}

pub(crate) fn approval(database: &dyn Database, id: ApprovalId) -> Stored<Option<ApprovalRow>> {
    one_readable(database, statements::APPROVAL, [Text(id)], approval_row)
}

pub(crate) fn open_approvals(database: &dyn Database, which: &OpenFilter) -> Stored<Vec<ApprovalRow>> {
    match which {
        OpenFilter::All => database.all(statements::OPEN_APPROVALS, (), approval_row),
        OpenFilter::OfSession(id) => {
            database.all(statements::OPEN_APPROVALS_OF_SESSION, [Text(id)], approval_row)
        }
        OpenFilter::AskedOf(key) => database.all(statements::OPEN_APPROVALS_ASKED_OF, [key], approval_row),
    }
}

pub(crate) fn approvals_without_result(database: &dyn Database, run: RunKey) -> Stored<Vec<ApprovalRow>> {
    database.all(statements::LIVING_APPROVALS, (Text(run.session), run.run), approval_row)
}

pub(crate) fn calls_without_result(database: &dyn Database, key: RunKey) -> Stored<Vec<CallRow>> {
    database.all(statements::LIVING_CALLS, (Text(key.session), key.run), |row| {
        Ok(CallRow {
            key,
            turn: row.get("turn")?,
            tool_use_id: row.get("tool_use_id")?,
            tool_name: row.get("tool_name")?,
            digest: row.get("digest")?,
            request_id: row.get("request_id")?,
            verdict: Verdict::from_stored(row.get::<Json<_>>("verdict")?.0),
            summary: row.get("summary")?,
        })
    })
}

pub(crate) fn feed(database: &dyn Database, to: &str, after: u64, limit: u64) -> Stored<Vec<FeedRow>> {
    feed_page(database, after, limit, |after, limit| (statements::FEED, (to, after, limit)))
}

pub(crate) fn feed_of_all(database: &dyn Database, after: u64, limit: u64) -> Stored<Vec<FeedRow>> {
    feed_page(database, after, limit, |after, limit| (statements::FEED_OF_ALL, (after, limit)))
}

/// The first `limit` entries that can be read. Entries that cannot be read end no page early: readers would take it for the end of the feed.
fn feed_page<P: Params>(
    database: &dyn Database,
    after: u64,
    limit: u64,
    statement: impl Fn(i64, i64) -> (&'static str, P),
) -> Stored<Vec<FeedRow>> {
    let (mut found, mut last) = (Vec::new(), after);
    loop {
        let wanted = limit.saturating_sub(found.len() as u64);
        let mut rows = 0;
        let (sql, params) = statement(int(last), int(wanted));
        database.each(sql, params, |row| {
            (rows, last) = (rows + 1, row.get("number")?);
            found.extend(database.readable(feed_row(row))?);
            Ok(ControlFlow::Continue(()))
        })?;
        if rows < wanted || found.len() as u64 >= limit {
            return Ok(found);
        }
    }
}

pub(crate) fn feed_approvals(
    database: &dyn Database,
    to: Option<&str>,
    after: u64,
    upto: u64,
) -> Stored<Vec<ApprovalRow>> {
    let mut page = Page::new();
    let mut add = |row: &Row<'_>| {
        if !page.has_room_for(row.text("question")?.len()) {
            return Ok(ControlFlow::Break(()));
        }
        database.readable(approval_row(row))?.into_iter().for_each(|row| page.push(row));
        Ok(ControlFlow::Continue(()))
    };
    let (after, upto) = (int(after), int(upto));
    match to {
        Some(to) => database.each(statements::FEED_APPROVALS, (to, after, upto), &mut add)?,
        None => database.each(statements::FEED_APPROVALS_OF_ALL, (after, upto), &mut add)?,
    }
    Ok(page.rows())
}

fn feed_row(row: &Row<'_>) -> Stored<FeedRow> {
    let columns = FeedColumns {
        kind: row.get::<Word<_>>("kind")?.0,
        approval: row.get::<Option<Text<_>>>("approval")?.map(|id| id.0),
        turn: row.get("turn")?,
        data: row.get::<Json<_>>("data")?.0,
    };
    Ok(FeedRow {
        number: row.get("number")?,
        to: row.get("addressee")?,
        session: row.get::<Text<_>>("session")?.0,
        entry: columns.try_into().map_err(|why: &str| ColumnRef::from("kind").unreadable(why))?,
    })
}

pub(crate) fn feed_head(database: &dyn Database) -> Stored<u64> {
    database.value(statements::FEED_HEAD, ())
}

pub(crate) fn permit_stream(database: &dyn Database, event_id: &str) -> Stored<Option<PermitStream>> {
    database.one(statements::PERMIT_STREAM, [event_id], |row| {
        Ok(PermitStream {
            event_id: row.get("event_id")?,
            key: RunKey { session: row.get::<Text<_>>("session")?.0, run: row.get("run")? },
            approval: row.get::<Text<_>>("approval")?.0,
            ids: CallIds {
                jsonrpc_id: row.get::<Json<_>>("jsonrpc_id")?.0,
                progress_token: row.get::<Option<Json<_>>>("progress_token")?.map(|token| token.0),
            },
        })
    })
}

pub(crate) fn position(database: &dyn Database, reader: &str, session: SessionId, turn: u64) -> Stored<u64> {
    let position =
        database.one(statements::POSITION, (reader, Text(session), int(turn)), |row| row.get(0))?;
    Ok(position.unwrap_or(0))
}

/// The time of a question. Its input, which may be large, is skipped.
#[derive(Deserialize)]
struct Asked {
    created_at: UnixSeconds,
}

pub(crate) fn tally(database: &dyn Database) -> Stored<Tally> {
    database.only(statements::TALLY, (), tally_of)
}

/// By host; empty for a database of a single machine.
pub(crate) fn tallies(database: &dyn Database) -> Stored<Vec<(HostName, Tally)>> {
    let Some(hosts) = &database.dialect().hosts else { return Ok(Vec::new()) };
    database.all(hosts.tallies, (), |row| {
        let host = HostName::try_from(row.get::<String>("name")?).map_err(StoreError::Unusable)?;
        Ok((host, tally_of(row)?))
    })
}

fn tally_of(row: &Row<'_>) -> Stored<Tally> {
    Ok(Tally {
        sessions: row.get("sessions")?,
        open_approvals: row.get("open_approvals")?,
        oldest_open: row.get::<Option<Json<Asked>>>("oldest_open")?.map(|Json(asked)| asked.created_at),
    })
}

pub(crate) fn old_records(
    database: &dyn Database,
    which: OldRecords,
    before: u64,
    limit: u64,
) -> Stored<Vec<Removable>> {
    let which_ones = (int(before), int(limit));
    match which {
        OldRecords::Events => database.all(statements::OLD_TURNS, which_ones, |row| {
            Ok(Removable::Events { session: row.get::<Text<_>>(0)?.0, turn: row.get(1)? })
        }),
        OldRecords::Approvals => database.all(statements::OLD_APPROVALS, which_ones, |row| {
            Ok(Removable::Approval(row.get::<Text<_>>(0)?.0))
        }),
        OldRecords::Calls => {
            database.all(statements::OLD_CALLS, which_ones, |row| Ok(Removable::Call(row.get(0)?)))
        }
    }
}

pub(crate) fn finished_runs(
    database: &dyn Database,
    host: Option<&HostName>,
    after: Option<FinishedRun>,
    limit: u64,
) -> Stored<Vec<FinishedRun>> {
    let (ended_at, session, run) = match after {
        Some(FinishedRun { key, ended_at, .. }) => (int(ended_at), key.session.to_string(), key.run),
        None => (-1, String::new(), 0),
    };
    database.all(
        statements::FINISHED_RUNS,
        (ended_at, session, run, int(limit), host.map(HostName::as_str)),
        |row| {
            Ok(FinishedRun {
                key: RunKey { session: row.get::<Text<_>>("session")?.0, run: row.get("run")? },
                ended_at: row.get("ended_at")?,
                session_deleted_at: row.get("deleted_at")?,
            })
        },
    )
}

fn session_row(row: &Row<'_>) -> Stored<SessionRow> {
    Ok(SessionRow {
        id: row.get::<Text<_>>("id")?.0,
        name: row.get::<Word<_>>("name")?.0,
        answers_to: row.get::<Json<_>>("answers_to")?.0,
        config: row.get::<Json<_>>("config")?.0,
        tree: row.get::<Text<_>>("tree")?.0,
        beginning: row.get::<Text<_>>("beginning")?.0,
        head: row.get::<Text<_>>("head")?.0,
        latest_turn: row.get("latest_turn")?,
        latest_run: row.get("latest_run")?,
        created_at: row.get("created_at")?,
        deleted_at: row.get("deleted_at")?,
        cost_usd: row.get("cost_usd")?,
        woken_to: row.get("woken_to")?,
        title: row.get("title")?,
        archived_at: row.get("archived_at")?,
        host: row.get::<Option<Word<_>>>("host")?.map(|host| host.0),
    })
}

fn run_row(row: &Row<'_>) -> Stored<RunRow> {
    Ok(RunRow {
        key: RunKey { session: row.get::<Text<_>>("session")?.0, run: row.get("run")? },
        state: row.get::<Word<_>>("state")?.0,
        // An unreadable identity is none: the run has no process that could be found.
        process: row
            .get::<Option<Json<Value>>>("process")?
            .and_then(|Json(it)| serde_json::from_value(it).ok()),
        journal_offset: row.get("journal_offset")?,
        created_at: row.get("created_at")?,
    })
}

fn turn_row(row: &Row<'_>) -> Stored<TurnRow> {
    Ok(TurnRow {
        session: row.get::<Text<_>>("session")?.0,
        turn: row.get("turn")?,
        status: row.get::<Word<_>>("status")?.0,
        run: row.get("run")?,
        prompt: row.get("prompt")?,
        prompt_uuid: row.get("prompt_uuid")?,
        progress: row.get::<Json<_>>("progress")?.0,
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
        events: row.get::<Word<_>>("events")?.0,
        head: row.get::<Option<Text<_>>>("head")?.map(|head| head.0),
        cost_usd: row.get("cost_usd")?,
    })
}

pub(super) fn approval_row(row: &Row<'_>) -> Stored<ApprovalRow> {
    let question: Approval = row.get::<Json<_>>("question")?.0;
    Ok(ApprovalRow {
        approval: Approval {
            session_name: row.get::<Word<_>>("session_name")?.0,
            host: row.get::<Option<Word<_>>>("host")?.map(|host| host.0),
            status: row.get::<Word<_>>("status")?.0,
            delivered_at: row.get("delivered_at")?,
            resolved_at: row.get("resolved_at")?,
            decision: row.get::<Option<Json<_>>>("decision")?.map(|decision| decision.0),
            ..question
        },
        answers_to: row.get::<Json<_>>("answers_to")?.0,
        run: row.get("run")?,
        turn: row.get("turn")?,
        channel: row.get::<Word<_>>("channel")?.0,
        request_id: row.get("request_id")?,
        number: row.get("number")?,
    })
}
