//! `/mcp`: the methods marked for agents, as tools. rmcp speaks the protocol, without sessions, over the hub's own
//! table of methods; the one call that may wait for days, the permit, is served by a handler of ours in front of it.

mod handler;
pub(crate) mod permit;
mod stream;

use std::sync::Arc;

use plexus_core::Hub;
use plexus_protocol::MAX_BODY_BYTES;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

pub use handler::INSTRUCTIONS;
use handler::Tools;

/// rmcp's half of the door.
pub(crate) type McpService = StreamableHttpService<Tools, NeverSessionManager>;

/// The tools of `hub`, served until `stop`.
pub(crate) fn service(hub: Arc<Hub>, stop: &CancellationToken) -> McpService {
    let config = StreamableHttpServerConfig::default()
        // Without sessions a client that vanishes ends its call, and nothing has to be remembered over a restart.
        .with_legacy_session_mode(false)
        // Host and Origin were checked at the door, port included, and do not matter on the socket.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .with_cancellation_token(stop.child_token());
    StreamableHttpService::new(
        move || Ok(Tools::new(Arc::clone(&hub))),
        Arc::new(NeverSessionManager::default()),
        config,
    )
}
