//! End to end: a real hub process, a real `claude` or the scripted agent, the scripted model. A [`World`] is all of
//! them together; [`Setup`] says which CLI, which channel and which door, so that the same test runs over each.
//! Nothing here inherits the environment of whoever runs the tests.

pub mod browser;
pub mod cached;
pub mod chaos;
pub mod mcp_tools;
pub mod saved;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use plexus_testkit::hubproc::{HubOptions, HubProcess};
use plexus_testkit::model::ScriptedModel;
use plexus_testkit::rpc::{CallError, Door, McpClient, Rpc};
use plexus_testkit::{clean_env, require_claude};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

/// How long anything may take that a test waits for.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How the child asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// On its stdin and stdout.
    Control,
    /// Over MCP, through `plexus mcp`.
    Relay,
    /// Over MCP, by HTTP.
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

/// Which agent, which channel, which door.
#[derive(Debug, Clone)]
pub struct Setup {
    /// A pinned version of `claude`, or `None` for the scripted agent.
    pub cli: Option<&'static str>,
    /// How the child asks.
    pub channel: Channel,
    /// How the test calls the hub.
    pub door: DoorKind,
    /// More lines for `plexus.toml`.
    pub config: String,
    /// More for the environment of the hub.
    pub env: Vec<(String, String)>,
    /// Where all of it is, if not in the usual folder for temporary files.
    pub place: Option<PathBuf>,
    /// A data directory that an earlier hub left, to begin with a copy of it.
    pub saved: Option<PathBuf>,
}

impl Setup {
    /// A pinned CLI.
    pub fn cli(version: &'static str, channel: Channel, door: DoorKind) -> Self {
        Self::of(Some(version), channel, door)
    }

    fn of(cli: Option<&'static str>, channel: Channel, door: DoorKind) -> Self {
        Self { cli, channel, door, config: String::new(), env: Vec::new(), place: None, saved: None }
    }

    /// The scripted agent, on the control channel, over `/rpc`.
    pub fn scripted() -> Self {
        Self::of(None, Channel::Control, DoorKind::Rpc)
    }

    /// The same with more lines in `plexus.toml`.
    #[must_use]
    pub fn with_config(mut self, lines: &str) -> Self {
        self.config.push_str(lines);
        self.config.push('\n');
        self
    }

    /// Starts it all; `None` when the CLI is not at hand, which is reported under the test's name.
    ///
    /// # Errors
    /// When something cannot be started.
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

    /// Starts it all with this program as the agent.
    ///
    /// # Errors
    /// When something cannot be started.
    pub async fn start(self, claude: PathBuf) -> anyhow::Result<World> {
        let dir = TempDir::new_in(self.place.clone().unwrap_or_else(std::env::temp_dir))?;
        let [home, work, data] = ["home", "work", "data"].map(|name| dir.path().join(name));
        for folder in [&home, &work, &data] {
            std::fs::create_dir(folder)?;
        }
        if let Some(saved) = &self.saved {
            saved::copy(saved, &data, &|_| true)?;
        }
        let child_mcp = if self.channel == Channel::Http { "http" } else { "relay" };
        std::fs::write(data.join("plexus.toml"), format!("child_mcp = \"{child_mcp}\"\n{}", self.config))?;
        let model = ScriptedModel::start().await?;
        let mut env = clean_env(&home, &model.url());
        let log = dir.path().join("ran.jsonl");
        env.push(("SCRIPTED_AGENT_LOG".to_owned(), log.display().to_string()));
        env.extend(self.env.iter().cloned());
        env.push(("PLEXUS_LOG".to_owned(), "plexus=debug,info".to_owned()));
        let hub =
            HubProcess::start(HubOptions { data_dir: data, claude, extra_args: Vec::new(), env }).await?;
        let door = open_door(&hub, self.door).await?;
        Ok(World { hub, model, door, setup: self, work, home, log, dir })
    }
}

async fn open_door(hub: &HubProcess, kind: DoorKind) -> anyhow::Result<Box<dyn Door>> {
    let token = hub.token()?;
    Ok(match kind {
        DoorKind::Rpc => Box::new(Rpc::new(hub.url(), &token)),
        DoorKind::Mcp => Box::new(McpClient::connect(hub.url(), &token).await?),
    })
}

