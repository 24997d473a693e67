//! Follows a stream of server-sent events of the hub. It owns the connection and the id of the last event, so that it resumes after a
//! reconnect; interpreting the events is left to the caller. A hub that does not respond or sends no heartbeat counts as
//! disconnected, and the caller is notified.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use plexus_protocol::SessionId;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::client::{CallError, Client, lost};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// How long a stream may be silent. The interval of the hub's heartbeat is shorter.
const SILENCE: Duration = Duration::from_secs(2 * plexus_server::HEARTBEAT.as_secs() + 2);
/// How long the hub may take to open a stream.
const OPENED_WITHIN: Duration = Duration::from_secs(5);

/// An item of a stream.
#[derive(Debug)]
pub(crate) enum StreamItem {
    /// An event.
    Event {
        /// The kind of event, if it has one.
        kind: Option<String>,
        /// The data of the event.
        data: Value,
    },
    /// The stream was opened or reopened. State that has no position in the stream has to be read again.
    Connected,
    /// The hub is disconnected. The next item follows a reconnect.
    Disconnected,
}

/// A position in one of the hub's streams.
pub(crate) struct Follower {
    client: Client,
    path: String,
    last: Option<String>,
    stream: Option<Stream>,
    /// Kept between calls of `next`, which may be dropped before a slow hub has responded.
    opening: Option<Opening>,
    pause: Duration,
    again_at: Instant,
}

type Opening = Pin<Box<dyn Future<Output = Result<Stream, CallError>> + Send>>;

/// The position of an event in a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventPosition {
    pub(crate) turn: u64,
    pub(crate) seq: u64,
}

impl EventPosition {
    /// The first event of the first turn.
    pub(crate) const START: Self = Self { turn: 1, seq: 0 };
}

impl Follower {
    /// The events of a session from this position on.
    pub(crate) fn session(client: &Client, id: SessionId, from: EventPosition) -> Self {
        let EventPosition { turn, seq } = from;
        Self::at(client, format!("/sessions/{id}/events?turn={turn}&from_seq={seq}"))
    }

    /// The approvals after this cursor of `loopback.wait`.
    pub(crate) fn approvals(client: &Client, after: u64) -> Self {
        Self::at(client, format!("/approvals/events?after={after}"))
    }

    /// An event for each change in any session.
    pub(crate) fn changes(client: &Client) -> Self {
        Self::at(client, "/sessions/events".to_owned())
    }

    /// Any of the hub's streams, by its path.
    pub(crate) fn at(client: &Client, path: String) -> Self {
        let client = client.clone();
        let again_at = Instant::now();
        Self { client, path, last: None, stream: None, opening: None, pause: FIRST_PAUSE, again_at }
    }

    /// Drops the connection; the next call of `next` opens a new one.
    pub(crate) fn restart(&mut self) {
        (self.stream, self.opening) = (None, None);
        self.again_at = Instant::now() + MAX_PAUSE;
    }

    /// Waits for the next item. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<StreamItem, CallError> {
        loop {
            let Some(stream) = &mut self.stream else {
                tokio::time::sleep_until(self.again_at).await;
                let opening = self.opening.get_or_insert_with(|| {
                    let (client, path, last) = (self.client.clone(), self.path.clone(), self.last.clone());
                    Box::pin(opened(client, path, last))
                });
                let opened = opening.await;
                self.opening = None;
                match opened {
                    Ok(stream) => {
                        (self.stream, self.pause) = (Some(stream), FIRST_PAUSE);
                        return Ok(StreamItem::Connected);
                    }
                    Err(error @ CallError::Refused { .. }) => return Err(error),
                    Err(_) => {
                        let first = self.pause == FIRST_PAUSE;
                        self.again_at = Instant::now() + self.pause;
                        self.pause = (self.pause * 2).min(MAX_PAUSE);
                        if first {
                            return Ok(StreamItem::Disconnected);
                        }
                        continue;
                    }
                }
            };
            let block = match stream.next().await {
                ReadResult::Block(block) => block,
                ReadResult::End => {
                    self.stream = None;
                    continue;
                }
                ReadResult::Silent => {
                    self.stream = None;
                    // The caller is notified here: a failure to reopen is not reported again.
                    self.pause = FIRST_PAUSE * 2;
                    return Ok(StreamItem::Disconnected);
                }
            };
            let Block { id, kind, data } = block;
            if kind.as_deref() == Some("error") {
                let body: Value = serde_json::from_str(&data).unwrap_or_default();
                self.stream = None;
                if matches!(body["type"].as_str(), Some("gone" | "session_not_found" | "forbidden")) {
                    return Err(refused(body));
                }
                self.again_at = Instant::now() + self.pause;
                continue;
            }
            if id.is_some() {
                self.last = id;
            }
            if let Ok(data) = serde_json::from_str(&data) {
                return Ok(StreamItem::Event { kind, data });
            }
        }
    }
}

