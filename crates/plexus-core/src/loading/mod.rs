//! What a child loads besides Claude Code itself: MCP servers that it was given by name. All of it is decided when the
//! session is made, and handed over by the hub; Claude Code looks for none of it by itself.

mod servers;

use plexus_protocol::claudecode::LoadsView;
use plexus_store::SessionConfig;

pub(crate) use servers::{HUB_SERVER, given};

/// What a session loads, by name; `None` for nothing.
pub(crate) fn shown(config: &SessionConfig) -> Option<LoadsView> {
    let loads = LoadsView { mcp_servers: config.mcp_servers.keys().cloned().collect() };
    (loads != LoadsView::default()).then_some(loads)
}
