//! `claudecode.streams`: the turns in progress.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{NoParams, StreamView, StreamsResult};
use plexus_store::TurnStatus;

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;
use crate::view;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.streams",
        "Lists the turns in progress.",
        Audience::Programs,
        Needs::Read,
        streams,
    )
    .repeatable()
}

async fn streams(hub: Arc<Hub>, caller: Admitted, _params: NoParams) -> Result<StreamsResult, Error> {
    let reader = caller.principal.key();
    let mut streams = Vec::new();
    for seen in access::visible_sessions(hub.store(), &caller).await? {
        let (session, open) = (seen.session.row, seen.session.open);
        let running = seen.session.turn.filter(|turn| turn.status == TurnStatus::Running);
        let (Some(state), turn) = (running, session.latest_turn) else { continue };
        streams.push(StreamView {
            session_id: session.id,
            session_name: session.name,
            turn,
            status: view::status(Some(state.status), &open),
            attention: view::attention(Some((state.status, &state.progress)), open.iter().copied()),
            total_events: hub.store().event_count(session.id, turn).await.map_err(store_error)?,
            read_position: hub.store().position(&reader, session.id, turn).await.map_err(store_error)?,
            started_at: state.started_at,
        });
    }
    Ok(StreamsResult::Ok { streams })
}