async fn opened(client: Client, path: String, last: Option<String>) -> Result<Stream, CallError> {
    let opened = tokio::time::timeout(OPENED_WITHIN, open(&client, &path, last.as_deref())).await;
    opened.unwrap_or_else(|_| Err(CallError::Lost("it does not respond".to_owned())))
}

async fn open(client: &Client, path: &str, last: Option<&str>) -> Result<Stream, CallError> {
    let mut request = client.signed(Request::get(path));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| CallError::Lost(error.to_string()))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(client.dial().await?)).await.map_err(lost)?;
    let driver = Driver(tokio::spawn(async move {
        // The reader sees the end of the connection.
        let _ = connection.await;
    }));
    let response = sender.send_request(request).await.map_err(lost)?;
    let status = response.status();
    if status == StatusCode::OK {
        let last_received = Instant::now();
        return Ok(Stream { body: response.into_body(), buffer: Vec::new(), last_received, _driver: driver });
    }
    let body = response.into_body().collect().await.map_err(lost)?.to_bytes();
    if status.is_server_error() {
        return Err(CallError::Lost(format!("HTTP {status}")));
    }
    let mut body: Value = serde_json::from_slice(&body).unwrap_or_default();
    Err(refused(body["error"].take()))
}

fn refused(body: Value) -> CallError {
    CallError::Refused {
        kind: body["type"].as_str().unwrap_or("error").to_owned(),
        message: body["message"].as_str().unwrap_or("the hub gave no reason").to_owned(),
        data: body,
    }
}

/// The task that drives a connection; dropping it aborts the task.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Stream {
    body: Incoming,
    buffer: Vec<u8>,
    /// When the last data or heartbeat arrived.
    last_received: Instant,
    _driver: Driver,
}

/// The result of reading from a stream.
enum ReadResult {
    /// An event.
    Block(Block),
    /// The stream ended or broke.
    End,
    /// No data and no heartbeat arrived in time.
    Silent,
}

impl Stream {
    /// The next event with data. Cancel safe.
    async fn next(&mut self) -> ReadResult {
        loop {
            while let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let block = Block::read(&String::from_utf8_lossy(&block));
                if !block.data.is_empty() {
                    return ReadResult::Block(block);
                }
            }
            let frame = match tokio::time::timeout_at(self.last_received + SILENCE, self.body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(_) => return ReadResult::End,
                Err(_) => return ReadResult::Silent,
            };
            self.last_received = Instant::now();
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct Block {
    id: Option<String>,
    kind: Option<String>,
    data: String,
}

impl Block {
    fn read(text: &str) -> Self {
        let mut block = Self::default();
        for line in text.lines() {
            match line.split_once(": ") {
                Some(("id", id)) => block.id = Some(id.to_owned()),
                Some(("event", kind)) => block.kind = Some(kind.to_owned()),
                Some(("data", data)) => block.data.push_str(data),
                _ => {}
            }
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_an_id_and_a_kind_and_comments_are_ignored() {
        let read = Block::read("id: 1-2\nevent: delta\ndata: {\"a\": 1}\n\n");
        assert_eq!(read.id.as_deref(), Some("1-2"));
        assert_eq!((read.kind.as_deref(), read.data.as_str()), (Some("delta"), "{\"a\": 1}"));
        assert_eq!(Block::read(": alive\n\n"), Block::default());
    }
}
