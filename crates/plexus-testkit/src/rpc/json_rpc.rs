//! JSON-RPC 2.0 over `POST /rpc`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::http::{self, Endpoint, HttpError};
use super::{CallError, Door};

/// A client of `/rpc`.
#[derive(Debug)]
pub struct Rpc {
    endpoint: Endpoint,
    next_id: AtomicU64,
}

/// A JSON-RPC error. For a response with another HTTP status, the (positive) code is that status. If the hub could not be reached, the code
/// is 0.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code}: {message} {data}")]
pub struct RpcError {
    /// The code, such as -32602.
    pub code: i64,
    /// The message for people.
    pub message: String,
    /// The data of the error. `data.type` is its stable name.
    pub data: Value,
}

impl Rpc {
    /// A client for the hub at `url`, `http://127.0.0.1:PORT`. An empty token is not sent.
    #[must_use]
    pub fn new(url: &str, token: &str) -> Self {
        Self { endpoint: Endpoint::new(url, "/rpc", token), next_id: AtomicU64::new(1) }
    }

    /// The same client with this time limit instead of two minutes.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.endpoint.set_limit(limit);
        self
    }

    /// Calls a method and returns its result.
    ///
    /// # Errors
    /// If the hub returns an error, or cannot be reached.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let request = json!({"jsonrpc":"2.0","id":id,"method":method,"params":params});
        let exchange = async { http::whole(self.endpoint.post(&[], request.to_string()).await?).await };
        let body = self.endpoint.within(exchange).await?;
        let mut answer: Value = serde_json::from_slice(&body).map_err(|error| RpcError {
            code: 0,
            message: format!("the answer is not JSON: {error}"),
            data: String::from_utf8_lossy(&body).into(),
        })?;
        let error = &mut answer["error"];
        if error.is_null() {
            return Ok(answer["result"].take());
        }
        Err(RpcError {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error["data"].take(),
        })
    }
}

impl From<HttpError> for RpcError {
    fn from(error: HttpError) -> Self {
        let code = if let HttpError::Status { status, .. } = &error { i64::from(*status) } else { 0 };
        Self { code, message: error.to_string(), data: Value::Null }
    }
}

#[async_trait]
impl Door for Rpc {
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        Ok(Rpc::call(self, method, params).await?)
    }
}
