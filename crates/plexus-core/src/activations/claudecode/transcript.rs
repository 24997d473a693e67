//! `claudecode.transcript`: a session's whole conversation as Markdown, JSON lines or HTML, in parts.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::arbor::Node;
use plexus_protocol::claudecode::{TranscriptFormat, TranscriptParams, TranscriptResult};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::conversations::page;
use crate::hub::Method;
use crate::method::Audience;
use crate::render::{PAGE_END, html, markdown, page_start};

const DEFAULT_LIMIT: u64 = 200;
const MAX_LIMIT: u64 = 1000;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.transcript",
        "Returns a session's whole conversation with all decisions, as Markdown, JSON lines or HTML.",
        Audience::Programs,
        Needs::Read,
        transcript,
    )
    .repeatable()
}

async fn transcript(
    hub: Arc<Hub>,
    caller: Admitted,
    params: TranscriptParams,
) -> Result<TranscriptResult, Error> {
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Error::invalid("limit", format!("must be between 1 and {MAX_LIMIT}")));
    }
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let from = params.from.unwrap_or(0);
    let (nodes, next) = page(hub.store(), session.head, params.from, limit).await?;
    let render = move || {
        let title = session.name.as_str();
        let origin = session.config.resumed_from.map(|id| format!("Continues Claude Code session {id}."));
        match params.format.unwrap_or_default() {
            TranscriptFormat::Markdown if from == 0 => {
                let origin = origin.map(|origin| format!("*{origin}*\n\n")).unwrap_or_default();
                format!("# {title}\n\n{origin}{}", markdown(&nodes))
            }
            TranscriptFormat::Markdown => markdown(&nodes),
            TranscriptFormat::Jsonl => nodes.iter().map(line).collect(),
            TranscriptFormat::Html => {
                let start = if from == 0 { page_start(title, origin.as_deref()) } else { String::new() };
                let end = if next.is_none() { PAGE_END } else { "" };
                format!("{start}{}{end}", html(&nodes))
            }
        }
    };
    Ok(TranscriptResult::Ok { text: hub.render(render).await?, next })
}

fn line(node: &Node) -> String {
    format!("{}\n", serde_json::to_string(node).unwrap_or_default())
}
