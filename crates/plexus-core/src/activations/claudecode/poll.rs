//! `claudecode.poll`: the events of a turn from a position on, and the open approvals. An agent that continues at its last position gets
//! only what is new to it; `poll_news` selects that.

use std::sync::Arc;
use std::time::Duration;

use plexus_protocol::claudecode::{PollNews, PollParams, PollResult, Status};
use plexus_protocol::{
    Approval, Attention, Decider, Error, ErrorKind, MAX_BODY_BYTES, MAX_TEXT_BYTES, NumberedEvent,
};
use plexus_store::{Change, OpenFilter, SessionRow};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use super::poll_news::{self, Weight};
use crate::Hub;
use crate::callers::access::{self, Admitted, Needs, Reader};
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
pub(super) struct EventRange {
    pub(super) turn: u64,
    pub(super) from: u64,
    pub(super) limit: u64,
    pub(super) max_bytes: usize,
}

/// A part of a turn, as it is stored, with the state of the turn.
pub(super) struct EventPage {
    pub(super) status: Status,
    pub(super) turn: u64,
    pub(super) events: Vec<NumberedEvent>,
    /// The length at which the texts of the events are truncated.
    pub(super) max_bytes: usize,
    pub(super) attention: Vec<Attention>,
    pub(super) pending_approvals: Vec<Approval>,
    pub(super) read_position: u64,
    pub(super) total_events: u64,
}

/// The result for this caller.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum PollReply {
    Whole(PollResult),
    News(PollNews),
}

/// The events that a poll returns.
enum Wanted {
    All,
    /// Those that are new to this agent.
    New(Decider),
}

async fn poll(hub: Arc<Hub>, caller: Admitted, params: PollParams) -> Result<PollReply, Error> {
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
    let wanted = match (caller.reader(), params.from_seq) {
        (Reader::Agent, None) => Wanted::New(Decider::from(&caller.principal)),
        (Reader::Person, _) | (_, Some(_)) => Wanted::All,
    };
    let mut skipped = ConfirmedPosition { turn: 0, position: 0 };
    let mut chosen_turn = params.turn;
    loop {
        let turn = wanted_turn(&hub, &session, chosen_turn).await?;
        let confirmed = match (params.from_seq, hub.positions().read(&reader, session.id, turn)) {
            (Some(from), _) | (None, Some(from)) => from,
            (None, None) => hub.store().position(&reader, session.id, turn).await.map_err(store_error)?,
        };
        let from = if skipped.turn == turn { confirmed.max(skipped.position) } else { confirmed };
        let page = read(&hub, &caller, &session, &EventRange { turn, from, limit, max_bytes }).await?;
        let busy = matches!(page.status, Status::Running | Status::AwaitingPermission | Status::Idle);
        let weight = match &wanted {
            Wanted::All if page.events.is_empty() => Weight::Nothing,
            Wanted::All => Weight::News,
            Wanted::New(caller) => poll_news::weight(&page.events, caller),
        };
        let position = page.read_position;
        let is_full = from < position && position < page.total_events;
        if weight == Weight::Nothing && is_full {
            // A later page may have news.
            skipped = ConfirmedPosition { turn, position };
            continue;
        }
        if weight == Weight::News || is_full || !busy || Instant::now() >= deadline {
            if params.from_seq.is_none() {
                hub.positions().shown(reader, session.id, turn, confirmed, position);
            }
            return Ok(match wanted {
                Wanted::All => PollReply::Whole(whole(page)),
                Wanted::New(caller) => PollReply::News(poll_news::news(page, &caller)),
            });
        }
        if weight != Weight::Nothing {
            // Events of this turn wait to be returned. Another turn may start meanwhile.
            chosen_turn = Some(turn);
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
    range: &EventRange,
) -> Result<EventPage, Error> {
    let EventRange { turn, from, limit, max_bytes } = *range;
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
    Ok(EventPage {
        status: view::status(row.as_ref().map(|row| row.status), &awaiting),
        turn,
        events: events.iter().map(view::stored_event).collect(),
        max_bytes,
        attention,
        pending_approvals,
        read_position,
        total_events,
    })
}

/// Everything in a page.
pub(super) fn whole(page: EventPage) -> PollResult {
    let EventPage { max_bytes, read_position, total_events, .. } = page;
    PollResult::Ok {
        status: page.status,
        turn: page.turn,
        events: page.events.into_iter().map(|event| view::shortened_event(event, max_bytes)).collect(),
        attention: page.attention,
        pending_approvals: page.pending_approvals,
        read_position,
        total_events,
        has_more: read_position < total_events,
    }
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