/// A hub, a model, and a door into the hub.
pub struct World {
    /// The hub.
    pub hub: HubProcess,
    /// The model every real CLI talks to.
    pub model: ScriptedModel,
    /// The operator's door.
    pub door: Box<dyn Door>,
    /// What was asked for.
    pub setup: Setup,
    /// Where agents work.
    pub work: PathBuf,
    /// The home of everything started here.
    pub home: PathBuf,
    /// What scripted agents ran, a line each.
    pub log: PathBuf,
    /// Where all of it is.
    dir: TempDir,
}

impl World {
    /// Calls a method that must succeed.
    ///
    /// # Errors
    /// With the method's name.
    pub async fn call(&self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.door.call(method, params).await.with_context(|| method.to_owned())
    }

    /// Calls a method that must be refused.
    ///
    /// # Errors
    /// When it succeeds.
    pub async fn refused(&self, method: &str, params: Value) -> anyhow::Result<CallError> {
        match self.door.call(method, params).await {
            Ok(result) => bail!("{method} was not refused: {result}"),
            Err(error) => Ok(error),
        }
    }

    /// Makes a session on the channel of this setup; `more` are further fields of `create`.
    ///
    /// # Errors
    /// When it is refused.
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

    /// Begins a turn.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn chat(&self, session: &str, prompt: &str) -> anyhow::Result<u64> {
        let started =
            self.call("claudecode.chat_async", json!({"session_id": session, "prompt": prompt})).await?;
        assert_eq!((&started["type"], &started["session_id"]), (&json!("started"), &json!(session)));
        started["turn"].as_u64().context("a turn")
    }

    /// Polls from the first event of the latest turn, waking with every new one, until `enough` says so.
    ///
    /// # Errors
    /// When it does not come to that in time; with all that was seen.
    pub async fn poll_until(&self, session: &str, enough: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let deadline = Instant::now() + LIMIT;
        let mut wait_after = 0;
        loop {
            // Waits for an event after the last one seen, then reads the whole turn.
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

    /// The latest turn with all its events. Large ones come in several pages.
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

    /// Waits until the session waits for an answer; the poll that shows it, and the first open approval.
    ///
    /// # Errors
    /// When it never asks.
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

    /// Answers an approval.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn respond(&self, approval: &Value, answer: Value) -> anyhow::Result<Value> {
        let mut params = json!({"approval_id": approval["id"]});
        for (field, value) in answer.as_object().into_iter().flatten() {
            params[field] = value.clone();
        }
        self.call("loopback.respond", params).await
    }

    /// Allows an approval as it is.
    ///
    /// # Errors
    /// When the answer does not count.
    pub async fn allow(&self, approval: &Value) -> anyhow::Result<()> {
        let answered = self.respond(approval, json!({"approve": true})).await?;
        assert_eq!(answered["type"], "ok", "{answered}");
        Ok(())
    }

    /// Waits for the end of the turn; the last poll, with all events.
    ///
    /// # Errors
    /// When it does not end.
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

/// The events of a poll of one type.
pub fn events(poll: &Value, kind: &str) -> Vec<Value> {
    let all = poll["events"].as_array().cloned().unwrap_or_default();
    all.into_iter().map(|numbered| numbered["event"].clone()).filter(|event| event["type"] == kind).collect()
}

/// Waits until `there` says so, looking again as files appear.
///
/// # Errors
/// When it does not come to that in time.
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

/// Whether a process is there and not a zombie.
pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
}

/// Lets a process write no file any longer than this; what the kernel then says is what a full disk says.
///
/// # Errors
/// When it cannot be set.
pub fn limit_files(pid: u32, limit: &str) -> anyhow::Result<()> {
    let pid = pid.to_string();
    let set =
        std::process::Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={limit}:")]).status()?;
    anyhow::ensure!(set.success(), "prlimit");
    Ok(())
}

