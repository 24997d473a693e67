//! Small test clients for the hub's doors. [`Rpc`] uses JSON-RPC over HTTP, [`McpClient`] uses MCP over streamable HTTP. Both implement
//! [`Door`], so that a test can run with either. They own no state of the hub and check nothing; the tests check the results.

mod http;
mod json_rpc;
mod listener;
mod mcp;
mod sse;

use async_trait::async_trait;
use serde_json::{Value, json};

pub use json_rpc::{Rpc, RpcError};
pub use listener::Listener;
pub use mcp::{McpClient, Traffic};
pub use sse::SseEvent;

/// A client that calls the hub's methods by their names on `/rpc`, such as `claudecode.create`.
#[async_trait]
pub trait Door: Send + Sync {
    /// Calls a method and returns its result.
    ///
    /// # Errors
    /// If the hub refuses, or cannot be reached.
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError>;
}

/// A failed call. It is the same for every door.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}: {message} {data}", kind.as_deref().unwrap_or("error"))]
pub struct CallError {
    /// The stable name of the failure, such as `session_not_found`. For an HTTP status it is `http_401` or similar, and for a hub that could not
    /// be reached `transport`.
    pub kind: Option<String>,
    /// The message for people.
    pub message: String,
    /// The data of the error.
    pub data: Value,
}

impl CallError {
    /// A JSON-RPC error object, whose `data.type` is the name.
    fn of_json_rpc(error: &Value) -> Self {
        Self {
            kind: error["data"]["type"].as_str().map(str::to_owned),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error["data"].clone(),
        }
    }
}

impl From<http::HttpError> for CallError {
    fn from(error: http::HttpError) -> Self {
        let kind = match &error {
            http::HttpError::Status { status, .. } => format!("http_{status}"),
            http::HttpError::Transport(_) | http::HttpError::Slow(_) => "transport".to_owned(),
        };
        Self { kind: Some(kind), message: error.to_string(), data: Value::Null }
    }
}

impl From<RpcError> for CallError {
    fn from(error: RpcError) -> Self {
        let error = match error.code {
            0 => {
                return Self { kind: Some("transport".to_owned()), message: error.message, data: error.data };
            }
            1.. => {
                let kind = Some(format!("http_{}", error.code));
                return Self { kind, message: error.message, data: error.data };
            }
            _ => json!({"message":error.message,"data":error.data}),
        };
        Self::of_json_rpc(&error)
    }
}

/// Gets a page of the hub, such as `/metrics`.
///
/// # Errors
/// If the status is not a success, or the hub cannot be reached.
pub async fn get(url: &str, path: &str, token: &str) -> Result<String, CallError> {
    let endpoint = http::Endpoint::new(url, path, token);
    let exchange = async { http::whole(endpoint.get(&[]).await?).await };
    Ok(String::from_utf8_lossy(&endpoint.within(exchange).await?).into_owned())
}
