//! A hub for tests, and plain HTTP requests, so that a test sees exactly the bytes on the wire.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use plexus_testkit::clean_env;
use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::model::ScriptedModel;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;

/// The time limit of every step of a test.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A hub and its directory.
pub(crate) struct TestHub {
    pub(crate) process: HubProcess,
    pub(crate) folder: TempDir,
}

impl TestHub {
    pub(crate) async fn start() -> Self {
        Self::with_settings("").await
    }

    /// A hub with this `plexus.toml`.
    pub(crate) async fn with_settings(toml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let claude = scripted_claude(folder.path());
        Self::with(folder, toml, claude, vec![]).await
    }

    /// A hub whose agents are this `claude`, with the scripted model.
    pub(crate) async fn with_claude(claude: PathBuf, model: &ScriptedModel) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let env = clean_env(folder.path(), &model.url());
        Self::with(folder, "", claude, env).await
    }

    /// A hub in this directory, with this `plexus.toml`, these agents and additional environment variables.
    pub(crate) async fn with(
        folder: TempDir,
        toml: &str,
        claude: PathBuf,
        env: Vec<(String, String)>,
    ) -> Self {
        let data_dir = folder.path().join("data");
        std::fs::create_dir(&data_dir).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        std::fs::write(data_dir.join("plexus.toml"), toml).unwrap();
        let options = HubOptions { claude, data_dir, extra_args: vec![], env };
        Self { process: HubProcess::start(options).await.unwrap(), folder }
    }

    pub(crate) fn authority(&self) -> &str {
        self.process.url().strip_prefix("http://").unwrap()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.process.token().unwrap())
    }

    /// Sends one request with the given headers only. `Host` is added if it is missing.
    pub(crate) async fn send(
        &self,
        request: http::request::Builder,
        body: impl Into<Bytes>,
    ) -> Response<Incoming> {
        let stream = TcpStream::connect(self.authority()).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = request.body(Full::new(body.into())).unwrap();
        let host = self.authority().parse().unwrap();
        request.headers_mut().entry("host").or_insert(host);
        tokio::time::timeout(LIMIT, sender.send_request(request)).await.unwrap().unwrap()
    }

    /// Posts to `/rpc` as the operator. Returns the complete response.
    pub(crate) async fn post_rpc(&self, body: impl Into<Bytes>) -> (StatusCode, Value) {
        let request = Request::post("/rpc").header("authorization", self.bearer());
        read(self.send(request, body).await).await
    }

    /// Calls a method as the operator.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, Value> {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (_, mut answer) = self.post_rpc(call.to_string()).await;
        match answer["error"].take() {
            Value::Null => Ok(answer["result"].take()),
            error => Err(error),
        }
    }

    /// The tools on `/mcp` for this `Authorization` header.
    pub(crate) async fn tools(&self, authorization: &str) -> Value {
        let request = Request::post("/mcp")
            .header("authorization", authorization)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let answer = Events::of(self.send(request, list).await).message().await.unwrap();
        answer["result"]["tools"].clone()
    }

    /// A session that runs this script, and the id of its first approval.
    pub(crate) async fn asking_session(&self, name: &str) -> (String, String) {
        let prompt = json!([{"tool": "Bash", "input": {"command": "touch made"}}]).to_string();
        let create = json!({"name": name, "working_dir": self.work(), "prompt": prompt});
        let id = self.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
        let approval = self.first_approval(&id).await;
        (id, approval)
    }

    pub(crate) async fn first_approval(&self, session: &str) -> String {
        let found = async {
            loop {
                let poll = json!({"session_id": session, "from_seq": 0, "wait_ms": 500});
                let seen = self.call("claudecode.poll", poll).await.unwrap();
                if let Some(id) = seen["pending_approvals"][0]["id"].as_str() {
                    return id.to_owned();
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.expect("the agent asks")
    }

    /// The digest of an approval.
    pub(crate) async fn digest(&self, approval: &str) -> String {
        let found = self.call("loopback.get", json!({"approval_id": approval})).await.unwrap();
        found["approval"]["digest"].as_str().unwrap().to_owned()
    }

    /// A session with an agent that the hub did not start, and the agent's token.
    pub(crate) async fn outside_session(&self, name: &str) -> (String, String) {
        let create = json!({"name": name, "working_dir": self.work()});
        let id = self.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
        let token = self.token_of_outside_run(&id).await;
        (id, token)
    }

    /// The token of an agent that the hub did not start, for this session.
    pub(crate) async fn token_of_outside_run(&self, session: &str) -> String {
        let config = self.call("loopback.configure", json!({"session_id": session})).await.unwrap();
        let bearer =
            config["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"].as_str().unwrap();
        bearer.strip_prefix("Bearer ").unwrap().to_owned()
    }

    /// Runs the program against this hub's data directory.
    pub(crate) async fn run(&self, args: &[&str]) -> Output {
        let data_dir = self.process.data_dir().to_str().unwrap();
        let mut command = plexus(self.folder.path());
        // An agent without a named directory works here, and not in the checkout.
        command.args(args).args(["--data-dir", data_dir]).current_dir(self.work());
        output(command).await
    }
}

/// Runs the program to its end.
pub(crate) async fn run(args: &[&str], home: &Path) -> Output {
    let mut command = plexus(home);
    command.args(args);
    output(command).await
}

async fn output(command: std::process::Command) -> Output {
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true).stdin(std::process::Stdio::null());
    tokio::time::timeout(LIMIT, command.output()).await.expect("the program ends").unwrap()
}

/// The program with a cleared environment.
pub(crate) fn plexus(home: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_plexus"));
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// A link named `claude` to the program, which then acts as the scripted agent.
pub(crate) fn scripted_claude(folder: &Path) -> PathBuf {
    let link = folder.join("claude");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plexus"), &link).unwrap();
    link
}

pub(crate) async fn read(response: Response<Incoming>) -> (StatusCode, Value) {
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into()))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An SSE stream, event by event.
pub(crate) struct Events {
    pub(crate) headers: HeaderMap,
    body: Incoming,
    buffer: String,
}

impl Events {
    pub(crate) fn of(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), 200);
        let (parts, body) = response.into_parts();
        Self { headers: parts.headers, body, buffer: String::new() }
    }

    /// The next event, unparsed. `None` at the end, or if the stream breaks.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let event = self.buffer[..end].to_owned();
                self.buffer.drain(..end + 2);
                return Some(event);
            }
            let frame =
                tokio::time::timeout(LIMIT, self.body.frame()).await.expect("something is sent")?.ok()?;
            self.buffer.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    }

    /// The next JSON-RPC message. It skips comments and empty events.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.next().await?;
            if let Some(data) =
                event.lines().find_map(|line| line.strip_prefix("data: ")).filter(|d| !d.is_empty())
            {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

/// Runs git in a directory, as a user without a configuration.
pub(crate) fn git(dir: &Path, args: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args).current_dir(dir);
    git.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", dir);
    let done = git.output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
}
