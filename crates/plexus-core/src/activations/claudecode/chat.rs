//! `claudecode.chat`: starts a turn and waits until it finishes. Doors with notifications send each event as it
//! happens.

use std::sync::Arc;

use plexus_protocol::claudecode::{ChatAsyncResult, ChatParams, PollResult};
use plexus_protocol::{Error, ErrorKind, HostName, MAX_TEXT_BYTES, Object};
use plexus_store::SessionRow;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use super::chat_async::{check_prompt, prompt_format};
use super::poll::{EventRange, read, whole};
use crate::Hub;
use crate::attachments;
use crate::callers::access::{self, Admitted, Needs, Reader};
use crate::callers::caller::Notification;
use crate::errors::store_error;
use crate::follow::{EventCursor, SessionUpdate};
use crate::hub::Method;
use crate::method::Audience;
use crate::session::Prompt;
use plexus_book::{Topic, next};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.chat",
        "Prompts a session and waits until the turn finishes. Agents use chat_async: they have to answer the \
         approvals of the turn.",
        Audience::Programs,
        Needs::Act,
        chat,
    )
}

async fn chat(hub: Arc<Hub>, caller: Admitted, params: ChatParams) -> Result<PollResult, Error> {
    check_prompt(&params.prompt)?;
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let other_host = session.host.clone().filter(|host| !hub.is_own(Some(host)));
    let for_other_host = other_host.map(|host| (host, json!(params)));
    let prompt = Prompt {
        format: prompt_format(&caller, params.expand)?,
        text: params.prompt,
        attachments: attachments::given(&caller.principal, params.attachments)?,
    };
    if session.config.loopback_enabled && decides_between_calls(&caller) {
        let message = "this call would wait for approvals that you have to answer. Start the turn with \
            claudecode_chat_async, answer its approvals with loopback_wait and loopback_respond, and read its \
            events with claudecode_poll";
        return Err(Error::new(ErrorKind::WouldWaitForItself, message));
    }
    let mut signal = hub.commits().signals().subscribe(Topic::Session(session.id));
    // Follows the session from before the prompt, so that no delta is missed.
    let mut follower = hub.follow().follow_found(&session, None).await?;
    let turn = match for_other_host {
        None => hub.session(session.id).prompt(prompt).await?,
        Some((host, params)) => prompt_on(&hub, &caller, &host, params).await?,
    };
    if let Some(notify) = &caller.notify {
        follower.go_to(EventCursor { turn, seq: 0 });
        while let Some(update) = follower.next_of(turn).await? {
            notify_update(notify, update).await?;
        }
    }
    while !has_ended(&hub, &session, turn).await? {
        next(&mut signal).await;
    }
    let turn = EventRange { turn, from: 0, limit: u64::from(u32::MAX), max_bytes: MAX_TEXT_BYTES };
    Ok(whole(read(&hub, &caller, &session, &turn).await?))
}

/// Has the turn started by the hub of another host. Its events come from the store.
async fn prompt_on(hub: &Hub, caller: &Admitted, host: &HostName, params: Value) -> Result<u64, Error> {
    let reply = hub.call_on(host, caller, "claudecode.chat_async", params).await?;
    let unreadable = |error| Error::new(ErrorKind::Internal, format!("the reply cannot be read: {error}"));
    let ChatAsyncResult::Started { turn, .. } = serde_json::from_value(reply).map_err(unreadable)?;
    Ok(turn)
}

/// Whether the caller cannot answer approvals while this call waits. An agent makes one call at a time. Other callers answer on a
/// second connection.
fn decides_between_calls(caller: &Admitted) -> bool {
    caller.reader() == Reader::Agent
}

async fn has_ended(hub: &Hub, session: &SessionRow, turn: u64) -> Result<bool, Error> {
    let row = hub.store().turn(session.id, turn).await.map_err(store_error)?;
    Ok(row.is_none_or(|row| row.ended_at.is_some()))
}

async fn notify_update(notify: &Sender<Notification>, update: SessionUpdate) -> Result<(), Error> {
    let notifications = match update {
        SessionUpdate::Events(events) => events
            .into_iter()
            .map(|event| Notification {
                method: "claudecode.chat.event",
                params: serde_json::from_str(&event.data).unwrap_or_default(),
            })
            .collect(),
        SessionUpdate::Delta(delta) => {
            let params = Object::from_iter([("delta".to_owned(), Value::Object((*delta).clone()))]);
            vec![Notification { method: "claudecode.chat.delta", params }]
        }
    };
    for notification in notifications {
        // Waits for a slow client. Only this call waits.
        let sent = notify.send(notification).await;
        sent.map_err(|_| Error::new(ErrorKind::Internal, "the caller disconnected"))?;
    }
    Ok(())
}
