//! `claudecode.compact`: has Claude Code replace the conversation of a session with a summary, so that the next turns use less of the
//! model's context. `/compact` is the only command of Claude Code that the hub runs; a prompt never runs a command.

use std::sync::Arc;

use plexus_protocol::claudecode::{ChatAsyncResult, CompactParams};
use plexus_protocol::{Error, ErrorKind, Principal};
use serde_json::json;

use super::chat_async::{StartedTurn, start_turn};
use crate::Hub;
use crate::attachments::Attachments;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::session::{COMPACT, Prompt, PromptFormat};

/// The maximum length of the instructions.
const MAX_INSTRUCTIONS_BYTES: usize = 8 * 1024;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.compact",
        "Replaces the conversation of an idle session with a summary, in a turn of its own (operator only).",
        Audience::Programs,
        Needs::Act,
        compact,
    )
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn compact(hub: Arc<Hub>, caller: Admitted, params: CompactParams) -> Result<ChatAsyncResult, Error> {
    let instructions = params.instructions.unwrap_or_default();
    let instructions = instructions.trim();
    if instructions.len() > MAX_INSTRUCTIONS_BYTES {
        let message = format!(
            "`instructions` has {} bytes; the maximum is {MAX_INSTRUCTIONS_BYTES}",
            instructions.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, message).with("field", "instructions"));
    }
    if !matches!(caller.principal, Principal::Operator | Principal::Token { .. }) {
        let message = "only the operator can compact a conversation";
        return Err(Error::new(ErrorKind::Forbidden, message));
    }
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let details = json!({"instructions": instructions});
    session_audit::record(hub.commits(), &caller, "compact", &session, details).await?;
    let text = format!("{COMPACT} {instructions}").trim_end().to_owned();
    let prompt = Prompt { text, format: PromptFormat::Compact, attachments: Attachments::default() };
    let StartedTurn { turn, cursor } = start_turn(&hub, session.id, prompt).await?;
    Ok(ChatAsyncResult::Started { session_id: session.id, turn, cursor })
}
