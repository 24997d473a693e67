//! One HTTP request to the hub. Every request has its own connection, so a killed hub leaves no stale connection, and a caller that stops
//! waiting closes its own.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::http::request::Builder;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// The default time limit. It is longer than any wait that a test requests.
const LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("the hub answered {status}: {body}")]
    Status { status: u16, body: String },
    #[error("the hub is not reachable: {0}")]
    Transport(String),
    #[error("no answer within {0:?}")]
    Slow(Duration),
}

/// A path of the hub, and the token for it.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    authority: String,
    path: String,
    token: String,
    limit: Duration,
}

impl Endpoint {
    pub(super) fn new(url: &str, path: &str, token: &str) -> Self {
        let authority = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { authority, path: path.to_owned(), token: token.to_owned(), limit: LIMIT }
    }

    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Runs a complete exchange within the limit.
    pub(super) async fn within<T>(
        &self,
        exchange: impl Future<Output = Result<T, HttpError>>,
    ) -> Result<T, HttpError> {
        tokio::time::timeout(self.limit, exchange).await.unwrap_or(Err(HttpError::Slow(self.limit)))
    }

    /// Posts JSON and returns the response when its head has arrived. Any status but a success is an error.
    pub(super) async fn post(
        &self,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Response<Incoming>, HttpError> {
        let request = Request::post(&self.path).header("content-type", "application/json");
        self.send(request, headers, body).await
    }

    /// Sends a GET request; otherwise as [`Endpoint::post`].
    pub(super) async fn get(&self, headers: &[(&str, &str)]) -> Result<Response<Incoming>, HttpError> {
        self.send(Request::get(&self.path), headers, String::new()).await
    }

    async fn send(
        &self,
        request: Builder,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Response<Incoming>, HttpError> {
        let mut request = request.header("host", &self.authority);
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(transport)?;
        let stream = TcpStream::connect(&self.authority).await.map_err(transport)?;
        stream.set_nodelay(true).map_err(transport)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(transport)?;
        // The connection ends with the exchange. The request returns its errors.
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(transport)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = String::from_utf8_lossy(&whole(response).await?).into_owned();
        Err(HttpError::Status { status: status.as_u16(), body })
    }
}

/// The complete body.
pub(super) async fn whole(response: Response<Incoming>) -> Result<Bytes, HttpError> {
    Ok(response.into_body().collect().await.map_err(transport)?.to_bytes())
}

pub(super) fn transport(error: impl std::error::Error) -> HttpError {
    let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    HttpError::Transport(format!("{error}{source}"))
}
