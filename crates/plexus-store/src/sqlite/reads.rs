//! The reads of the store. Each is one statement on one connection, so it sees one snapshot. The statements are in `sql`.

use plexus_protocol::{Approval, ApprovalId, SessionId};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension, Params, Row};

use serde_json::Value;

use super::audit::Chain;
use super::columns::{Json, Text, Word, int};
use super::rows::SqliteRows;
use super::sql;
use crate::domain;
use crate::page::Page;
use crate::{
    ApprovalRow, BudgetRow, CallIds, CallRow, EventJson, EventRow, FeedColumns, FeedRow, FinishedRun,
    OldRecords, OpenFilter, PermitStream, Removable, RunKey, RunRow, SessionRow, SessionWithState,
    StoreError, Tally, TurnRow, TurnState, Verdict,
};

type Result<T, E = rusqlite::Error> = std::result::Result<T, E>;

pub(super) fn session(connection: &Connection, id: SessionId) -> Result<Option<SessionRow>> {
    one(connection, sql::SESSION, [Text(id)], session_row)
}

pub(super) fn sessions_named(connection: &Connection, name: &str) -> Result<Vec<SessionRow>> {
    all(connection, sql::SESSIONS_NAMED, [name], session_row)
}

pub(super) fn sessions(connection: &Connection) -> Result<Vec<SessionRow>> {
    all(connection, sql::SESSIONS, [], session_row)
}

pub(super) fn sessions_with_state(connection: &Connection) -> Result<Vec<SessionWithState>> {
    all(connection, sql::LIVING, [], |row| {
        let status: Option<Word<_>> = row.get("turn_status")?;
        let turn = match status {
            Some(Word(status)) => Some(TurnState {
                status,
                progress: row.get::<_, Json<_>>("turn_progress")?.0,
                started_at: row.get("turn_started_at")?,
            }),
            None => None,
        };
        Ok(SessionWithState {
            row: session_row(row)?,
            turn,
            open: row.get::<_, Json<_>>("open")?.0,
            calls: row.get::<_, Json<_>>("unfinished")?.0,
            budget: row.get::<_, Json<_>>("budget")?.0,
            last_event_at: row.get("last_event_at")?,
        })
    })
}

pub(super) fn newest_sessions(connection: &Connection, limit: u64) -> Result<Vec<SessionRow>> {
    all(connection, sql::NEWEST_SESSIONS, [int(limit)], session_row)
}

pub(super) fn budget(connection: &Connection, session: SessionId) -> Result<Vec<BudgetRow>, StoreError> {
    let _snapshot = connection.unchecked_transaction()?;
    domain::budgets::drawn_on(&SqliteRows::new(connection, &mut Chain::default()), session)
}

pub(super) fn run(connection: &Connection, key: RunKey) -> Result<Option<RunRow>> {
    one(connection, sql::RUN, (Text(key.session), key.run), run_row)
}

pub(super) fn open_runs(connection: &Connection) -> Result<Vec<RunRow>> {
    all(connection, sql::OPEN_RUNS, [], run_row)
}

pub(super) fn run_of_token(connection: &Connection, token_hash: &str) -> Result<Option<RunRow>> {
    one(connection, sql::RUN_OF_TOKEN, [token_hash], run_row)
}

pub(super) fn turn(connection: &Connection, session: SessionId, turn: u64) -> Result<Option<TurnRow>> {
    one(connection, sql::TURN, (Text(session), int(turn)), turn_row)
}

pub(super) fn events(
    connection: &Connection,
    session: SessionId,
    turn: u64,
    from: u64,
    limit: u64,
) -> Result<Vec<EventRow>> {
    let mut statement = connection.prepare_cached(sql::EVENTS)?;
    let mut rows = statement.query((Text(session), int(turn), int(from), int(limit)))?;
    let mut page = Page::new();
    while let Some(row) = rows.next()? {
        let text = row.get_ref("event")?.as_str()?;
        if !page.has_room_for(text.len()) {
            break;
        }
        let event = EventJson::stored(text).map_err(FromSqlError::other)?;
        page.push(EventRow { session, turn, seq: row.get("seq")?, event, at: row.get("at")? });
    }
    Ok(page.rows())
}

pub(super) fn event_count(connection: &Connection, session: SessionId, turn: u64) -> Result<u64> {
    connection.prepare_cached(sql::EVENT_COUNT)?.query_row((Text(session), int(turn)), |row| row.get(0))
}

