//! `claudecode.streams`: the turns in progress and, if requested, the last ones that have ended.

use std::sync::Arc;

use plexus_protocol::claudecode::{StreamView, StreamsParams, StreamsResult};
use plexus_protocol::{ApprovalKind, Error};
use plexus_store::{SessionWithState, TurnRow, TurnStatus};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;
use crate::tree::VisibleSession;
use crate::view;

/// The maximum number of ended turns per session.
const MAX_FINISHED: u64 = 20;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.streams",
        "Lists the turns in progress, and with `finished` also turns that have ended.",
        Audience::Programs,
        Needs::Read,
        streams,
    )
    .repeatable()
}

async fn streams(hub: Arc<Hub>, caller: Admitted, params: StreamsParams) -> Result<StreamsResult, Error> {
    let StreamsParams { session_id, name, finished } = params;
    let only = match (session_id, name.as_deref()) {
        (None, None) => None,
        (id, name) => Some(access::find_session(hub.store(), &caller, id, name).await?.id),
    };
    let most = if finished == Some(true) { MAX_FINISHED } else { 0 };
    let mut streams = Vec::new();
    for VisibleSession { session, path, .. } in access::visible_sessions(hub.store(), &caller).await? {
        if only.is_some_and(|only| only != session.row.id) {
            continue;
        }
        let latest = session.row.latest_turn;
        let running = session.turn.as_ref().is_some_and(|turn| turn.status == TurnStatus::Running);
        let first = latest.saturating_sub(most + u64::from(running)) + 1;
        for number in (first..=latest).rev() {
            let Some(turn) = hub.store().turn(session.row.id, number).await.map_err(store_error)? else {
                continue;
            };
            // It may have ended since.
            if most == 0 && turn.ended_at.is_some() {
                continue;
            }
            streams.push(stream(&hub, &caller, &session, &path, turn).await?);
        }
    }
    Ok(StreamsResult::Ok { streams })
}

async fn stream(
    hub: &Hub,
    caller: &Admitted,
    session: &SessionWithState,
    path: &str,
    turn: TurnRow,
) -> Result<StreamView, Error> {
    let (id, number) = (session.row.id, turn.turn);
    // Only the latest turn can have open approvals.
    let open = if number == session.row.latest_turn { session.open.as_slice() } else { &[] };
    let open: Vec<ApprovalKind> = open.iter().map(|open| open.kind).collect();
    Ok(StreamView {
        session_id: id,
        session_name: session.row.name.clone(),
        session_path: path.to_owned(),
        turn: number,
        status: view::status(Some(turn.status), &open),
        attention: view::attention(Some((turn.status, &turn.progress)), open.into_iter()),
        total_events: hub.store().event_count(id, number).await.map_err(store_error)?,
        read_position: hub
            .store()
            .position(&caller.principal.key(), id, number)
            .await
            .map_err(store_error)?,
        started_at: turn.started_at,
        ended_at: turn.ended_at,
    })
}
