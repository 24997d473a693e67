//! Turns the hub's streams into events for the screen. Nothing is polled: the state is read when a stream is opened, and again after a
//! reconnect.

use std::time::Instant;

use plexus_protocol::SessionId;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use super::update::Event;
use crate::client::Client;
use crate::follow::{Follower, StreamItem};
use crate::hub::ANSWERED_WITHIN;

/// The list of sessions is read less often if that is slow: reading takes at most this fraction of the time.
const PAUSE_FACTOR: u32 = 4;

/// Follows the approvals, and reports whether the hub is connected.
pub(crate) async fn approvals(client: Client, events: Sender<Event>) {
    let mut follower = Follower::at(&client, "/approvals/events".to_owned());
    while let Ok(item) = follower.next().await {
        let event = match item {
            // The stream is opened before the open approvals are read, so that none is missed.
            StreamItem::Connected => match read(&client, "loopback.pending", "approvals").await {
                Some(open) => Some(Event::Open(open)),
                // A hub that accepts connections but does not respond counts as disconnected.
                None => {
                    follower.restart();
                    Some(Event::Disconnected)
                }
            },
            StreamItem::Event { mut data, .. } => {
                let approval = serde_json::from_value(data["approval"].take()).ok();
                approval.map(if data["type"] == "asked" { Event::Asked } else { Event::Resolved })
            }
            StreamItem::Disconnected => Some(Event::Disconnected),
        };
        if let Some(event) = event
            && events.send(event).await.is_err()
        {
            return;
        }
    }
}

/// Follows the tree of sessions.
pub(crate) async fn sessions(client: Client, events: Sender<Event>) {
    let mut follower = Follower::changes(&client);
    while let Ok(item) = follower.next().await {
        if matches!(item, StreamItem::Disconnected) {
            continue;
        }
        let since = Instant::now();
        if let Some(sessions) = read(&client, "claudecode.list", "sessions").await
            && events.send(Event::Sessions(sessions)).await.is_err()
        {
            return;
        }
        tokio::time::sleep(since.elapsed() * PAUSE_FACTOR).await;
    }
}

/// Follows the events of one session, from the beginning of its latest turn.
pub(crate) async fn log(client: Client, session: SessionId, events: Sender<Event>) {
    let mut follower = Follower::at(&client, format!("/sessions/{session}/events"));
    while let Ok(item) = follower.next().await {
        // Deltas have their own kind: their text follows as a whole event.
        if let StreamItem::Event { kind: None, mut data } = item
            && events.send(Event::Logged(session, data["event"].take())).await.is_err()
        {
            return;
        }
    }
}

/// Reads one list from the result of a method; `None` if the hub does not respond, which the stream reports.
async fn read<T: serde::de::DeserializeOwned>(client: &Client, method: &str, list: &str) -> Option<T> {
    let answer = tokio::time::timeout(ANSWERED_WITHIN, client.call(method, json!({}))).await;
    let mut shown: Value = answer.ok()?.ok()?;
    serde_json::from_value(shown[list].take()).ok()
}
