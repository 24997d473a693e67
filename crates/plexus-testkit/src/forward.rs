//! A way into a hub for clients that cannot be given a token: it listens beside the hub and passes every request on
//! with the token added, and with its own port in `Host` and `Origin` replaced by the hub's. Nothing else is touched,
//! so that a wrong host stays as wrong as it was.

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

/// A running forwarder; dropping it ends it.
#[derive(Debug)]
pub struct Forwarder {
    address: SocketAddr,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone)]
struct Way {
    hub: String,
    /// `:PORT` as clients name it, and as the hub wants it.
    ports: (String, String),
    bearer: HeaderValue,
}

impl Forwarder {
    /// Listens for clients of the hub at this URL and speaks for them with this token.
    ///
    /// # Errors
    /// When it cannot listen, or the URL or the token make no sense.
    pub async fn start(hub_url: &str, token: &str) -> anyhow::Result<Self> {
        let hub = hub_url.strip_prefix("http://").context("the hub speaks HTTP")?.to_owned();
        let (_, port) = hub.rsplit_once(':').context("a URL with a port")?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let ports = (format!(":{}", address.port()), format!(":{port}"));
        let way = Way { ports, bearer: format!("Bearer {token}").parse()?, hub };
        let router = Router::new().fallback(pass_on).with_state(way);
        let task = tokio::spawn(async move {
            // It ends with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, task })
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
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

async fn pass_on(State(way): State<Way>, mut request: Request) -> Response {
    for name in [header::HOST, header::ORIGIN] {
        way.name_the_hub(request.headers_mut(), &name);
    }
    request.headers_mut().insert(header::AUTHORIZATION, way.bearer.clone());
    match way.exchange(request).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

impl Way {
    fn name_the_hub(&self, headers: &mut HeaderMap, name: &HeaderName) {
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
        // It ends with the answer, or with the client that no longer reads it.
        tokio::spawn(connection);
        Ok(sender.send_request(request).await?.map(Body::new))
    }
}
