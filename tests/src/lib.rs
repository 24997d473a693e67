//! End-to-end tests: a real hub process, a real `claude` or the scripted agent, and the scripted model. A [`World`] contains all of
//! them. A [`Setup`] selects the CLI, the channel and the door, so that one test can run with each of them. No process here inherits
//! the environment of the test runner.

pub mod browser;
pub mod cached;
pub mod chaos;
pub mod matrix;
pub mod mcp_tools;
pub mod saved_data_dir;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::model::ScriptedModel;
use plexus_testkit::network::{Forward, Machine};
use plexus_testkit::rpc::{CallError, Door, McpClient, Rpc};
use plexus_testkit::{clean_env, require_claude};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

/// The time limit for everything that a test waits for.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How the child requests permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// On its stdin and stdout.
    Control,
    /// Over MCP, through `plexus mcp`.
    Relay,
    /// Over MCP, with HTTP.
    Http,
}

/// How the test calls the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoorKind {
    /// `POST /rpc`.
    Rpc,
    /// `/mcp`.
    Mcp,
}

/// The agent, the channel and the door of a test.
#[derive(Debug, Clone)]
pub struct Setup {
    /// A pinned version of `claude`, or `None` for the scripted agent.
    pub cli: Option<&'static str>,
    /// How the child requests permission.
    pub channel: Channel,
    /// How the test calls the hub.
    pub door: DoorKind,
    /// Additional lines for `plexus.toml`.
    pub config: String,
    /// Additional environment variables of the hub.
    pub env: Vec<(String, String)>,
    /// The parent of the world's directory, if not the usual directory for temporary files.
    pub parent_dir: Option<PathBuf>,
    /// A saved data directory of an earlier hub. The world starts with a copy of it.
    pub saved: Option<PathBuf>,
    /// The machine of the hub, if not that of the test.
    pub machine: Option<Machine>,
}

impl Setup {
    /// A setup with a pinned CLI.
    pub fn cli(version: &'static str, channel: Channel, door: DoorKind) -> Self {
        Self::of(Some(version), channel, door)
    }

    fn of(cli: Option<&'static str>, channel: Channel, door: DoorKind) -> Self {
        let config = String::new();
        Self { cli, channel, door, config, env: Vec::new(), parent_dir: None, saved: None, machine: None }
    }

    /// A setup with the scripted agent, on the control channel, over `/rpc`.
    pub fn scripted() -> Self {
        Self::of(None, Channel::Control, DoorKind::Rpc)
    }

    /// The same setup with additional lines in `plexus.toml`.
    #[must_use]
    pub fn with_config(mut self, lines: &str) -> Self {
        self.config.push_str(lines);
        self.config.push('\n');
        self
    }

    /// Starts the world. If the CLI is missing, reports the test as skipped and returns `None`.
    ///
    /// # Errors
    /// If a process cannot be started.
    pub async fn world(self, test: &str) -> anyhow::Result<Option<World>> {
        let claude = match self.cli {
            Some(version) => {
                let Some(claude) = require_claude(version, test) else { return Ok(None) };
                claude
            }
            None => plexus_testkit::binaries::scripted_agent()?,
        };
        self.start(claude).await.map(Some)
    }

    /// Starts the world with this program, or this JSON array of a program and its first arguments, as the agent.
    ///
    /// # Errors
    /// If a process cannot be started.
    pub async fn start(self, claude: PathBuf) -> anyhow::Result<World> {
        let dir = TempDir::new_in(self.parent_dir.clone().unwrap_or_else(std::env::temp_dir))?;
        let [home, work, data] = ["home", "work", "data"].map(|name| dir.path().join(name));
        for folder in [&home, &work, &data] {
            std::fs::create_dir(folder)?;
        }
        if let Some(saved) = &self.saved {
            saved_data_dir::copy(saved, &data, &|_| true)?;
        }
        let child_mcp = if self.channel == Channel::Http { "http" } else { "relay" };
        std::fs::write(data.join("plexus.toml"), format!("child_mcp = \"{child_mcp}\"\n{}", self.config))?;
        let model = ScriptedModel::start().await?;
        let mut env = clean_env(&home, &model.url());
        let log = dir.path().join("ran.jsonl");
        env.push(("SCRIPTED_AGENT_LOG".to_owned(), log.display().to_string()));
        env.extend(self.env.iter().cloned());
        env.push(("PLEXUS_LOG".to_owned(), "plexus=debug,info".to_owned()));
        let options = HubOptions { data_dir: data, claude, extra_args: Vec::new(), env };
        let mut cables = Vec::new();
        let hub = match &self.machine {
            None => HubProcess::start(options).await?,
            Some(machine) => {
                cables.push(machine.offer(address(&model.url())?)?);
                let program = dir.path().join("plexus");
                machine.wrap(&plexus_testkit::binaries::plexus()?, &program)?;
                let hub = HubProcess::start_program(program, options).await?;
                cables.push(machine.reach(address(hub.url())?)?);
                hub
            }
        };
        let door = open_door(&hub, self.door).await?;
        Ok(World { hub, model, door, setup: self, work, home, log, _cables: cables, dir })
    }
}

