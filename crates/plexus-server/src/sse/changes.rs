//! `GET /sessions/events`: an event whenever something has changed in any session, gathered over a fifth of a second.
//! It has neither id nor replay: whoever connects looks at everything first.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use plexus_core::{Caller, ChangeFollower, Door};
use plexus_protocol::{Error, Principal};

use super::{Teller, refused, response};
use crate::doors::Doors;

/// The stream.
pub(crate) async fn get(State(doors): State<Doors>, Extension(principal): Extension<Principal>) -> Response {
    match doors.hub.follow_changes(Caller::of(principal, Door::Http)).await {
        Ok(follower) => response(Changes(follower), doors.stop.clone()),
        Err(error) => refused(&error),
    }
}

struct Changes(ChangeFollower);

impl Teller for Changes {
    async fn next(&mut self) -> Result<Bytes, Error> {
        self.0.next().await;
        Ok(Bytes::from_static(b"data: {\"type\":\"changed\"}\n\n"))
    }
}
