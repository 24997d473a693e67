//! `loopback.configure`: the configuration for a `claude` that the hub did not start, to request approvals over MCP.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::SessionParams;
use plexus_protocol::loopback::ConfigureResult;
use serde_json::json;

use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::processes::child_mcp::http_server;

pub(super) fn method() -> Method {
    Method::new(
        "loopback.configure",
        "Returns the configuration with which a `claude` outside the hub sends its permission requests here, \
         as requests of a session.",
        Audience::Programs,
        Needs::Act,
        configure,
    )
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn configure(hub: Arc<Hub>, caller: Admitted, params: SessionParams) -> Result<ConfigureResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    session_audit::record(hub.commits(), &caller, "configured", &session, json!({})).await?;
    let token = hub.session(session.id).configure().await?;
    let tool = "mcp__plexus__loopback_permit";
    let config = json!({"mcpServers": {"plexus": http_server(&hub.address().url, &token)}});
    let args = ["--permission-prompt-tool", tool, "--permission-mode", "default"];
    Ok(ConfigureResult::Ok {
        session_id: session.id,
        mcp_config: config.as_object().cloned().unwrap_or_default(),
        permission_prompt_tool: tool.to_owned(),
        args: args.map(str::to_owned).to_vec(),
    })
}
