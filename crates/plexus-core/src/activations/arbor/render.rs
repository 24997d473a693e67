//! `arbor.render`: renders a conversation for a reader or for a model.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::arbor::{Format, RenderParams, RenderResult};

use super::checked;
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::conversations::{find_conversation, page};
use crate::hub::Method;
use crate::method::Audience;
use crate::render::{markdown, messages, text};

pub(super) fn method() -> Method {
    Method::new(
        "arbor.render",
        "Renders a conversation as text, as Markdown or as messages of the Claude API.",
        Audience::Programs,
        Needs::Read,
        render,
    )
    .repeatable()
}

async fn render(hub: Arc<Hub>, caller: Admitted, params: RenderParams) -> Result<RenderResult, Error> {
    let limit = checked(params.limit)?;
    let head =
        find_conversation(hub.store(), &caller, params.node_id, params.session_id, params.name.as_deref())
            .await?;
    let (nodes, next) = page(hub.store(), head, params.from, limit).await?;
    let render = move || match params.format.unwrap_or_default() {
        Format::Text => (Some(text(&nodes)), None),
        Format::Markdown => (Some(markdown(&nodes)), None),
        Format::Messages => (None, Some(messages(&nodes))),
    };
    let (text, messages) = hub.render(render).await?;
    Ok(RenderResult::Ok { text, messages, next })
}
