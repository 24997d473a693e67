//! `claudecode.chat_async`: starts a turn and returns immediately.

use std::sync::Arc;

use plexus_protocol::claudecode::{ChatAsyncResult, ChatParams};
use plexus_protocol::{Error, ErrorKind, MAX_BODY_BYTES, Principal, SessionId};

use crate::Hub;
use crate::attachments;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::session::{Prompt, PromptFormat};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.chat_async",
        "Prompts a session and returns at once; continue with loopback_wait and the returned cursor.",
        Audience::Agents,
        Needs::Act,
        chat_async,
    )
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn chat_async(hub: Arc<Hub>, caller: Admitted, params: ChatParams) -> Result<ChatAsyncResult, Error> {
    check_prompt(&params.prompt)?;
    let prompt = Prompt {
        format: prompt_format(&caller, params.expand)?,
        text: params.prompt,
        attachments: attachments::given(&caller.principal, params.attachments)?,
    };
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let StartedTurn { turn, cursor } = start_turn(&hub, session.id, prompt).await?;
    Ok(ChatAsyncResult::Started { session_id: session.id, turn, cursor })
}

/// A turn that was started.
pub(super) struct StartedTurn {
    /// Its number.
    pub(super) turn: u64,
    /// A feed cursor that precedes every entry the turn produces.
    pub(super) cursor: u64,
}

/// Starts a turn.
pub(super) async fn start_turn(hub: &Hub, session: SessionId, prompt: Prompt) -> Result<StartedTurn, Error> {
    hub.parts().disk.check_space(&hub.parts().metrics)?;
    hub.parts().sandbox.check()?;
    let cursor = hub.store().feed_head().await.map_err(store_error)?;
    Ok(StartedTurn { turn: hub.session(session).prompt(prompt).await?, cursor })
}

/// The format of a prompt. Expansion reads the files that a prompt names without an approval, so only the operator may
/// request it.
pub(super) fn prompt_format(caller: &Admitted, expand: Option<bool>) -> Result<PromptFormat, Error> {
    match (expand, &caller.principal) {
        (None | Some(false), _) => Ok(PromptFormat::Plain),
        (Some(true), Principal::Operator) => Ok(PromptFormat::Expanded),
        (Some(true), _) => {
            let message =
                "only the operator can use `expand`: Claude Code reads the named files without an approval";
            Err(Error::new(ErrorKind::Forbidden, message).with("field", "expand"))
        }
    }
}

/// Checks that a prompt is neither empty nor too large.
pub(super) fn check_prompt(prompt: &str) -> Result<(), Error> {
    if prompt.trim().is_empty() {
        return Err(Error::invalid("prompt", "is empty"));
    }
    if prompt.len() > MAX_BODY_BYTES {
        let message = format!("`prompt` has {} bytes; the maximum is {MAX_BODY_BYTES}", prompt.len());
        return Err(Error::new(ErrorKind::TooLarge, message).with("field", "prompt"));
    }
    Ok(())
}
