//! `GET /sessions/{id}/events`: the events of a session. The event ids are `TURN-SEQ`. The stream replays from
//! `Last-Event-ID`, from `?turn=&from_seq=`, or from the start of the latest turn. It then continues live, across
//! turns.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::HeaderMap;
use plexus_core::{Caller, Door, EventCursor, SessionFollower, SessionUpdate};
use plexus_protocol::{Error, Principal, SessionId};
use serde::Deserialize;
use serde_json::json;

use super::{Block, Data, Teller, refused, response};
use crate::doors::Doors;

/// The start position.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct From {
    turn: Option<u64>,
    from_seq: Option<u64>,
}

/// Serves the stream.
pub(crate) async fn get(
    State(doors): State<Doors>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Response {
    let begun = async {
        let id: SessionId = id.parse().map_err(|_| Error::invalid("id", "must be the id of a session"))?;
        doors.hub.follow_session(Caller::of(principal, Door::Http), id, place(&headers, &from)?).await
    };
    match begun.await {
        Ok(follower) => response(Session(follower), &doors),
        Err(error) => refused(&error),
    }
}

fn place(headers: &HeaderMap, from: &From) -> Result<Option<EventCursor>, Error> {
    if let Some(last) = headers.get("last-event-id") {
        let wrong = || Error::invalid("Last-Event-ID", "must have the form TURN-SEQ");
        let (turn, seq) = last.to_str().ok().and_then(|last| last.split_once('-')).ok_or_else(wrong)?;
        let (turn, seq): (u64, u64) = turn.parse().ok().zip(seq.parse().ok()).ok_or_else(wrong)?;
        return Ok(Some(EventCursor { turn, seq: seq.saturating_add(1) }));
    }
    match (from.turn, from.from_seq) {
        (None, None) => Ok(None),
        (Some(turn), seq) => Ok(Some(EventCursor { turn, seq: seq.unwrap_or(0) })),
        (None, Some(_)) => Err(Error::invalid("from_seq", "only allowed with `turn`")),
    }
}

pub(super) struct Session(pub(super) SessionFollower);

impl Teller for Session {
    async fn next(&mut self) -> Result<Vec<Block>, Error> {
        Ok(match self.0.next().await? {
            SessionUpdate::Events(events) => events
                .into_iter()
                .map(|told| {
                    let EventCursor { turn, seq } = told.place;
                    Block { id: Some(format!("{turn}-{seq}")), name: None, data: Data::Shared(told) }
                })
                .collect(),
            SessionUpdate::Delta(delta) => vec![Block::named("delta", &json!(&*delta))],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_goes_on_after_the_last_event_it_saw() {
        let mut headers = HeaderMap::new();
        assert_eq!(place(&headers, &From::default()), Ok(None));
        let asked = From { turn: Some(2), from_seq: Some(5) };
        assert_eq!(place(&headers, &asked), Ok(Some(EventCursor { turn: 2, seq: 5 })));
        headers.insert("last-event-id", "3-7".parse().unwrap());
        assert_eq!(
            place(&headers, &asked),
            Ok(Some(EventCursor { turn: 3, seq: 8 })),
            "what it saw counts first"
        );
        headers.insert("last-event-id", "rubbish".parse().unwrap());
        assert!(place(&headers, &asked).is_err());
    }
}
