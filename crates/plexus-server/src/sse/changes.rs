//! `GET /sessions/events`: an event whenever any session changed, batched over a fifth of a second. It has neither ids
//! nor replay: a client reads the full state after it connects.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use plexus_core::{Caller, ChangeFollower, Door};
use plexus_protocol::{Error, Principal};

use super::{Block, EventSource, error_response, response};
use crate::routes::Doors;

/// Serves the stream.
pub(crate) async fn get(State(doors): State<Doors>, Extension(principal): Extension<Principal>) -> Response {
    match doors.hub.follow_changes(Caller::of(principal, Door::Http)).await {
        Ok(follower) => response(Changes(follower), &doors),
        Err(error) => error_response(&error),
    }
}

pub(super) struct Changes(pub(super) ChangeFollower);

impl EventSource for Changes {
    async fn next(&mut self) -> Result<Vec<Block>, Error> {
        self.0.next().await;
        Ok(vec![Block::unnamed(None, r#"{"type":"changed"}"#.to_owned())])
    }
}
