//! The hub's MCP server, as an entry in the MCP configuration of a child.

use serde_json::{Value, json};

/// Claude Code cancels a tool call after this time, whatever progress it sees. This is the longest timeout it accepts,
/// 24 days. Without one, Claude Code uses `MCP_TOOL_TIMEOUT` of its environment, or 28 hours.
pub(crate) const CALL_TIMEOUT_MS: u64 = 2_147_483_647;

/// The hub's MCP server over HTTP, in the format of Claude Code's MCP configuration.
pub(crate) fn http_server(url: &str, token: &str) -> Value {
    json!({
        "type": "http",
        "url": format!("{url}/mcp"),
        "headers": {"Authorization": format!("Bearer {token}")},
        "timeout": CALL_TIMEOUT_MS,
        "alwaysLoad": true,
    })
}
