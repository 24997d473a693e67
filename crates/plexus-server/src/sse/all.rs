//! `GET /events`: everything that a page shows, on one connection: approvals, a signal that any session changed, and
//! the events of one selected session. It starts with `hello`, which contains the approval cursor and the rights of the
//! caller. One connection matters because a browser allows few per site, and a person opens many tabs.

use std::pin::Pin;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use futures::Stream;
use futures::stream::{self, SelectAll, StreamExt as _};
use plexus_core::{Caller, Door, EventCursor};
use plexus_protocol::stream::HelloFrame;
use plexus_protocol::{Error, ErrorKind, Principal, SessionId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::approvals::Approvals;
use super::changes::Changes;
use super::sessions::Session;
use super::{Block, EventSource, error_response, response};
use crate::routes::Doors;

/// The start position, and the selected session.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StreamQuery {
    after: Option<u64>,
    session: Option<String>,
    turn: Option<u64>,
    from_seq: Option<u64>,
}

/// Serves the stream.
pub(crate) async fn get(
    State(doors): State<Doors>,
    Extension(principal): Extension<Principal>,
    Query(from): Query<StreamQuery>,
) -> Response {
    match start(&doors, principal, from).await {
        Ok(all) => response(All(all), &doors),
        Err(error) => error_response(&error),
    }
}

type PartStream = Pin<Box<dyn Stream<Item = Result<Vec<Block>, Error>> + Send>>;

/// Starts all parts. Each is polled to completion, so an event of one part does not restart the batch of another.
async fn start(
    doors: &Doors,
    principal: Principal,
    from: StreamQuery,
) -> Result<SelectAll<PartStream>, Error> {
    let caller = || Caller::of(principal.clone(), Door::Http);
    let may = doors.hub.may(&principal);
    if may.is_empty() {
        return Err(Error::new(
            ErrorKind::Forbidden,
            "only callers that may read every session can use this stream",
        ));
    }
    let approvals = doors.hub.follow_approvals(caller(), from.after).await?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let hello = HelloFrame { cursor: approvals.after(), may, version };
    let mut parts = vec![once(Block::named("hello", &json!(hello))), named("approval", Approvals(approvals))];
    match doors.hub.follow_changes(caller()).await {
        Ok(changes) => parts.push(named("changed", Changes(changes))),
        // A caller that may only answer approvals receives only those.
        Err(error) if error.kind == ErrorKind::Forbidden => {}
        Err(error) => return Err(error),
    }
    if let Some(id) = from.session {
        let id: SessionId =
            id.parse().map_err(|_| Error::invalid("session", "must be the id of a session"))?;
        let cursor = from.turn.map(|turn| EventCursor { turn, seq: from.from_seq.unwrap_or(0) });
        parts.push(match doors.hub.follow_session(caller(), id, cursor).await {
            Ok(follower) => {
                let events = named("session", Session(follower));
                Box::pin(
                    events.map(|next| next.or_else(|error| session_error(error).map(|block| vec![block]))),
                )
            }
            Err(error) => once(session_error(error)?),
        });
    }
    Ok(stream::select_all(parts))
}

fn once(block: Block) -> PartStream {
    Box::pin(stream::iter([Ok(vec![block])]))
}

/// The events of a source, under this name unless they have one.
fn named(name: &'static str, source: impl EventSource) -> PartStream {
    Box::pin(stream::unfold(Some(source), move |source| async move {
        let mut source = source?;
        Some(match source.next().await {
            Ok(mut blocks) => {
                blocks.iter_mut().for_each(|block| block.name = block.name.or(Some(name)));
                (Ok(blocks), Some(source))
            }
            Err(error) => (Err(error), None),
        })
    }))
}

/// The event for a session that cannot be followed any more: the page deselects it. After other errors it reconnects.
fn session_error(error: Error) -> Result<Block, Error> {
    if !matches!(error.kind, ErrorKind::SessionNotFound | ErrorKind::Gone | ErrorKind::Forbidden) {
        return Err(error);
    }
    let mut data = error.to_object();
    data.insert("session".to_owned(), Value::Bool(true));
    Ok(Block::named("error", &Value::Object(data)))
}

struct All(SelectAll<PartStream>);

impl EventSource for All {
    async fn next(&mut self) -> Result<Vec<Block>, Error> {
        match self.0.next().await {
            Some(next) => next,
            // The approvals continue as long as the hub serves.
            None => std::future::pending().await,
        }
    }
}
