//! The client of a running hub: one connection per request, over the Unix socket or over loopback HTTP with a token. It
//! distinguishes a request that was never sent from one that the hub may have handled, because only the first is safe to retry.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use plexus_protocol::console::Proof;
use plexus_server::{HubKey, PARENT_HEADER, nonce};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::cli_words;

const MAX_PROOF_BYTES: usize = 4096;
/// How long a hub may take to prove its identity.
const PROVEN_WITHIN: Duration = Duration::from_secs(10);

/// The address of the hub and the identity of the caller.
#[derive(Debug, Clone)]
pub(crate) enum Client {
    /// The operator's own programs.
    Operator {
        /// `DIR/hub.sock`.
        socket: PathBuf,
    },
    /// A parent agent outside the hub.
    Parent {
        /// `DIR/hub.sock`.
        socket: PathBuf,
        /// Its name.
        name: String,
    },
    /// A child of the hub.
    Child {
        /// `HOST:PORT` of the hub.
        authority: String,
        /// The token of its run.
        token: String,
        /// The key that the hub proves its identity with before it gets the token. A hub of an earlier version has none.
        key: Option<HubKey>,
    },
}

/// Why a call has no result.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    /// Nothing was sent, because there was no connection.
    #[error("the hub is not reachable: {0}")]
    NotReached(io::Error),
    /// The connection was lost. The hub may have handled the request.
    #[error("the connection to the hub was lost: {0}")]
    Lost(String),
    /// The hub returned an error.
    #[error("{message} ({kind})")]
    Refused {
        /// The error code.
        kind: String,
        /// For people.
        message: String,
        /// `{type, message, …}`.
        data: Value,
    },
}

impl CallError {
    /// The message for the reader of this process: a person at the command line, or a program.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Refused { kind, message, data } => {
                format!("{} ({kind})", cli_words::message(message, data))
            }
            Self::NotReached(_) | Self::Lost(_) => self.to_string(),
        }
    }
}

impl Client {
    /// Calls a method.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let (status, bytes) = self.post("/rpc", body).await?;
        let mut answer: Value = serde_json::from_slice(&bytes).map_err(|error| {
            CallError::Lost(format!("HTTP {status} with a response that is not JSON: {error}"))
        })?;
        match answer["error"].take() {
            Value::Null => Ok(answer["result"].take()),
            error => Err(CallError::Refused {
                kind: error["data"]["type"].as_str().unwrap_or("error").to_owned(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
                data: error["data"].clone(),
            }),
        }
    }

    /// Posts a body and returns the whole response, without a time limit.
    pub(crate) async fn post(&self, path: &str, body: String) -> Result<(StatusCode, Bytes), CallError> {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        self.exchange(request, body).await
    }

    /// Gets a whole response.
    pub(crate) async fn get(&self, path: &str) -> Result<(StatusCode, Bytes), CallError> {
        self.exchange(Request::get(path), String::new()).await
    }

    async fn exchange(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Result<(StatusCode, Bytes), CallError> {
        let request = self.signed(request).body(Full::new(Bytes::from(body))).map_err(unsendable)?;
        let (stream, local) = self.connect().await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
        // The connection makes progress only while it is polled, and is dropped with this call.
        let answer = async {
            if let Self::Child { authority, key: Some(key), .. } = self {
                demand_proof(&mut sender, authority, local, key).await?;
            }
            receive(sender.send_request(request).await.map_err(lost)?).await
        };
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            // The answer sees the end of the connection.
            _ = connection => answer.await,
        }
    }

    /// Opens a connection.
    pub(crate) async fn dial(&self) -> Result<Box<dyn Wire>, CallError> {
        Ok(self.connect().await?.0)
    }

    /// Opens a connection, and returns the local address if it has one.
    async fn connect(&self) -> Result<(Box<dyn Wire>, Option<SocketAddr>), CallError> {
        match self {
            Self::Operator { socket } | Self::Parent { socket, .. } => {
                Ok((Box::new(UnixStream::connect(socket).await.map_err(CallError::NotReached)?), None))
            }
            Self::Child { authority, .. } => {
                let stream = TcpStream::connect(authority).await.map_err(CallError::NotReached)?;
                stream.set_nodelay(true).map_err(CallError::NotReached)?;
                let local = stream.local_addr().map_err(CallError::NotReached)?;
                Ok((Box::new(stream), Some(local)))
            }
        }
    }

    /// Adds the headers that name the host and the caller.
    pub(crate) fn signed(&self, request: http::request::Builder) -> http::request::Builder {
        match self {
            Self::Operator { .. } => request.header(header::HOST, "hub.sock"),
            Self::Parent { name, .. } => request.header(header::HOST, "hub.sock").header(PARENT_HEADER, name),
            Self::Child { authority, token, .. } => request
                .header(header::HOST, authority)
                .header(header::AUTHORIZATION, format!("Bearer {token}")),
        }
    }
}

/// A byte stream in both directions.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// Requires the peer to prove that it is the hub, because another program may own the port or the connection. A proof relayed
/// from the hub names the other program's connection, not this one. Nothing was sent before, so the call is safe to retry.
async fn demand_proof(
    sender: &mut SendRequest<Full<Bytes>>,
    authority: &str,
    local: Option<SocketAddr>,
    key: &HubKey,
) -> Result<(), CallError> {
    let nonce = nonce().map_err(CallError::NotReached)?;
    let request = Request::get(HubKey::path(&nonce)).header(header::HOST, authority);
    let request = request.body(Full::default()).map_err(unsendable)?;
    let answered = async {
        let body = sender.send_request(request).await.ok()?.into_body();
        let body = Limited::new(body, MAX_PROOF_BYTES).collect().await.ok()?.to_bytes();
        serde_json::from_slice::<Proof>(&body).ok()
    };
    let proof = tokio::time::timeout(PROVEN_WITHIN, answered).await.ok().flatten();
    match proof {
        Some(proof) if Some(proof.peer) == local && key.proves(&proof, authority, &nonce) => Ok(()),
        _ => Err(CallError::NotReached(io::Error::other(
            "the program on its port did not prove that it is the hub",
        ))),
    }
}

async fn receive(response: Response<Incoming>) -> Result<(StatusCode, Bytes), CallError> {
    let status = response.status();
    Ok((status, response.into_body().collect().await.map_err(lost)?.to_bytes()))
}

fn unsendable(error: http::Error) -> CallError {
    CallError::NotReached(io::Error::new(io::ErrorKind::InvalidInput, error))
}

pub(crate) fn lost(error: hyper::Error) -> CallError {
    CallError::Lost(error.to_string())
}
