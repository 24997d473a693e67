//! `loopback.configure`: what a child needs to ask over MCP that the hub did not start.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::SessionParams;
use plexus_protocol::loopback::ConfigureResult;
use serde_json::{Value, json};

use crate::Hub;
use crate::access::{Admitted, Needs};
use crate::method::{Audience, Method};

/// Claude Code ends a tool call after this time, whatever progress it sees: the longest it knows, 24 days. Where
/// nothing is said, that is `MCP_TOOL_TIMEOUT` of its environment, or 28 hours.
pub(crate) const CALL_TIMEOUT_MS: u64 = 2_147_483_647;

pub(super) fn method() -> Method {
    Method::new(
        "loopback.configure",
        "What a `claude` started elsewhere needs so that its permission prompts come here, as those of a session.",
        Audience::Programs,
        Needs::Act,
        configure,
    )
}

async fn configure(hub: Arc<Hub>, caller: Admitted, params: SessionParams) -> Result<ConfigureResult, Error> {
    let session = hub.find_session(&caller, params.session_id, params.name.as_deref()).await?;
    hub.record(&caller, "configured", &session, json!({})).await?;
    let token = hub.session(session.id).configure().await?;
    let tool = "mcp__plexus__loopback_permit";
    let config = json!({"mcpServers": {"plexus": http_server(&hub.settings().url, &token)}});
    let args = ["--permission-prompt-tool", tool, "--permission-mode", "default"];
    Ok(ConfigureResult::Ok {
        session_id: session.id,
        mcp_config: config.as_object().cloned().unwrap_or_default(),
        permission_prompt_tool: tool.to_owned(),
        args: args.map(str::to_owned).to_vec(),
    })
}

/// Our MCP server over HTTP, as it stands in Claude Code's MCP configuration.
pub(crate) fn http_server(url: &str, token: &str) -> Value {
    json!({
        "type": "http",
        "url": format!("{url}/mcp"),
        "headers": {"Authorization": format!("Bearer {token}")},
        "timeout": CALL_TIMEOUT_MS,
        "alwaysLoad": true,
    })
}
