//! A client of one of the hub's event streams. It reads only when the next event is requested, so a test can be a slow reader. Dropping it
//! disconnects.

use std::collections::VecDeque;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::CallError;
use super::http::{Endpoint, HttpError, transport};
use super::sse::{Events, SseEvent};

/// An open event stream.
#[derive(Debug)]
pub struct Listener {
    body: Incoming,
    events: Events,
    read: VecDeque<SseEvent>,
    endpoint: Endpoint,
}

impl Listener {
    /// Opens the stream at `path` of the hub at `url`, after the event `last` if it is given. An empty token is not sent.
    ///
    /// # Errors
    /// If the hub refuses, or cannot be reached.
    pub async fn open(url: &str, path: &str, token: &str, last: Option<&str>) -> Result<Self, CallError> {
        let endpoint = Endpoint::new(url, path, token);
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend(last.map(|last| ("last-event-id", last)));
        let response = endpoint.within(endpoint.get(&headers)).await?;
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Err(HttpError::Transport(format!("not a stream of events but {kind:?}")).into());
        }
        let (events, read) = (Events::default(), VecDeque::new());
        Ok(Self { body: response.into_body(), events, read, endpoint })
    }

    /// The next event. `None` if the hub has ended the stream.
    ///
    /// # Errors
    /// If the connection breaks, or there is no event in two minutes.
    pub async fn next(&mut self) -> Result<Option<SseEvent>, CallError> {
        while self.read.is_empty() {
            let frame = async { self.body.frame().await.transpose().map_err(transport) };
            let Some(frame) = self.endpoint.within(frame).await? else { return Ok(None) };
            let pieces = frame.data_ref().map(|piece| self.events.push(piece));
            self.read.extend(pieces.unwrap_or_default());
        }
        Ok(self.read.pop_front())
    }
}
