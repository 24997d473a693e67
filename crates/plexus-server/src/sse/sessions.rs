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

use super::{Block, Data, EventSource, error_response, response};
use crate::routes::Doors;

/// The start position.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StreamQuery {
    turn: Option<u64>,
    from_seq: Option<u64>,
}

/// Serves the stream.
pub(crate) async fn get(
    State(doors): State<Doors>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Query(from): Query<StreamQuery>,
    headers: HeaderMap,
) -> Response {
    let started = async {
        let id: SessionId = id.parse().map_err(|_| Error::invalid("id", "must be the id of a session"))?;
        doors.hub.follow_session(Caller::of(principal, Door::Http), id, cursor(&headers, &from)?).await
    };
    match started.await {
        Ok(follower) => response(Session(follower), &doors),
        Err(error) => error_response(&error),
    }
}

fn cursor(headers: &HeaderMap, from: &StreamQuery) -> Result<Option<EventCursor>, Error> {
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

impl EventSource for Session {
    async fn next(&mut self) -> Result<Vec<Block>, Error> {
        Ok(match self.0.next().await? {
            SessionUpdate::Events(events) => events
                .into_iter()
                .map(|event| {
                    let EventCursor { turn, seq } = event.cursor;
                    Block { id: Some(format!("{turn}-{seq}")), name: None, data: Data::Shared(event) }
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
    fn a_reader_continues_after_the_last_event_it_saw() {
        let mut headers = HeaderMap::new();
        assert_eq!(cursor(&headers, &StreamQuery::default()), Ok(None));
        let query = StreamQuery { turn: Some(2), from_seq: Some(5) };
        assert_eq!(cursor(&headers, &query), Ok(Some(EventCursor { turn: 2, seq: 5 })));
        headers.insert("last-event-id", "3-7".parse().unwrap());
        assert_eq!(
            cursor(&headers, &query),
            Ok(Some(EventCursor { turn: 3, seq: 8 })),
            "the last event id takes precedence"
        );
        headers.insert("last-event-id", "rubbish".parse().unwrap());
        assert!(cursor(&headers, &query).is_err());
    }
}
