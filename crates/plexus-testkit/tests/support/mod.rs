//! A minimal host for one agent process on the control channel. It starts a program with Claude Code's command line and a cleared
//! environment, and exchanges lines with it. The same code drives the real CLIs and the scripted agent.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::unix::pipe::{OpenOptions, Receiver};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The time limit of every step. It is longer than any step of a real CLI on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

pub const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// The directories of one test: a home, a working directory, and the scripted agent's log.
pub struct Dirs {
    pub home: PathBuf,
    pub work: PathBuf,
    pub log: PathBuf,
    _root: tempfile::TempDir,
}

impl Dirs {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let [home, work, log] = ["home", "work", "log"].map(|name| root.path().join(name));
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(&work).unwrap();
        Self { home, work, log, _root: root }
    }

    /// The complete environment of an agent in these directories.
    pub fn env(&self, model_url: &str) -> Vec<(String, String)> {
        let mut env = plexus_testkit::clean_env(&self.home, model_url);
        env.push(("SCRIPTED_AGENT_LOG".into(), self.log.to_string_lossy().into_owned()));
        env
    }

    /// A pipe in the working directory. A command of the agent writes a line to it to notify the test.
    pub fn signal(&self, name: &str) -> Signal {
        let path = self.work.join(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        Signal(OpenOptions::new().read_write(true).open_receiver(path).unwrap())
    }
}

pub struct Signal(Receiver);

impl Signal {
    pub async fn given(&mut self) {
        tokio::time::timeout(LIMIT, self.0.read_u8()).await.expect("the signal is not given").unwrap();
    }
}

pub struct Driver {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    /// Every line so far.
    pub seen: Vec<Value>,
}

/// The reply to a control request of the agent.
pub enum Reply {
    Success(Value),
    Error(&'static str),
    /// No reply.
    Silence,
}

impl Driver {
    pub fn start(program: &Path, cwd: &Path, env: &[(String, String)], prompt_tool: &str) -> Self {
        let mut child = Command::new(program)
            .args(["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"])
            .args(["--replay-user-messages", "--permission-mode", "default"])
            .args(["--permission-prompt-tool", prompt_tool, "--setting-sources=", "--strict-mcp-config"])
            .args(["--settings", r#"{"disableAllHooks":true}"#])
            .arg(format!("--session-id={SESSION}"))
            .current_dir(cwd)
            .env_clear()
            .envs(env.iter().map(|(name, value)| (name, value)))
            .env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, stdin, stdout, seen: Vec::new() }
    }

    pub async fn send(&mut self, message: Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    pub async fn request(&mut self, id: &str, request: Value) {
        self.send(json!({"type":"control_request","request_id":id,"request":request})).await;
    }

    pub async fn prompt(&mut self, uuid: &str, text: &str) {
        let message = json!({"role":"user","content":text});
        self.send(
            json!({"type":"user","uuid":uuid,"message":message,"parent_tool_use_id":null,"session_id":""}),
        )
        .await;
    }

    pub async fn reply(&mut self, request_id: &Value, reply: Reply) {
        let response = match reply {
            Reply::Success(response) => {
                json!({"subtype":"success","request_id":request_id,"response":response})
            }
            Reply::Error(error) => json!({"subtype":"error","request_id":request_id,"error":error}),
            Reply::Silence => return,
        };
        self.send(json!({"type":"control_response","response":response})).await;
    }

    /// The next line, or `None` if the agent has closed its output.
    pub async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(LIMIT, self.stdout.next_line())
            .await
            .expect("the agent is silent")
            .unwrap()?;
        let value: Value = serde_json::from_str(&line).unwrap_or_else(|_| Value::String(line));
        self.seen.push(value.clone());
        Some(value)
    }

    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        self.answering(|_| Reply::Silence, wanted).await
    }

    /// Registers the gate for every tool and waits for the confirmation.
    pub async fn initialize(&mut self) {
        let hooks = json!({"PreToolUse":[{"hookCallbackIds":["gate"],"timeout":2_147_483}]});
        self.request("init-1", json!({"subtype":"initialize","hooks":hooks})).await;
        let answer = self.until(|line| line["response"]["request_id"] == "init-1").await;
        assert_eq!(answer["response"]["subtype"], "success");
    }

    /// Reads up to the wanted line, and answers all requests until then.
    pub async fn answering(
        &mut self,
        mut decide: impl FnMut(&Value) -> Reply,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let found = async {
            loop {
                let line = self.next().await.expect("the agent has ended in a turn");
                if line["type"] == "control_request" {
                    self.reply(&line["request_id"], decide(&line["request"])).await;
                }
                if wanted(&line) {
                    return line;
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.expect("the wanted line does not arrive")
    }

    /// Reads to the end of the turn, which is the `idle` after a `result`, and answers all requests. Returns the `result`.
    pub async fn turn(&mut self, mut decide: impl FnMut(&Value) -> Reply) -> Value {
        let result = self.answering(&mut decide, |line| line["type"] == "result").await;
        self.answering(decide, |line| line["state"] == "idle").await;
        result
    }

    /// Closes the agent's stdin and waits for its exit.
    pub async fn finish(mut self) -> Option<i32> {
        drop(self.stdin.take());
        while self.next().await.is_some() {}
        tokio::time::timeout(LIMIT, self.child.wait()).await.expect("it does not end").unwrap().code()
    }

    /// The tool results so far: id, text, and whether it is an error.
    pub fn tool_results(&self) -> Vec<(String, String, bool)> {
        let messages = self.seen.iter().filter(|line| line["type"] == "user");
        let blocks = messages.filter_map(|line| line["message"]["content"].as_array()).flatten();
        blocks
            .filter(|block| block["type"] == "tool_result")
            .map(|block| {
                let text =
                    block["content"].as_str().map_or_else(|| block["content"].to_string(), str::to_owned);
                let id = block["tool_use_id"].as_str().unwrap_or_default().to_owned();
                (id, text, block["is_error"] == true)
            })
            .collect()
    }
}

/// Replies without an opinion at the gate, and allows every permission request.
pub fn approve(request: &Value) -> Reply {
    Reply::Success(match request["subtype"].as_str() {
        Some("can_use_tool") => json!({"behavior":"allow","updatedInput":request["input"]}),
        _ => json!({}),
    })
}

/// The outline of a turn: for each line its type, its subtype or state, and its content.
pub fn outline(lines: &[Value]) -> Vec<String> {
    let line = |line: &Value| {
        let inner = line["request"]["subtype"].as_str().or(line["message"]["content"][0]["type"].as_str());
        let parts = [line["type"].as_str(), line["subtype"].as_str(), line["state"].as_str(), inner];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    lines.iter().map(line).collect()
}

/// The outline of a turn with one allowed tool call, for the real CLIs and the scripted agent.
pub const ONE_ALLOWED_CALL: [&str; 14] = [
    "system session_state_changed running",
    "system init",
    "user", // the prompt, acknowledged
    "assistant tool_use",
    "control_request hook_callback",
    "control_response", // the host's own answers are echoed
    "system session_state_changed requires_action",
    "control_request can_use_tool",
    "control_response",
    "system session_state_changed running",
    "user tool_result",
    "assistant text",
    "result success",
    "system session_state_changed idle",
];
