//! `GET /events`: all that a page shows, on one connection: approvals, that something changed in any session, and the events of one
//! session that is looked at. It begins with `hello`, which says after which approval it goes on and what the caller may do.
//! A browser has few connections for one site, and a person many tabs.

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
use super::{Block, Teller, refused, response};
use crate::doors::Doors;

/// Where to begin, and which session to look at.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct From {
    after: Option<u64>,
    session: Option<String>,
    turn: Option<u64>,
    from_seq: Option<u64>,
}

/// The stream.
pub(crate) async fn get(
    State(doors): State<Doors>,
    Extension(principal): Extension<Principal>,
    Query(from): Query<From>,
) -> Response {
    match begin(&doors, principal, from).await {
        Ok(all) => response(All(all), &doors),
        Err(error) => refused(&error),
    }
}

type Part = Pin<Box<dyn Stream<Item = Result<Vec<Block>, Error>> + Send>>;

/// All parts of it, each read to its own end: what one gathers is not begun anew because another tells something.
async fn begin(doors: &Doors, principal: Principal, from: From) -> Result<SelectAll<Part>, Error> {
    let caller = || Caller::of(principal.clone(), Door::Http);
    let may = doors.hub.may(&principal);
    if may.is_empty() {
        return Err(Error::new(ErrorKind::Forbidden, "this is for whoever sees every session"));
    }
    let approvals = doors.hub.follow_approvals(caller(), from.after).await?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let hello = HelloFrame { cursor: approvals.after(), may, version };
    let mut parts = vec![once(Block::named("hello", &json!(hello))), named("approval", Approvals(approvals))];
    match doors.hub.follow_changes(caller()).await {
        Ok(changes) => parts.push(named("changed", Changes(changes))),
        // Who may only answer approvals is told of those.
        Err(error) if error.kind == ErrorKind::Forbidden => {}
        Err(error) => return Err(error),
    }
    if let Some(id) = from.session {
        let id: SessionId = id.parse().map_err(|_| Error::invalid("session", "is not a session's id"))?;
        let place = from.turn.map(|turn| EventCursor { turn, seq: from.from_seq.unwrap_or(0) });
        parts.push(match doors.hub.follow_session(caller(), id, place).await {
            Ok(follower) => {
                let events = named("session", Session(follower));
                Box::pin(events.map(|told| told.or_else(|error| of_session(error).map(|block| vec![block]))))
            }
            Err(error) => once(of_session(error)?),
        });
    }
    Ok(stream::select_all(parts))
}

fn once(block: Block) -> Part {
    Box::pin(stream::iter([Ok(vec![block])]))
}

/// What a teller tells, under this name where it gives none.
fn named(name: &'static str, teller: impl Teller) -> Part {
    Box::pin(stream::unfold(Some(teller), move |teller| async move {
        let mut teller = teller?;
        Some(match teller.next().await {
            Ok(mut blocks) => {
                blocks.iter_mut().for_each(|block| block.name = block.name.or(Some(name)));
                (Ok(blocks), Some(teller))
            }
            Err(error) => (Err(error), None),
        })
    }))
}

/// What is told when this session cannot be followed for good: the page lets go of it. Of anything else it comes back.
fn of_session(error: Error) -> Result<Block, Error> {
    if !matches!(error.kind, ErrorKind::SessionNotFound | ErrorKind::Gone | ErrorKind::Forbidden) {
        return Err(error);
    }
    let mut data = error.to_object();
    data.insert("session".to_owned(), Value::Bool(true));
    Ok(Block::named("error", &Value::Object(data)))
}

struct All(SelectAll<Part>);

impl Teller for All {
    async fn next(&mut self) -> Result<Vec<Block>, Error> {
        match self.0.next().await {
            Some(told) => told,
            // The approvals go on for as long as the hub does.
            None => std::future::pending().await,
        }
    }
}
