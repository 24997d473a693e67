//! `claudecode.send`: adds a message to the running turn.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{ChatParams, SendResult};

use super::chat_async::check_prompt;
use crate::Hub;
use crate::attachments;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.send",
        "Adds a message to the running turn of a session.",
        Audience::Agents,
        Needs::Act,
        send,
    )
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn send(hub: Arc<Hub>, caller: Admitted, params: ChatParams) -> Result<SendResult, Error> {
    check_prompt(&params.prompt)?;
    let attachments = attachments::given(&caller.principal, params.attachments)?;
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let turn = hub.session(session.id).send(params.prompt, attachments).await?;
    Ok(SendResult::Sent { session_id: session.id, turn })
}
