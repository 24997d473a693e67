//! The routes of the doors. TCP and the Unix socket serve the same routes. Authentication differs, and only the socket
//! has `/down`; both depend on the [`Transport`] of a request.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router, middleware};
use http::header;
use plexus_core::{Hub, may_end_hub, may_read_metrics};
use plexus_protocol::Principal;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::body::Reader;
use crate::callers::Callers;
use crate::identity::{self, Identity};
use crate::limits::DoorLimits;
use crate::mcp::{self, McpService};
use crate::refusal::Refusal;
use crate::serving::DownRequest;
use crate::site::Site;
use crate::{auth, console, rpc, sse};

/// How a request reached the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Over TCP, at a door that browsers see as this site.
    Tcp(Site),
    /// Over `hub.sock`.
    Socket,
}

/// The shared state of a door.
#[derive(Clone)]
pub(crate) struct Doors {
    pub(crate) hub: Arc<Hub>,
    pub(crate) transport: Transport,
    pub(crate) limits: DoorLimits,
    pub(crate) callers: Arc<Callers>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) mcp: McpService,
    /// Cancelled when the hub stops serving. All streams end then.
    pub(crate) stop: CancellationToken,
    /// Receives requests to end the children and the hub.
    pub(crate) down: mpsc::Sender<DownRequest>,
}

impl Doors {
    /// A reader for request bodies, with the limits of the doors.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { limits: &self.limits, figures: self.hub.door_figures() }
    }

    /// All routes, for callers on this machine.
    pub(crate) fn router(self) -> Router {
        let mut guarded = self
            .for_pages()
            .route("/mcp", post(mcp::permit::post).get(mcp::permit::get))
            .route("/sessions/{id}/events", get(sse::sessions::get))
            .route("/sessions/events", get(sse::changes::get))
            .route("/approvals/events", get(sse::approvals::get))
            .route("/metrics", get(metrics));
        if self.transport == Transport::Socket {
            guarded = guarded.route("/down", post(down));
        }
        self.guarded(guarded)
    }

    /// The routes that the console needs, for other machines.
    pub(crate) fn console_router(self) -> Router {
        let guarded = self.for_pages();
        self.guarded(guarded)
    }

    fn for_pages(&self) -> Router<Self> {
        Router::new()
            .route("/rpc", post(rpc::http::post).get(rpc::websocket::upgrade))
            .route("/events", get(sse::all::get))
    }

    /// Adds authentication to `routes`, then adds the public routes, and checks Host and Origin for all of them.
    fn guarded(self, routes: Router<Self>) -> Router {
        routes
            .route_layer(middleware::from_fn_with_state(self.clone(), auth::require_caller))
            .route("/health", get(health))
            .route("/identity", get(identity::get))
            .route("/", get(console::file))
            .route("/favicon.svg", get(console::file))
            .route("/worker.js", get(console::file))
            .route("/assets/{*path}", get(console::file))
            .route("/console/login", post(console::login))
            .fallback(|| async { Refusal::NotFound })
            .layer(middleware::from_fn_with_state(self.clone(), auth::require_own_site))
            .with_state(self)
    }
}

async fn health() -> Response {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")})).into_response()
}

/// Metrics in OpenMetrics format.
async fn metrics(State(doors): State<Doors>, Extension(principal): Extension<Principal>) -> Response {
    if !may_read_metrics(&principal) {
        return Refusal::NotForYou.into_response();
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], doors.hub.figures().await).into_response()
}

/// Ends the children and then the hub. Responds when the children have ended.
async fn down(State(doors): State<Doors>, Extension(principal): Extension<Principal>) -> Response {
    if !may_end_hub(&principal) {
        return Refusal::NotForYou.into_response();
    }
    let (done, ended) = oneshot::channel();
    if doors.down.send(DownRequest { done }).await.is_err() {
        return Refusal::Unavailable.into_response();
    }
    match ended.await {
        Ok(children) => Json(json!({"type": "ok", "children": children})).into_response(),
        Err(_) => Refusal::Unavailable.into_response(),
    }
}
