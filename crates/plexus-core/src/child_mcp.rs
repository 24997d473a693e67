//! The hub's MCP server in the configuration of a child.

use serde_json::{Value, json};

/// Claude Code ends a tool call after this time, whatever progress it sees: the longest it knows, 24 days. Where
/// nothing is said, that is `MCP_TOOL_TIMEOUT` of its environment, or 28 hours.
pub(crate) const CALL_TIMEOUT_MS: u64 = 2_147_483_647;

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
