//! A proxy for clients that cannot send a token. It forwards every request to the hub, adds the token, and replaces its own port in `Host`
//! and `Origin` with the hub's. It changes nothing else, so that a wrong host stays wrong.

use std::net::SocketAddr;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A running proxy. Dropping it stops it.
#[derive(Debug)]
pub struct Forwarder {
    address: SocketAddr,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone)]
struct Target {
    hub: String,
    /// `:PORT` of the proxy and of the hub.
    ports: (String, String),
    bearer: HeaderValue,
}

impl Forwarder {
    /// Starts a proxy for the hub at this URL, with this token.
    ///
    /// # Errors
    /// If it cannot listen, or the URL or the token is not valid.
    pub async fn start(hub_url: &str, token: &str) -> anyhow::Result<Self> {
        let hub = hub_url.strip_prefix("http://").context("the hub speaks HTTP")?.to_owned();
        let (_, port) = hub.rsplit_once(':').context("a URL with a port")?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let ports = (format!(":{}", address.port()), format!(":{port}"));
        let target = Target { ports, bearer: format!("Bearer {token}").parse()?, hub };
        let router = Router::new().fallback(forward).with_state(target);
        let task = tokio::spawn(async move {
            // The server stops with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, task })
    }

    /// Its address: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(State(target): State<Target>, mut request: Request) -> Response {
    for name in [header::HOST, header::ORIGIN] {
        target.replace_port(request.headers_mut(), &name);
    }
    request.headers_mut().insert(header::AUTHORIZATION, target.bearer.clone());
    match target.exchange(request).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

impl Target {
    fn replace_port(&self, headers: &mut HeaderMap, name: &HeaderName) {
        let Some(value) = headers.get(name).and_then(|value| value.to_str().ok()) else { return };
        let (ours, theirs) = &self.ports;
        if let Some(host) = value.strip_suffix(ours)
            && let Ok(value) = format!("{host}{theirs}").parse()
        {
            headers.insert(name, value);
        }
    }

    async fn exchange(&self, request: Request) -> anyhow::Result<Response> {
        let stream = TcpStream::connect(&self.hub).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The connection ends with the response, or when the client disconnects.
        tokio::spawn(connection);
        Ok(sender.send_request(request).await?.map(Body::new))
    }
}