/// Makes one test of an `async fn(World) -> anyhow::Result<()>` per pinned CLI, channel and door.
#[macro_export]
macro_rules! over_everything {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            use $crate::{Channel, DoorKind, Setup};
            $crate::over_everything!(@one $name cli_197_control_rpc "2.1.197" Control Rpc);
            $crate::over_everything!(@one $name cli_197_control_mcp "2.1.197" Control Mcp);
            $crate::over_everything!(@one $name cli_197_relay_rpc "2.1.197" Relay Rpc);
            $crate::over_everything!(@one $name cli_197_relay_mcp "2.1.197" Relay Mcp);
            $crate::over_everything!(@one $name cli_197_http_rpc "2.1.197" Http Rpc);
            $crate::over_everything!(@one $name cli_197_http_mcp "2.1.197" Http Mcp);
            $crate::over_everything!(@one $name cli_325_control_rpc "2.1.325" Control Rpc);
            $crate::over_everything!(@one $name cli_325_control_mcp "2.1.325" Control Mcp);
            $crate::over_everything!(@one $name cli_325_relay_rpc "2.1.325" Relay Rpc);
            $crate::over_everything!(@one $name cli_325_relay_mcp "2.1.325" Relay Mcp);
            $crate::over_everything!(@one $name cli_325_http_rpc "2.1.325" Http Rpc);
            $crate::over_everything!(@one $name cli_325_http_mcp "2.1.325" Http Mcp);
        }
    )*};
    (@one $name:ident $test:ident $version:literal $channel:ident $door:ident) => {
        #[tokio::test]
        async fn $test() -> anyhow::Result<()> {
            let name = concat!(stringify!($name), "::", stringify!($test));
            let setup = Setup::cli($version, Channel::$channel, DoorKind::$door);
            match setup.world(name).await? {
                Some(world) => super::$name(world).await,
                None => Ok(()),
            }
        }
    };
}

/// Makes one test of an `async fn(World) -> anyhow::Result<()>` per pinned CLI, on the control channel and over the
/// relay, by `/rpc`; with these lines in `plexus.toml`, if any.
#[macro_export]
macro_rules! over_channels {
    ($config:literal: $($name:ident),* $(,)?) => {$(
        mod $name {
            use $crate::{Channel, DoorKind, Setup};
            $crate::over_channels!(@one $config $name cli_197_control "2.1.197" Control);
            $crate::over_channels!(@one $config $name cli_197_relay "2.1.197" Relay);
            $crate::over_channels!(@one $config $name cli_325_control "2.1.325" Control);
            $crate::over_channels!(@one $config $name cli_325_relay "2.1.325" Relay);
        }
    )*};
    (@one $config:literal $name:ident $test:ident $version:literal $channel:ident) => {
        #[tokio::test]
        async fn $test() -> anyhow::Result<()> {
            let name = concat!(stringify!($name), "::", stringify!($test));
            let setup = Setup::cli($version, Channel::$channel, DoorKind::Rpc).with_config($config);
            match setup.world(name).await? {
                Some(world) => super::$name(world).await,
                None => Ok(()),
            }
        }
    };
    ($($name:ident),* $(,)?) => {
        $crate::over_channels!("": $($name),*);
    };
}

impl World {
    /// What scripted agents have run so far: `{tool_use_id, tool, input}`, in order.
    pub fn ran(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Where the files of a session's run lie.
    pub fn run_dir(&self, session: &str, run: u32) -> PathBuf {
        self.hub.data_dir().join("sessions").join(session).join("runs").join(run.to_string())
    }
}

/// A prompt for the scripted agent.
pub fn script(steps: &Value) -> String {
    json!({"steps": steps}).to_string()
}

/// The living processes that stem from a session's child, by the mark in their environment.
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

/// The PID that a process of a session's child has here, by the one that it sees itself in its PID namespace.
pub fn outside(session: &str, inside: u32) -> Option<u32> {
    let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let mut namespaces: Vec<_> = processes_of(session).into_iter().filter_map(namespace).collect();
    // The keeper is in ours, where another process may have that PID.
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
    /// The door of a session that was given the hub's tools, opened with the token of its first run.
    ///
    /// # Errors
    /// When it has none, or the hub refuses.
    pub async fn door_of(&self, session: &str) -> anyhow::Result<McpClient> {
        Ok(McpClient::connect(self.hub.url(), &self.token_of(session)?).await?)
    }

    /// The token of a session's first run.
    ///
    /// # Errors
    /// When it has none.
    pub fn token_of(&self, session: &str) -> anyhow::Result<String> {
        let config = std::fs::read_to_string(self.run_dir(session, 1).join("mcp.json"))?;
        let config: Value = serde_json::from_str(&config)?;
        Ok(text(&config["mcpServers"]["plexus"]["env"]["PLEXUS_TOKEN"]))
    }
}