/// The address in a URL.
fn address(url: &str) -> anyhow::Result<std::net::SocketAddr> {
    Ok(url.strip_prefix("http://").context("HTTP")?.parse()?)
}

async fn open_door(hub: &HubProcess, kind: DoorKind) -> anyhow::Result<Box<dyn Door>> {
    let token = hub.token()?;
    Ok(match kind {
        DoorKind::Rpc => Box::new(Rpc::new(hub.url(), &token)),
        DoorKind::Mcp => Box::new(McpClient::connect(hub.url(), &token).await?),
    })
}

/// A hub, a model, and a client of the hub.
pub struct World {
    /// The hub.
    pub hub: HubProcess,
    /// The model of every real CLI.
    pub model: ScriptedModel,
    /// The operator's client.
    pub door: Box<dyn Door>,
    /// The setup that this world was started with.
    pub setup: Setup,
    /// The working directory of the agents.
    pub work: PathBuf,
    /// The home directory of every process of this world.
    pub home: PathBuf,
    /// The log of the scripted agents: one line per call that ran.
    pub log: PathBuf,
    /// The connections between the test and the hub's machine, if the hub has one of its own.
    _cables: Vec<Forward>,
    /// The directory that contains all the others.
    dir: TempDir,
}

impl World {
    /// Calls a method that must succeed.
    ///
    /// # Errors
    /// If the call fails. The error contains the name of the method.
    pub async fn call(&self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.door.call(method, params).await.with_context(|| method.to_owned())
    }

    /// Calls a method that must be refused.
    ///
    /// # Errors
    /// If the call succeeds.
    pub async fn refused(&self, method: &str, params: Value) -> anyhow::Result<CallError> {
        match self.door.call(method, params).await {
            Ok(result) => bail!("{method} was not refused: {result}"),
            Err(error) => Ok(error),
        }
    }

    /// Creates a session on the channel of this setup. `more` contains additional fields of `create`.
    ///
    /// # Errors
    /// If the call is refused.
    pub async fn create(&self, name: &str, more: Value) -> anyhow::Result<String> {
        let channel = if self.setup.channel == Channel::Control { "control" } else { "mcp" };
        let mut params = json!({"name": name, "working_dir": self.work, "channel": channel});
        for (field, value) in more.as_object().into_iter().flatten() {
            params[field] = value.clone();
        }
        let created = self.call("claudecode.create", params).await?;
        assert_eq!(created["type"], "created");
        Ok(text(&created["id"]))
    }

    /// Starts a turn. Returns its number.
    ///
    /// # Errors
    /// If the call is refused.
    pub async fn chat(&self, session: &str, prompt: &str) -> anyhow::Result<u64> {
        let started =
            self.call("claudecode.chat_async", json!({"session_id": session, "prompt": prompt})).await?;
        assert_eq!((&started["type"], &started["session_id"]), (&json!("started"), &json!(session)));
        started["turn"].as_u64().context("a turn")
    }

    /// Polls the latest turn from its first event, at every new event, until `enough` returns true.
    ///
    /// # Errors
    /// If that does not happen in time. The error contains the last poll.
    pub async fn poll_until(&self, session: &str, enough: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let deadline = Instant::now() + LIMIT;
        let mut wait_after = 0;
        loop {
            // Waits for an event after the last one, then reads the whole turn.
            let wait = json!({"session_id": session, "from_seq": wait_after, "wait_ms": 1000, "limit": 1});
            self.call("claudecode.poll", wait).await?;
            let poll = self.poll_all(session).await?;
            if enough(&poll) {
                return Ok(poll);
            }
            wait_after = poll["total_events"].as_u64().unwrap_or(0);
            if Instant::now() > deadline {
                bail!("not in time; the last poll: {poll:#}\nhub: {}", self.hub.stderr());
            }
        }
    }

    /// The latest turn with all its events. A large turn has several pages.
    async fn poll_all(&self, session: &str) -> anyhow::Result<Value> {
        let mut events = Vec::new();
        loop {
            let page = json!({"session_id": session, "from_seq": events.len(), "limit": 10_000});
            let mut poll = self.call("claudecode.poll", page).await?;
            let more = poll["events"].as_array_mut().map(std::mem::take).unwrap_or_default();
            let is_last = poll["has_more"] == false || more.is_empty();
            events.extend(more);
            if is_last {
                poll["events"] = Value::Array(events);
                return Ok(poll);
            }
        }
    }

    /// Waits until the session has an open approval. Returns that poll, and the first open approval.
    ///
    /// # Errors
    /// If the turn ends without an approval.
    pub async fn asked(&self, session: &str) -> anyhow::Result<(Value, Value)> {
        let poll = self
            .poll_until(session, |poll| {
                let ended = ["complete", "failed", "interrupted"].iter().any(|s| poll["status"] == *s);
                ended || !poll["pending_approvals"].as_array().is_none_or(Vec::is_empty)
            })
            .await?;
        let approval = poll["pending_approvals"][0].clone();
        if approval.is_null() {
            bail!("the turn ended without a question: {poll:#}");
        }
        assert_eq!(poll["status"], "awaiting_permission", "{poll:#}");
        Ok((poll, approval))
    }

