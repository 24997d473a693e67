//! `/mcp`: the methods marked for agents, as tools. rmcp implements the protocol, without sessions, for any server
//! behind the door. Our own handler in front of rmcp serves the permit, the one call that may wait for days.

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

/// The part of the door that rmcp serves, for any MCP server.
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

/// Serves an MCP server behind the door until `stop`.
pub(crate) fn service(server: impl ServerHandler + Clone, stop: &CancellationToken) -> McpService {
    let config = StreamableHttpServerConfig::default()
        // Without sessions, a client that disconnects ends its call, and no state has to survive a restart.
        .with_legacy_session_mode(false)
        // The door has checked Host and Origin, including the port. On the socket they do not matter.
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
