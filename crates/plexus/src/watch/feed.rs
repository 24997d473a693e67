//! What the hub tells by itself: its streams on `hub.sock`, for as long as it takes. Each begins with how everything
//! stands, goes on live, and begins again by itself when the hub was away. Nothing is asked again and again.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use plexus_protocol::SessionId;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinHandle;

use super::update::Event;
use crate::client::Client;

/// How long a hub that is away is left alone, at first and at most.
const FIRST_TRY: Duration = Duration::from_millis(200);
const LAST_TRY: Duration = Duration::from_secs(2);
/// A hub with many sessions is asked for them less often: looking takes at most this part of the time.
const LOOKING: u32 = 4;

/// Follows the approvals; tells as well whether the hub is there.
pub(crate) async fn approvals(socket: PathBuf, tell: Sender<Event>) {
    let client = Client::Operator { socket: socket.clone() };
    let mut wait = FIRST_TRY;
    loop {
        // The stream is there before what is open is read: nothing falls between the two.
        if let Some(mut stream) = Stream::open(&socket, "/approvals/events", None).await
            && let Ok(mut open) = client.call("loopback.pending", json!({})).await
            && let Ok(open) = serde_json::from_value(open["approvals"].take())
        {
            wait = FIRST_TRY;
            if tell.send(Event::Open(open)).await.is_err() {
                return;
            }
            while let Some((_, mut data)) = stream.next().await {
                let Ok(approval) = serde_json::from_value(data["approval"].take()) else { continue };
                let event = match data["type"].as_str() {
                    Some("asked") => Event::Asked(approval),
                    _ => Event::Ended(approval),
                };
                if tell.send(event).await.is_err() {
                    return;
                }
            }
        }
        if tell.send(Event::Away).await.is_err() {
            return;
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LAST_TRY);
    }
}

/// Follows the tree of sessions.
pub(crate) async fn sessions(socket: PathBuf, tell: Sender<Event>) {
    let client = Client::Operator { socket: socket.clone() };
    let mut wait = FIRST_TRY;
    loop {
        if let Some(mut stream) = Stream::open(&socket, "/sessions/events", None).await {
            loop {
                let since = Instant::now();
                let Ok(mut list) = client.call("claudecode.list", json!({})).await else { break };
                let Ok(sessions) = serde_json::from_value(list["sessions"].take()) else { break };
                wait = FIRST_TRY;
                if tell.send(Event::Sessions(sessions)).await.is_err() {
                    return;
                }
                tokio::time::sleep(since.elapsed() * LOOKING).await;
                if stream.next().await.is_none() {
                    break;
                }
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LAST_TRY);
    }
}

/// Follows the events of one session, from the beginning of its latest turn.
pub(crate) async fn log(socket: PathBuf, session: SessionId, tell: Sender<Event>) {
    let path = format!("/sessions/{session}/events");
    let (mut last, mut wait) = (None, FIRST_TRY);
    loop {
        if let Some(mut stream) = Stream::open(&socket, &path, last.as_deref()).await {
            while let Some((id, mut data)) = stream.next().await {
                wait = FIRST_TRY;
                // Deltas have no id: what they tell comes again as a whole.
                let Some(id) = id else { continue };
                last = Some(id);
                if tell.send(Event::Happened(session, data["event"].take())).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LAST_TRY);
    }
}

/// A stream of server-sent events.
struct Stream {
    body: Incoming,
    buffer: Vec<u8>,
    connection: JoinHandle<()>,
}

impl Stream {
    /// Opens a stream; `None` when the hub is not there or refuses.
    async fn open(socket: &Path, path: &str, last: Option<&str>) -> Option<Self> {
        let stream = UnixStream::connect(socket).await.ok()?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        let connection = tokio::spawn(async move { drop(connection.await) });
        let mut request = Request::get(path).header(header::HOST, "hub.sock");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = sender.send_request(request.body(Empty::<Bytes>::new()).ok()?).await.ok()?;
        response.status().is_success().then(|| Self {
            body: response.into_body(),
            buffer: Vec::new(),
            connection,
        })
    }

    /// The next event that has data, with its id; `None` at the end.
    async fn next(&mut self) -> Option<(Option<String>, Value)> {
        loop {
            while let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let event = String::from_utf8_lossy(&event);
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let data = field("data: ").and_then(|data| serde_json::from_str(data).ok());
                if field("event: ") == Some("error") {
                    return None;
                }
                if let Some(data) = data {
                    return Some((field("id: ").map(str::to_owned), data));
                }
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