pub(super) fn approval(connection: &Connection, id: ApprovalId) -> Result<Option<ApprovalRow>> {
    one(connection, sql::APPROVAL, [Text(id)], approval_row)
}

pub(super) fn open_approvals(connection: &Connection, which: &OpenFilter) -> Result<Vec<ApprovalRow>> {
    match which {
        OpenFilter::All => all(connection, sql::OPEN_APPROVALS, [], approval_row),
        OpenFilter::OfSession(id) => {
            all(connection, sql::OPEN_APPROVALS_OF_SESSION, [Text(id)], approval_row)
        }
        OpenFilter::AskedOf(key) => all(connection, sql::OPEN_APPROVALS_ASKED_OF, [key], approval_row),
    }
}

pub(super) fn approvals_without_result(connection: &Connection, run: RunKey) -> Result<Vec<ApprovalRow>> {
    all(connection, sql::LIVING_APPROVALS, (Text(run.session), run.run), approval_row)
}

pub(super) fn calls_without_result(connection: &Connection, key: RunKey) -> Result<Vec<CallRow>> {
    all(connection, sql::LIVING_CALLS, (Text(key.session), key.run), |row| {
        Ok(CallRow {
            key,
            turn: row.get("turn")?,
            tool_use_id: row.get("tool_use_id")?,
            tool_name: row.get("tool_name")?,
            digest: row.get("digest")?,
            request_id: row.get("request_id")?,
            verdict: Verdict::from_stored(row.get::<_, Json<_>>("verdict")?.0),
            summary: row.get("summary")?,
        })
    })
}

pub(super) fn feed(connection: &Connection, to: &str, after: u64, limit: u64) -> Result<Vec<FeedRow>> {
    all(connection, sql::FEED, (to, int(after), int(limit)), feed_row)
}

pub(super) fn feed_of_all(connection: &Connection, after: u64, limit: u64) -> Result<Vec<FeedRow>> {
    all(connection, sql::FEED_OF_ALL, (int(after), int(limit)), feed_row)
}

fn feed_row(row: &Row<'_>) -> Result<FeedRow> {
    let columns = FeedColumns {
        kind: row.get::<_, Word<_>>("kind")?.0,
        approval: row.get::<_, Option<Text<_>>>("approval")?.map(|id| id.0),
        turn: row.get("turn")?,
        data: row.get::<_, Json<_>>("data")?.0,
    };
    Ok(FeedRow {
        number: row.get("number")?,
        to: row.get("addressee")?,
        session: row.get::<_, Text<_>>("session")?.0,
        entry: columns.try_into().map_err(|why: &str| FromSqlError::Other(why.into()))?,
    })
}

pub(super) fn feed_head(connection: &Connection) -> Result<u64> {
    connection.prepare_cached(sql::FEED_HEAD)?.query_row([], |row| row.get(0))
}

pub(super) fn permit_stream(connection: &Connection, event_id: &str) -> Result<Option<PermitStream>> {
    one(connection, sql::PERMIT_STREAM, [event_id], |row| {
        Ok(PermitStream {
            event_id: row.get("event_id")?,
            key: RunKey { session: row.get::<_, Text<_>>("session")?.0, run: row.get("run")? },
            approval: row.get::<_, Text<_>>("approval")?.0,
            ids: CallIds {
                jsonrpc_id: row.get::<_, Json<_>>("jsonrpc_id")?.0,
                progress_token: row.get::<_, Option<Json<_>>>("progress_token")?.map(|token| token.0),
            },
        })
    })
}

pub(super) fn position(connection: &Connection, reader: &str, session: SessionId, turn: u64) -> Result<u64> {
    let position = one(connection, sql::POSITION, (reader, Text(session), int(turn)), |row| row.get(0))?;
    Ok(position.unwrap_or(0))
}

pub(super) fn tally(connection: &Connection) -> Result<Tally> {
    connection.prepare_cached(sql::TALLY)?.query_row([], |row| {
        Ok(Tally {
            sessions: row.get("sessions")?,
            open_approvals: row.get("open_approvals")?,
            oldest_open: row.get("oldest_open")?,
        })
    })
}

