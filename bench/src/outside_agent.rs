//! Agents outside the hub: they have a session and its token, and request permits over `/rpc`. No process belongs to them.

use std::path::Path;

use anyhow::Context as _;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::Rpc;
use serde_json::json;

/// Creates a session for an agent outside the hub. Returns its token.
pub(crate) async fn token(hub: &HubProcess, dir: &Path, client: usize) -> anyhow::Result<String> {
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    let create = json!({"name": format!("agent-{client}"), "working_dir": dir.join("work")});
    let session = rpc.call("claudecode.create", create).await?["id"].clone();
    let configured = rpc.call("loopback.configure", json!({"session_id": session})).await?;
    let header = &configured["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"];
    let token = header.as_str().and_then(|header| header.strip_prefix("Bearer ")).context("a token")?;
    Ok(token.to_owned())
}
