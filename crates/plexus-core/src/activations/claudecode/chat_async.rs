//! `claudecode.chat_async`: begins a turn and returns at once.

use std::sync::Arc;

use plexus_protocol::claudecode::{ChatAsyncResult, ChatParams};
use plexus_protocol::{Error, ErrorKind, MAX_BODY_BYTES};

use crate::Hub;
use crate::method::{Audience, Caller, Method};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.chat_async",
        "Gives a session a prompt and returns at once; then use loopback_wait (or claudecode_poll).",
        Audience::Agents,
        chat_async,
    )
}

async fn chat_async(hub: Arc<Hub>, caller: Caller, params: ChatParams) -> Result<ChatAsyncResult, Error> {
    check_prompt(&params.prompt)?;
    let session = hub.find_session(&caller.principal, params.session_id, params.name.as_deref()).await?;
    let turn = hub.session(session.id).prompt(params.prompt).await?;
    Ok(ChatAsyncResult::Started { session_id: session.id, turn })
}

/// A prompt that says something and fits.
pub(super) fn check_prompt(prompt: &str) -> Result<(), Error> {
    if prompt.trim().is_empty() {
        return Err(Error::invalid("prompt", "is empty"));
    }
    if prompt.len() > MAX_BODY_BYTES {
        let message = format!("`prompt` has {} bytes; at most {MAX_BODY_BYTES} are taken", prompt.len());
        return Err(Error::new(ErrorKind::TooLarge, message).with("field", "prompt"));
    }
    Ok(())
}
