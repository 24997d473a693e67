//! `template.list`: the templates, without the configuration of their MCP servers.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::NoParams;
use plexus_protocol::template::{ListResult, Template, TemplateView};
use plexus_store::TemplateRow;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "template.list",
        "Lists the templates for new sessions. claudecode.create uses one with `template`.",
        Audience::Programs,
        Needs::Rule,
        list,
    )
    .repeatable()
}

async fn list(hub: Arc<Hub>, _caller: Admitted, _params: NoParams) -> Result<ListResult, Error> {
    let rows = hub.store().templates().await.map_err(store_error)?;
    Ok(ListResult::Ok { templates: rows.into_iter().map(view).collect() })
}

fn view(row: TemplateRow) -> TemplateView {
    let TemplateRow { name, template, saved_at } = row;
    let Template { prompt, working_dir, model, permission_mode, policy, budget, isolation, mcp_servers } =
        template;
    let mcp_servers = mcp_servers.into_keys().collect();
    TemplateView {
        name,
        prompt,
        working_dir,
        model,
        permission_mode,
        policy,
        budget,
        isolation,
        mcp_servers,
        saved_at,
    }
}
