//! `GET /approvals/events`: created and resolved approvals. The event ids are the cursors of `loopback.wait`. The
//! stream replays from `Last-Event-ID` or `?after=`, or else starts now.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use http::HeaderMap;
use plexus_core::{ApprovalFollower, Caller, Door};
use plexus_protocol::stream::ApprovalFrame;
use plexus_protocol::{Error, Principal};
use serde::Deserialize;
use serde_json::json;

use super::{Block, EventSource, error_response, response};
use crate::routes::Doors;

/// The start position.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StreamQuery {
    after: Option<u64>,
}

/// Serves the stream.
pub(crate) async fn get(
    State(doors): State<Doors>,
    Extension(principal): Extension<Principal>,
    Query(from): Query<StreamQuery>,
    headers: HeaderMap,
) -> Response {
    let started = async {
        let last = match headers.get("last-event-id") {
            Some(last) => {
                let number = last.to_str().ok().and_then(|last| last.parse().ok());
                Some(number.ok_or_else(|| Error::invalid("Last-Event-ID", "must be a number"))?)
            }
            None => from.after,
        };
        doors.hub.follow_approvals(Caller::of(principal, Door::Http), last).await
    };
    match started.await {
        Ok(follower) => response(Approvals(follower), &doors),
        Err(error) => error_response(&error),
    }
}

pub(super) struct Approvals(pub(super) ApprovalFollower);

impl EventSource for Approvals {
    async fn next(&mut self) -> Result<Vec<Block>, Error> {
        let updates = self.0.next().await?.into_iter();
        Ok(updates
            .map(|update| {
                let frame = ApprovalFrame { change: update.change, approval: update.approval };
                Block::unnamed(Some(update.number.to_string()), json!(frame).to_string())
            })
            .collect())
    }
}
