//! MCP over streamable HTTP, as a parent agent uses it: `initialize`, `tools/list`, `tools/call`. It counts calls and bytes, which are the
//! cost of supervision.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::http::{self, Endpoint, HttpError};
use super::sse::Events;
use super::{CallError, Door};

const PROTOCOL: &str = "2025-06-18";
const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

/// An initialized client of `/mcp`.
#[derive(Debug)]
pub struct McpClient {
    endpoint: Endpoint,
    session: Option<String>,
    next_id: AtomicU64,
    calls: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// The traffic of the tool calls of an [`McpClient`], bodies only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// The number of tool calls.
    pub calls: u64,
    /// The bytes of the requests.
    pub sent_bytes: u64,
    /// The bytes of the responses.
    pub received_bytes: u64,
}

impl McpClient {
    /// Connects to the hub at `url`, `http://127.0.0.1:PORT`, and initializes. An empty token is not sent.
    ///
    /// # Errors
    /// If the hub cannot be reached or refuses.
    pub async fn connect(url: &str, token: &str) -> Result<Self, CallError> {
        let count = || AtomicU64::new(0);
        let (next_id, calls, sent, received) = (AtomicU64::new(1), count(), count(), count());
        let endpoint = Endpoint::new(url, "/mcp", token);
        let mut client = Self { endpoint, session: None, next_id, calls, sent, received };
        let params = json!({"protocolVersion":PROTOCOL,"capabilities":{},
                            "clientInfo":{"name":"plexus-testkit","version":"0"}});
        let (session, answer) = client.exchange("initialize", params).await?;
        client.session = session;
        result_of(answer)?;
        let done = json!({"jsonrpc":"2.0","method":"notifications/initialized"});
        client.endpoint.within(client.post(&done)).await?;
        client.sent = count();
        client.received = count();
        Ok(client)
    }

    /// The same client with this time limit instead of two minutes.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.endpoint.set_limit(limit);
        self
    }

    /// The result of `tools/list`.
    ///
    /// # Errors
    /// If the hub cannot be reached or refuses.
    pub async fn tools(&self) -> Result<Vec<Value>, CallError> {
        let mut result = result_of(self.exchange("tools/list", json!({})).await?.1)?;
        let Value::Array(tools) = result["tools"].take() else { return Ok(Vec::new()) };
        Ok(tools)
    }

    /// The traffic since `initialize`.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            calls: read(&self.calls),
            sent_bytes: read(&self.sent),
            received_bytes: read(&self.received),
        }
    }

    async fn post(&self, message: &Value) -> Result<Response<Incoming>, HttpError> {
        let mut headers = vec![ACCEPT];
        if message["method"] != "initialize" {
            headers.push(("mcp-protocol-version", PROTOCOL));
        }
        headers.extend(self.session.as_deref().map(|session| ("mcp-session-id", session)));
        let body = message.to_string();
        self.sent.fetch_add(body.len() as u64, Ordering::Relaxed);
        self.endpoint.post(&headers, body).await
    }

    /// One request and its response, with the session id if the hub returned one.
    async fn exchange(&self, method: &str, mut params: Value) -> Result<(Option<String>, Value), CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        // While a call waits, the hub sends progress with this token.
        params["_meta"] = json!({"progressToken":id});
        let request = json!({"jsonrpc":"2.0","id":id,"method":method,"params":params});
        let exchange = async {
            let response = self.post(&request).await?;
            let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            let session = header("mcp-session-id").map(str::to_owned);
            let streamed = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
            let answer =
                if streamed { self.streamed(response, id).await? } else { self.plain(response).await? };
            Ok((session, answer))
        };
        Ok(self.endpoint.within(exchange).await?)
    }

    async fn plain(&self, response: Response<Incoming>) -> Result<Value, HttpError> {
        let body = http::whole(response).await?;
        self.received.fetch_add(body.len() as u64, Ordering::Relaxed);
        serde_json::from_slice(&body).map_err(http::transport)
    }

    /// Reads the stream up to the response. It skips notifications.
    async fn streamed(&self, response: Response<Incoming>, id: u64) -> Result<Value, HttpError> {
        let mut body = response.into_body();
        let mut events = Events::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(http::transport)?;
            let Some(piece) = frame.data_ref() else { continue };
            self.received.fetch_add(piece.len() as u64, Ordering::Relaxed);
            for event in events.push(piece) {
                let message: Value = serde_json::from_str(&event.data).map_err(http::transport)?;
                if message["id"] == id && message["method"].is_null() {
                    return Ok(message);
                }
            }
        }
        Err(HttpError::Transport("the stream ended before the answer".to_owned()))
    }
}

fn result_of(mut answer: Value) -> Result<Value, CallError> {
    if answer["error"].is_null() {
        Ok(answer["result"].take())
    } else {
        Err(CallError::of_json_rpc(&answer["error"]))
    }
}

#[async_trait]
impl Door for McpClient {
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let params = json!({"name":method.replace('.', "_"),"arguments":params});
        let result = result_of(self.exchange("tools/call", params).await?.1)?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        if result["isError"] != true {
            return Ok(value);
        }
        Err(CallError {
            kind: value["type"].as_str().map(str::to_owned),
            message: value["message"].as_str().unwrap_or(text).to_owned(),
            data: value,
        })
    }
}
