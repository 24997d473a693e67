//! A client of `/rpc` that keeps its connection, as browsers and HTTP libraries do.

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// One connection. It has one request at a time.
pub(crate) struct KeptConnection {
    requests: SendRequest<Full<Bytes>>,
    authority: String,
    authorization: String,
}

impl KeptConnection {
    pub(crate) async fn open(url: &str, token: &str) -> anyhow::Result<Self> {
        let authority = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let stream = TcpStream::connect(&authority).await?;
        stream.set_nodelay(true)?;
        let (requests, connection) = handshake(TokioIo::new(stream)).await?;
        // It ends with `requests`, which reports its errors.
        tokio::spawn(connection);
        Ok(Self { requests, authority, authorization: format!("Bearer {token}") })
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = Request::post("/rpc")
            .header("host", &self.authority)
            .header("authorization", &self.authorization)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))?;
        self.requests.ready().await?;
        let response = self.requests.send_request(request).await.with_context(|| method.to_owned())?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "{method}: {status}: {}", String::from_utf8_lossy(&body));
        let mut answer: Value = serde_json::from_slice(&body)?;
        ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        Ok(answer["result"].take())
    }
}
