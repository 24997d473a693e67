//! `claudecode.event`: one event in full.

use std::sync::Arc;

use plexus_protocol::claudecode::{EventParams, EventResult};
use plexus_protocol::{Error, ErrorKind};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::housekeeping::check_kept;
use crate::hub::Method;
use crate::method::Audience;
use crate::view;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.event",
        "Returns one event in full, for events that poll shows truncated.",
        Audience::Agents,
        Needs::Read,
        event,
    )
    .repeatable()
}

async fn event(hub: Arc<Hub>, caller: Admitted, params: EventParams) -> Result<EventResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let turn = params.turn.unwrap_or(session.latest_turn);
    let row = hub.store().turn(session.id, turn).await.map_err(store_error)?;
    check_kept(row.as_ref())?;
    let found = hub.store().events(session.id, turn, params.seq, 1).await.map_err(store_error)?;
    match found.into_iter().find(|event| event.seq == params.seq) {
        Some(row) => {
            let shown = view::event(&row, usize::MAX);
            Ok(EventResult::Ok { turn, seq: shown.seq, event: shown.event, at: shown.at })
        }
        None => Err(Error::new(ErrorKind::EventNotFound, format!("turn {turn} has no event {}", params.seq))),
    }
}
