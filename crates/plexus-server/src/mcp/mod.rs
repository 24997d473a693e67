//! `/mcp`: the methods marked for agents, as tools. rmcp speaks the protocol, without sessions, for whatever server is
//! put behind the door; the one call that may wait for days, the permit, is served by a handler of ours in front of it.

mod handler;
pub(crate) mod permit;
mod stream;
mod toolbox;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Request;
use http_body_util::Full;
use plexus_core::Hub;
use plexus_protocol::MAX_BODY_BYTES;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use handler::HubTools;
pub use toolbox::{ToolServer, Toolbox};

/// rmcp's half of the door, with whatever server behind it.
#[derive(Clone)]
pub(crate) struct McpService(Arc<dyn Fn(Request<Full<Bytes>>) -> BoxFuture<'static, Response> + Send + Sync>);

impl McpService {
    pub(crate) async fn handle(&self, request: Request<Full<Bytes>>) -> Response {
        (self.0)(request).await
    }
}

/// The MCP server of a hub.
pub(crate) fn server(hub: &Arc<Hub>) -> ToolServer<HubTools> {
    ToolServer(HubTools::new(Arc::clone(hub)))
}

/// Puts an MCP server behind the door, until `stop`.
pub(crate) fn service(server: impl ServerHandler + Clone, stop: &CancellationToken) -> McpService {
    let config = StreamableHttpServerConfig::default()
        // Without sessions a client that vanishes ends its call, and nothing has to be remembered over a restart.
        .with_legacy_session_mode(false)
        // Host and Origin were checked at the door, port included, and do not matter on the socket.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .with_cancellation_token(stop.child_token());
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    McpService(Arc::new(move |request| {
        let service = service.clone();
        async move { service.handle(request).await.map(Body::new) }.boxed()
    }))
}
