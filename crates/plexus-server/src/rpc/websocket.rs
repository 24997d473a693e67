//! `GET /rpc`: many concurrent calls on one WebSocket. Each call is a task and is answered when it finishes; its
//! notifications precede its response. When the socket closes, its waiting calls end. The bytes of a message count
//! against its caller from the first byte on.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use bytes::Bytes;
use futures::stream::SplitSink;
use futures::{SinkExt, StreamExt};
use plexus_core::{Caller, Door, Known, RejectReason};
use plexus_protocol::{MAX_BODY_BYTES, Principal};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::callers::{self, Charge};
use crate::connections::{Connection, Occupied};
use crate::json_value_count;
use crate::refusal::Refusal;
use crate::routes::Doors;
use crate::rpc::envelope::{Call, Incoming, Member, answer, notification};

/// The largest message to read. It exceeds the body limit, so that the hub can answer an oversized message instead of
/// closing the connection.
const READ_BYTES: usize = 4 * MAX_BODY_BYTES;

/// The read and write buffers of a socket, besides the messages themselves.
const BUFFER: usize = 16 * 1024;

/// The number of queued messages for one client. A client that does not read delays only its own calls.
const OUTGOING: usize = 8;

/// The number of concurrent calls on one socket. A socket at this limit is not read until one of them is answered.
const CALLS_AT_ONCE: usize = 256;

/// Upgrades a request to a WebSocket.
pub(crate) async fn upgrade(
    State(doors): State<Doors>,
    Extension(known): Extension<Known>,
    Extension(call): Extension<Arc<callers::Call>>,
    Extension(connection): Extension<Arc<Connection>>,
    Extension(occupied): Extension<Arc<Occupied>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let resources = SocketResources { call, connection, _occupied: occupied };
    upgrade
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(READ_BYTES)
        .max_frame_size(READ_BYTES)
        .on_upgrade(move |socket| run(doors, known, resources, socket))
}

/// The resources that a socket holds at the door while it is open.
struct SocketResources {
    call: Arc<callers::Call>,
    connection: Arc<Connection>,
    _occupied: Arc<Occupied>,
}

impl SocketResources {
    /// Charges the next message from here on. Returns the charge for the previous message.
    fn next_message(&self) -> Option<Charge> {
        self.connection.meter(self.call.charge())
    }

    /// Whether a message has started and does not continue in time.
    fn is_stalled(&self, doors: &Doors, reading_since: Instant) -> bool {
        self.connection.is_stalled(reading_since, doors.limits.body_stall, doors.limits.body)
    }
}

async fn run(doors: Doors, known: Known, resources: SocketResources, socket: WebSocket) {
    let (sink, mut stream) = socket.split();
    let (outgoing, queue) = mpsc::channel(OUTGOING);
    // Dropped at the end of this function, which ends all calls in progress.
    let mut calls = JoinSet::new();
    let mut writer = tokio::spawn(write(sink, queue));
    let mut token_ends = std::pin::pin!(doors.hub.token_ends(&known));
    let mut silent = std::pin::pin!(tokio::time::sleep(doors.limits.head));
    let mut received = false;
    let mut heartbeat =
        tokio::time::interval_at(Instant::now() + doors.limits.heartbeat, doors.limits.heartbeat);
    let mut reading_since = Instant::now();
    resources.next_message();
    loop {
        tokio::select! {
            message = stream.next(), if calls.len() < CALLS_AT_ONCE => {
                let charge = resources.next_message();
                match message {
                    Some(Ok(Message::Text(text))) => handle(&doors, &known.principal, text.as_bytes(), charge, &outgoing, &mut calls),
                    Some(Ok(Message::Binary(bytes))) => handle(&doors, &known.principal, &bytes, charge, &outgoing, &mut calls),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                }
                received = true;
            },
            Some(_) = calls.join_next() => reading_since = Instant::now(),
            _ = &mut writer => return,
            () = doors.stop.cancelled() => break,
            () = &mut token_ends => break,
            () = &mut silent, if !received => {
                doors.hub.door_figures().rejected(RejectReason::Head);
                break;
            }
            _ = heartbeat.tick() => {
                if calls.len() < CALLS_AT_ONCE && resources.is_stalled(&doors, reading_since) {
                    doors.hub.door_figures().rejected(RejectReason::Body);
                    break;
                }
                // If the queue is full, the queued messages serve as the heartbeat.
                let _ = outgoing.try_send(Message::Ping(Bytes::new()));
            }
        }
    }
    drop(calls);
    drop(outgoing);
    writer.abort();
}

fn handle(
    doors: &Doors,
    principal: &Principal,
    bytes: &[u8],
    charge: Option<Charge>,
    outgoing: &mpsc::Sender<Message>,
    calls: &mut JoinSet<()>,
) {
    let (doors, principal, outgoing) = (doors.clone(), principal.clone(), outgoing.clone());
    if bytes.len() > MAX_BODY_BYTES {
        calls.spawn(async move { send(&outgoing, Refusal::TooLarge.to_json()).await });
        return;
    }
    if !json_value_count::are_within_limit(bytes) {
        calls.spawn(async move { send(&outgoing, Refusal::TooManyValues.to_json()).await });
        return;
    }
    match Incoming::parse(bytes) {
        Incoming::One(member) => calls.spawn(async move {
            let _held = charge;
            if let Some(answer) = serve(&doors, principal, member, &outgoing).await {
                send(&outgoing, answer).await;
            }
        }),
        Incoming::Batch(members) => calls.spawn(async move {
            let _held = charge;
            let served =
                members.into_iter().map(|member| serve(&doors, principal.clone(), member, &outgoing));
            let answers: Vec<Value> = futures::future::join_all(served).await.into_iter().flatten().collect();
            if !answers.is_empty() {
                send(&outgoing, Value::Array(answers)).await;
            }
        }),
    };
}

async fn serve(
    doors: &Doors,
    principal: Principal,
    member: Member,
    outgoing: &mpsc::Sender<Message>,
) -> Option<Value> {
    let Call { id, method, params } = match member {
        Ok(call) => call,
        Err(refused) => return Some(refused),
    };
    let (notify, mut notifications) = mpsc::channel(OUTGOING);
    let caller = Caller { principal, door: Door::WebSocket, notify: id.is_some().then_some(notify) };
    let call = doors.hub.call(caller, &method, params);
    tokio::pin!(call);
    let outcome = loop {
        tokio::select! {
            // Notifications are sent before the response.
            biased;
            Some(sent) = notifications.recv() => {
                send(outgoing, notification(sent.method, id.as_ref().unwrap_or(&Value::Null), sent.params)).await;
            }
            outcome = &mut call => break outcome,
        }
    };
    let id = id?;
    while let Ok(sent) = notifications.try_recv() {
        send(outgoing, notification(sent.method, &id, sent.params)).await;
    }
    Some(answer(id, outcome))
}

/// Fails only if the connection is closed; nobody can receive the message then.
async fn send(outgoing: &mpsc::Sender<Message>, message: Value) {
    let _ = outgoing.send(Message::Text(message.to_string().into())).await;
}

async fn write(mut sink: SplitSink<WebSocket, Message>, mut queue: mpsc::Receiver<Message>) {
    while let Some(message) = queue.recv().await {
        if sink.send(message).await.is_err() {
            return;
        }
    }
    let _ = sink.close().await;
}