    /// Writes a file in the working directory.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn plant(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let path = self.file(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(std::fs::write(path, text)?)
    }

    /// Answers an approval.
    ///
    /// # Errors
    /// If the call is refused.
    pub async fn respond(&self, approval: &Value, answer: Value) -> anyhow::Result<Value> {
        let mut params = json!({"approval_id": approval["id"]});
        for (field, value) in answer.as_object().into_iter().flatten() {
            params[field] = value.clone();
        }
        self.call("loopback.respond", params).await
    }

    /// Allows an approval without changes.
    ///
    /// # Errors
    /// If the answer is refused.
    pub async fn allow(&self, approval: &Value) -> anyhow::Result<()> {
        let answered = self.respond(approval, json!({"approve": true})).await?;
        assert_eq!(answered["type"], "ok", "{answered}");
        Ok(())
    }

    /// Waits for the end of the turn. Returns the last poll, with all events.
    ///
    /// # Errors
    /// If the turn does not end in time.
    pub async fn ended(&self, session: &str) -> anyhow::Result<Value> {
        self.poll_until(session, |poll| {
            ["complete", "failed", "interrupted"].iter().any(|s| poll["status"] == *s)
        })
        .await
    }

    /// A file in the working directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }
}

/// The text of a JSON string.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The events of one type in a poll.
pub fn events(poll: &Value, kind: &str) -> Vec<Value> {
    let all = poll["events"].as_array().cloned().unwrap_or_default();
    all.into_iter().map(|numbered| numbered["event"].clone()).filter(|event| event["type"] == kind).collect()
}

/// Waits until `there` returns true. It checks again every few milliseconds.
///
/// # Errors
/// If that does not happen in time.
pub async fn until(what: &str, there: impl Fn() -> bool) -> anyhow::Result<()> {
    let deadline = Instant::now() + LIMIT;
    while !there() {
        if Instant::now() > deadline {
            bail!("not in time: {what}");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Whether a process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
}

/// Limits the size of the files that a process can write. At the limit, writes fail as on a full disk.
///
/// # Errors
/// If the limit cannot be set.
pub fn limit_files(pid: u32, limit: &str) -> anyhow::Result<()> {
    let pid = pid.to_string();
    let set =
        std::process::Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={limit}:")]).status()?;
    anyhow::ensure!(set.success(), "prlimit");
    Ok(())
}

impl World {
    /// The calls that scripted agents have run so far: `{tool_use_id, tool, input}`, in order.
    pub fn ran(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The directory of a session's run.
    pub fn run_dir(&self, session: &str, run: u32) -> PathBuf {
        self.hub.data_dir().join("sessions").join(session).join("runs").join(run.to_string())
    }
}

/// A prompt for the scripted agent.
pub fn script(steps: &Value) -> String {
    json!({"steps": steps}).to_string()
}

/// The running descendants of a session's child, identified by a variable in their environment.
pub fn processes_of(session: &str) -> Vec<u32> {
    let mark = format!("PLEXUS_SESSION_ID={session}").into_bytes();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            is_alive(*pid) && environ.split(|byte| *byte == 0).any(|entry| entry == mark)
        })
        .collect()
}

/// The pid, in the namespace of the test, of a process of a session's child with the pid `inside` in its own namespace.
pub fn outside(session: &str, inside: u32) -> Option<u32> {
    let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let mut namespaces: Vec<_> = processes_of(session).into_iter().filter_map(namespace).collect();
    // The keeper is in the test's namespace, where another process may have that pid.
    let ours = std::fs::read_link("/proc/self/ns/pid").ok();
    namespaces.retain(|namespace| Some(namespace) != ours.as_ref());
    if namespaces.is_empty() {
        return Some(inside);
    }
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let innermost = pids.and_then(|pids| pids.split_ascii_whitespace().last()?.parse().ok());
        innermost == Some(inside) && namespace(*pid).is_some_and(|namespace| namespaces.contains(&namespace))
    })
}

impl World {
    /// A client of a session with the hub's tools, with the token of its first run.
    ///
    /// # Errors
    /// If it has no token, or the hub refuses it.
    pub async fn door_of(&self, session: &str) -> anyhow::Result<McpClient> {
        Ok(McpClient::connect(self.hub.url(), &self.token_of(session)?).await?)
    }

    /// The token of a session's first run.
    ///
    /// # Errors
    /// If it has no token.
    pub fn token_of(&self, session: &str) -> anyhow::Result<String> {
        let config = std::fs::read_to_string(self.run_dir(session, 1).join("mcp.json"))?;
        let config: Value = serde_json::from_str(&config)?;
        Ok(text(&config["mcpServers"]["plexus"]["env"]["PLEXUS_TOKEN"]))
    }
}
