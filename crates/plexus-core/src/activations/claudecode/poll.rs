//! `claudecode.poll`: the events of a turn from a position on, and the open approvals.

use std::sync::Arc;
use std::time::Duration;

use plexus_protocol::claudecode::{PollParams, PollResult, Status};
use plexus_protocol::{Error, ErrorKind, MAX_BODY_BYTES, MAX_TEXT_BYTES};
use plexus_store::{Change, OpenFilter, SessionRow};
use tokio::time::{Instant, timeout_at};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::callers::names::Paths;
use crate::errors::store_error;
use crate::housekeeping::{check_kept, gone};
use crate::hub::Method;
use crate::method::Audience;
use crate::read_positions::ConfirmedPosition;
use crate::view;
use plexus_book::{Topic, next};

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 10_000;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.poll",
        "Returns the events of a session's turn since your last poll, its status and its open approvals.",
        Audience::Agents,
        Needs::Read,
        poll,
    )
    .repeatable()
}

/// The part of a turn to read.
pub(super) struct EventPage {
    pub(super) turn: u64,
    pub(super) from: u64,
    pub(super) limit: u64,
    pub(super) max_bytes: usize,
}

async fn poll(hub: Arc<Hub>, caller: Admitted, params: PollParams) -> Result<PollResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let mut signal = hub.commits().signals().subscribe(Topic::Session(session.id));
    let reader = caller.principal.key();
    let deadline = Instant::now() + Duration::from_millis(params.wait_ms.unwrap_or(0).min(86_400_000));
    let limit = match params.limit {
        Some(0) => return Err(Error::invalid("limit", "must be at least 1")),
        limit => limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT),
    };
    let max_bytes =
        params.max_bytes.map_or(MAX_TEXT_BYTES, |bytes| (bytes as usize).clamp(16, MAX_BODY_BYTES));
    if params.from_seq.is_none()
        && let Some(ConfirmedPosition { turn, position }) = hub.positions().confirm_shown(&reader, session.id)
    {
        remember(&hub, reader.clone(), &session, turn, position);
    }
    loop {
        let turn = wanted_turn(&hub, &session, params.turn).await?;
        let from = match (params.from_seq, hub.positions().read(&reader, session.id, turn)) {
            (Some(from), _) | (None, Some(from)) => from,
            (None, None) => hub.store().position(&reader, session.id, turn).await.map_err(store_error)?,
        };
        let result = read(&hub, &caller, &session, &EventPage { turn, from, limit, max_bytes }).await?;
        let PollResult::Ok { status, events, read_position, .. } = &result;
        let busy = matches!(status, Status::Running | Status::AwaitingPermission | Status::Idle);
        let waited = Instant::now() >= deadline;
        if !events.is_empty() || !busy || waited {
            if params.from_seq.is_none() {
                hub.positions().shown(reader, session.id, turn, from, *read_position);
            }
            return Ok(result);
        }
        // A timeout is not an error: the next iteration returns what is available.
        let _ = timeout_at(deadline, next(&mut signal)).await;
    }
}

async fn wanted_turn(hub: &Hub, session: &SessionRow, wanted: Option<u64>) -> Result<u64, Error> {
    let row = hub.store().session(session.id).await.map_err(store_error)?;
    let latest = row.map_or(session.latest_turn, |row| row.latest_turn);
    match wanted {
        Some(turn) if turn == 0 || turn > latest => Err(Error::new(
            ErrorKind::TurnNotFound,
            format!("turn {turn} does not exist; the latest is {latest}"),
        )),
        wanted => Ok(wanted.unwrap_or(latest)),
    }
}

/// Reads part of a turn in its current state.
pub(super) async fn read(
    hub: &Hub,
    caller: &Admitted,
    session: &SessionRow,
    page: &EventPage,
) -> Result<PollResult, Error> {
    let EventPage { turn, from, limit, max_bytes } = *page;
    // The order of these reads matters. A turn that is read as finished comes with all its events, and an event that
    // announces an approval comes with that approval.
    let row = hub.store().turn(session.id, turn).await.map_err(store_error)?;
    check_kept(row.as_ref())?;
    let events = hub.store().events(session.id, turn, from, limit).await.map_err(store_error)?;
    let total_events = hub.store().event_count(session.id, turn).await.map_err(store_error)?;
    // A finished turn has events from the first one on. If they are missing, they are being deleted concurrently.
    let over = row.as_ref().is_some_and(|row| row.ended_at.is_some());
    if over && (total_events == 0 || events.first().is_some_and(|first| first.seq > from)) {
        return Err(gone(turn));
    }
    let open = hub.store().open_approvals(OpenFilter::OfSession(session.id)).await.map_err(store_error)?;
    let of_turn = open.iter().filter(|row| row.turn == turn);
    let awaiting: Vec<_> = of_turn.map(|row| row.approval.kind).collect();
    let attention = view::attention(
        row.as_ref().map(|row| (row.status, &row.progress)),
        open.iter().map(|row| row.approval.kind),
    );
    let paths = Paths::of(hub.store(), &caller.principal);
    let pending_approvals =
        view::approvals(open, paths, max_bytes, caller.reader()).await.map_err(store_error)?;
    let read_position = events.last().map_or(from, |last| last.seq + 1);
    Ok(PollResult::Ok {
        status: view::status(row.as_ref().map(|row| row.status), &awaiting),
        attention,
        turn,
        events: events.into_iter().map(|event| view::event(event, max_bytes)).collect(),
        pending_approvals,
        read_position,
        total_events,
        has_more: read_position < total_events,
    })
}

/// Stores the reader's position in the background. If the hub dies first, the reader sees the same events again.
fn remember(hub: &Arc<Hub>, reader: String, session: &SessionRow, turn: u64, position: u64) {
    let (hub, session) = (Arc::clone(hub), session.id);
    let tasks = hub.tasks().clone();
    tasks.spawn(async move {
        if let Err(error) = hub.commit(vec![Change::Position { reader, session, turn, position }]).await {
            tracing::debug!(%error, "cannot store a read position");
        }
    });
}
