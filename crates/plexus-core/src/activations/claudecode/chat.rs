//! `claudecode.chat`: begins a turn and waits for its end. On doors that can, each event is sent as it happens.

use std::sync::Arc;

use plexus_protocol::claudecode::{ChatParams, PollResult, Status};
use plexus_protocol::{Error, ErrorKind, MAX_TEXT_BYTES, Object};
use serde_json::Value;

use super::chat_async::check_prompt;
use super::poll::{Reading, read};
use crate::Hub;
use crate::method::{Audience, Caller, Door, Method, Notification};
use crate::signals::{Topic, next};

/// How many events are read at a time.
const PAGE: u64 = 200;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.chat",
        "Gives a session a prompt and waits for the end of the turn.",
        Audience::Programs,
        chat,
    )
}

async fn chat(hub: Arc<Hub>, caller: Caller, params: ChatParams) -> Result<PollResult, Error> {
    check_prompt(&params.prompt)?;
    let session = hub.find_session(&caller.principal, params.session_id, params.name.as_deref()).await?;
    let asked = hub.right_over(&caller.principal, &session).await?.is_some();
    if caller.door == Door::Mcp && asked && session.config.loopback_enabled {
        let message = "you would be asked while you wait; use claudecode_chat_async and loopback_wait";
        return Err(Error::new(ErrorKind::WouldWaitForItself, message));
    }
    let mut signal = hub.signals().subscribe(Topic::Session(session.id));
    let turn = hub.session(session.id).prompt(params.prompt).await?;
    let mut sent = 0;
    loop {
        let reading = Reading { turn, from: sent, limit: PAGE, max_bytes: MAX_TEXT_BYTES };
        let PollResult::Ok { status, events, has_more, read_position, .. } =
            read(&hub, &session, &reading).await?;
        if let Some(notify) = &caller.notify {
            for event in events {
                let mut params = Object::new();
                params.insert("seq".to_owned(), event.seq.into());
                params.insert("event".to_owned(), event.event);
                params.insert("turn".to_owned(), Value::from(turn));
                let told = notify.send(Notification { method: "claudecode.chat.event", params }).await;
                if told.is_err() {
                    return Err(Error::new(ErrorKind::Internal, "the caller has gone"));
                }
            }
            sent = read_position;
            if has_more {
                continue;
            }
        }
        if !matches!(status, Status::Running | Status::AwaitingPermission | Status::Idle) {
            let whole = Reading { turn, from: 0, limit: u64::from(u32::MAX), max_bytes: MAX_TEXT_BYTES };
            return read(&hub, &session, &whole).await;
        }
        next(&mut signal).await;
    }
}