pub(super) fn old_records(
    connection: &Connection,
    which: OldRecords,
    before: u64,
    limit: u64,
) -> Result<Vec<Removable>> {
    let which_ones = (int(before), int(limit));
    match which {
        OldRecords::Events => all(connection, sql::OLD_TURNS, which_ones, |row| {
            Ok(Removable::Events { session: row.get::<_, Text<_>>(0)?.0, turn: row.get(1)? })
        }),
        OldRecords::Approvals => all(connection, sql::OLD_APPROVALS, which_ones, |row| {
            Ok(Removable::Approval(row.get::<_, Text<_>>(0)?.0))
        }),
        OldRecords::Calls => {
            all(connection, sql::OLD_CALLS, which_ones, |row| Ok(Removable::Call(row.get(0)?)))
        }
    }
}

pub(super) fn finished_runs(
    connection: &Connection,
    after: Option<FinishedRun>,
    limit: u64,
) -> Result<Vec<FinishedRun>> {
    let (ended_at, session, run) = match after {
        Some(FinishedRun { key, ended_at, .. }) => (int(ended_at), key.session.to_string(), key.run),
        None => (-1, String::new(), 0),
    };
    all(connection, sql::FINISHED_RUNS, (ended_at, session, run, int(limit)), |row| {
        Ok(FinishedRun {
            key: RunKey { session: row.get::<_, Text<_>>("session")?.0, run: row.get("run")? },
            ended_at: row.get("ended_at")?,
            session_deleted_at: row.get("deleted_at")?,
        })
    })
}

fn session_row(row: &Row<'_>) -> Result<SessionRow> {
    Ok(SessionRow {
        id: row.get::<_, Text<_>>("id")?.0,
        name: row.get::<_, Word<_>>("name")?.0,
        answers_to: row.get::<_, Json<_>>("answers_to")?.0,
        config: row.get::<_, Json<_>>("config")?.0,
        tree: row.get::<_, Text<_>>("tree")?.0,
        beginning: row.get::<_, Text<_>>("beginning")?.0,
        head: row.get::<_, Text<_>>("head")?.0,
        latest_turn: row.get("latest_turn")?,
        latest_run: row.get("latest_run")?,
        created_at: row.get("created_at")?,
        deleted_at: row.get("deleted_at")?,
        cost_usd: row.get("cost_usd")?,
        woken_to: row.get("woken_to")?,
        title: row.get("title")?,
        archived_at: row.get("archived_at")?,
    })
}

fn run_row(row: &Row<'_>) -> Result<RunRow> {
    Ok(RunRow {
        key: RunKey { session: row.get::<_, Text<_>>("session")?.0, run: row.get("run")? },
        state: row.get::<_, Word<_>>("state")?.0,
        // An unreadable identity is none: the run has no process that could be found.
        process: row
            .get::<_, Option<Json<Value>>>("process")?
            .and_then(|Json(it)| serde_json::from_value(it).ok()),
        journal_offset: row.get("journal_offset")?,
        created_at: row.get("created_at")?,
    })
}

fn turn_row(row: &Row<'_>) -> Result<TurnRow> {
    Ok(TurnRow {
        session: row.get::<_, Text<_>>("session")?.0,
        turn: row.get("turn")?,
        status: row.get::<_, Word<_>>("status")?.0,
        run: row.get("run")?,
        prompt: row.get("prompt")?,
        prompt_uuid: row.get("prompt_uuid")?,
        progress: row.get::<_, Json<_>>("progress")?.0,
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
        events: row.get::<_, Word<_>>("events")?.0,
        head: row.get::<_, Option<Text<_>>>("head")?.map(|head| head.0),
        cost_usd: row.get("cost_usd")?,
    })
}

fn approval_row(row: &Row<'_>) -> Result<ApprovalRow> {
    let question: Approval = row.get::<_, Json<_>>("question")?.0;
    Ok(ApprovalRow {
        approval: Approval {
            session_name: row.get::<_, Word<_>>("session_name")?.0,
            status: row.get::<_, Word<_>>("status")?.0,
            delivered_at: row.get("delivered_at")?,
            resolved_at: row.get("resolved_at")?,
            decision: row.get::<_, Option<Json<_>>>("decision")?.map(|decision| decision.0),
            ..question
        },
        run: row.get("run")?,
        turn: row.get("turn")?,
        channel: row.get::<_, Word<_>>("channel")?.0,
        request_id: row.get("request_id")?,
        number: row.get("number")?,
    })
}

pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    map: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(params, map).optional()
}

pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    map: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, map)?.collect()
}
