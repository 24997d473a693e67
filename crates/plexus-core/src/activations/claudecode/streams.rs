//! `claudecode.streams`: the turns in progress.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{NoParams, StreamView, StreamsResult};
use plexus_store::Open;

use crate::Hub;
use crate::access::{Admitted, Needs};
use crate::hub::store_error;
use crate::method::{Audience, Method};
use crate::view;

pub(super) fn method() -> Method {
    Method::new("claudecode.streams", "The turns in progress.", Audience::Programs, Needs::Read, streams)
        .repeatable()
}

async fn streams(hub: Arc<Hub>, caller: Admitted, _params: NoParams) -> Result<StreamsResult, Error> {
    let reader = caller.principal.key();
    let mut streams = Vec::new();
    for session in hub.visible_sessions(&caller).await? {
        let turn = hub.store().turn(session.id, session.latest_turn).await.map_err(store_error)?;
        let Some(turn) = turn.filter(|turn| turn.ended_at.is_none()) else { continue };
        let open = hub.store().open_approvals(Open::OfSession(session.id)).await.map_err(store_error)?;
        streams.push(StreamView {
            session_id: session.id,
            session_name: session.name,
            turn: turn.turn,
            status: view::status(Some(&turn), !open.is_empty()),
            attention: view::attention(Some(&turn), &open),
            total_events: hub.store().event_count(session.id, turn.turn).await.map_err(store_error)?,
            read_position: hub.store().position(&reader, session.id, turn.turn).await.map_err(store_error)?,
            started_at: turn.started_at,
        });
    }
    Ok(StreamsResult::Ok { streams })
}
