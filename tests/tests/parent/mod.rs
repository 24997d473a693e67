//! A real `claude` as the parent. It uses Plexus as an MCP server through `plexus mcp` and supervises a real child of the same
//! version. Its scripted model acts on the result of the last tool call.

mod managing;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use plexus_e2e::{Channel, DoorKind, LIMIT, Setup, World, events, over, text, until};
use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::model::{ScriptedModel, Step, tool_results};
use plexus_testkit::{binaries, clean_env, require_claude};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

over!(channels: a_parent_supervises_its_child_until_it_finishes);
over!(channels: a_call_that_a_parent_denies_never_runs);
over!(channels: a_waiting_parent_survives_a_kill_of_the_hub);

/// The first prompt of the parent.
const SUPERVISE: &str = "SUPERVISE a child";

/// The directories of a parent, and the hub and model that it uses.
struct ParentSetup<'a> {
    claude: PathBuf,
    home: &'a Path,
    work: &'a Path,
    data: &'a Path,
    model: &'a ScriptedModel,
}

impl<'a> ParentSetup<'a> {
    fn of(world: &'a World) -> anyhow::Result<Self> {
        let version = world.setup.cli.context("a real CLI")?;
        Ok(Self {
            claude: plexus_testkit::claude(version).context("the CLI was found before")?,
            home: &world.home,
            work: &world.work,
            data: world.hub.data_dir(),
            model: &world.model,
        })
    }

    /// Plexus in the parent's MCP config, as users write it.
    fn server(&self) -> anyhow::Result<Value> {
        Ok(json!({
            "type": "stdio",
            "command": binaries::plexus()?,
            "args": ["mcp", "--data-dir", self.data],
        }))
    }

    /// Starts a parent that has only the hub's tools and may use them without permission.
    fn start(&self, server: &Value, env: &[(&str, &str)]) -> anyhow::Result<Parent> {
        let mut command = Command::new(&self.claude);
        command.args(["-p", SUPERVISE, "--output-format", "stream-json", "--verbose", "--setting-sources="]);
        command.args(["--strict-mcp-config", "--allowedTools", "mcp__plexus"]);
        command.arg("--mcp-config").arg(json!({"mcpServers": {"plexus": server}}).to_string());
        command.env_clear().envs(clean_env(self.home, &self.model.url())).envs(env.iter().copied());
        command.current_dir(self.work).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Parent { process: command.spawn()? })
    }
}

/// A running `claude -p`.
struct Parent {
    process: Child,
}

/// The result of a parent.
struct Report {
    /// Its last text.
    said: String,
    /// Its session id of its CLI.
    session: Value,
}

impl Parent {
    async fn ended(mut self) -> anyhow::Result<Report> {
        let mut lines = BufReader::new(self.process.stdout.take().context("stdout")?).lines();
        let mut stderr = self.process.stderr.take().context("stderr")?;
        let reading = async {
            let mut told: Vec<Value> = Vec::new();
            while let Some(line) = lines.next_line().await? {
                told.push(serde_json::from_str(&line)?);
            }
            anyhow::Ok(told)
        };
        let mut complaints = String::new();
        let both = async { tokio::join!(reading, stderr.read_to_string(&mut complaints)) };
        let told = tokio::time::timeout(LIMIT, both).await.context("the parent does not end")?.0?;
        if !self.process.wait().await?.success() {
            bail!("the parent failed: {complaints}\n{told:#?}");
        }
        let line = |key: &str, value: &str| told.iter().find(|line| line[key] == value).cloned();
        Ok(Report {
            said: text(&line("type", "result").context("no result")?["result"]),
            session: line("subtype", "init").context("no init")?["session_id"].clone(),
        })
    }
}

/// The supervisor's answer to each approval of its child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allow,
    Deny,
}

/// An approval as the parent received it, and whether the child's command had already run.
#[derive(Debug, Clone)]
struct Asked {
    approval: Value,
    had_run: bool,
}

/// The scripted model of a parent, and the approvals that it received.
struct Supervisor {
    verdict: Verdict,
    create: Value,
    file: PathBuf,
    asked: Mutex<Vec<Asked>>,
}

impl Supervisor {
    /// Scripts the model of a parent whose child works in `work`.
    fn script(model: &ScriptedModel, work: &Path, channel: Channel, verdict: Verdict) -> Arc<Self> {
        let channel = if channel == Channel::Control { "control" } else { "mcp" };
        let supervisor = Arc::new(Self {
            verdict,
            create: json!({"name": "child", "working_dir": work, "channel": channel}),
            file: work.join("made.txt"),
            asked: Mutex::default(),
        });
        let mind = Arc::clone(&supervisor);
        model.script("SUPERVISE", vec![Step::from_fn(move |request| mind.next(request)); 60]);
        supervisor
    }

    fn next(&self, request: &Value) -> Step {
        let results: Vec<Value> = tool_results(request)
            .iter()
            .map(|result| serde_json::from_str(&result.text).unwrap_or_else(|_| json!(result.text)))
            .collect();
        let Some(last) = results.last() else { return create_child(request, &self.create) };
        if let Some(words) = last.as_str() {
            let not_yet = ["No such tool", "ready: "].iter().any(|word| words.contains(word));
            return if not_yet {
                create_child(request, &self.create)
            } else {
                Step::text(format!("What is this? {words}"))
            };
        }
        if let Some(finished) = last["finished"].get(0) {
            let (status, result) = (text(&finished["status"]), text(&finished["result"]));
            return Step::text(format!("My child's turn is {status}: {result}"));
        }
        if let Some(approval) = last["approvals"].get(0) {
            return self.answer(approval);
        }
        match last["type"].as_str() {
            Some("created") => {
                let prompt = "CHILD-WORK: make the file";
                call("claudecode_chat_async", json!({"session_id": last["id"], "prompt": prompt}))
            }
            // The first wait returns the current state at once. Later calls wait for a new event.
            Some("started") => call("loopback_wait", json!({})),
            Some("ok") => {
                let cursor = results.iter().rev().find_map(|result| result["cursor"].as_u64());
                call("loopback_wait", json!({"cursor": cursor, "timeout_ms": 50_000}))
            }
            _ => Step::text(format!("What is this? {last}")),
        }
    }

    fn answer(&self, approval: &Value) -> Step {
        let asked = Asked { approval: approval.clone(), had_run: self.file.exists() };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        let mut answer = json!({"approval_id": approval["id"], "approve": self.verdict == Verdict::Allow});
        if self.verdict == Verdict::Deny {
            answer["message"] = json!("not while I am responsible");
        }
        call("loopback_respond", answer)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The older CLI continues without a server that connects slowly, and offers a tool that waits for it.
fn create_child(request: &Value, create: &Value) -> Step {
    let offered = |name: &str| {
        request["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
    };
    if offered("WaitForMcpServers") && !offered("mcp__plexus__claudecode_create") {
        return Step::tool("WaitForMcpServers", json!({}));
    }
    call("claudecode_create", create.clone())
}

fn call(tool: &str, input: Value) -> Step {
    Step::tool(format!("mcp__plexus__{tool}"), input)
}

fn call_of_the_child() -> Step {
    let command = "touch made.txt && echo made-it";
    Step::tool("Bash", json!({"command": command, "description": "make the file"}))
}

fn script_child(model: &ScriptedModel, first: Step) {
    model.script("CHILD-WORK", vec![first, Step::text("The child has made it.")]);
}

/// Checks the parent's last text, that the child had one approval before its call ran, and that the hub agrees.
async fn assert_supervised(
    door: &dyn plexus_testkit::rpc::Door,
    supervisor: &Supervisor,
    report: &Report,
) -> anyhow::Result<Value> {
    let asked = supervisor.asked();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    assert!(!asked[0].had_run, "it ran before the parent got the approval");
    assert_eq!(asked[0].approval["input"]["command"], "touch made.txt && echo made-it");
    assert_eq!(asked[0].approval["asked_of"], json!({"kind": "parent", "id": report.session}));
    let poll = door.call("claudecode.poll", json!({"name": "child", "from_seq": 0, "limit": 1000})).await?;
    let kinds: Vec<String> =
        poll["events"].as_array().into_iter().flatten().map(|event| text(&event["event"]["type"])).collect();
    let order = ["tool_use", "approval_requested", "approval_resolved", "tool_result", "complete"];
    let places: Vec<Option<usize>> = order.iter().map(|kind| kinds.iter().position(|k| k == kind)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{kinds:?}");
    Ok(poll)
}

async fn a_parent_supervises_its_child_until_it_finishes(world: World) -> anyhow::Result<()> {
    let supervisor = Supervisor::script(&world.model, &world.work, world.setup.channel, Verdict::Allow);
    script_child(&world.model, call_of_the_child());
    let place = ParentSetup::of(&world)?;
    let report = place.start(&place.server()?, &[])?.ended().await?;

    assert_eq!(report.said, "My child's turn is complete: The child has made it.");
    assert!(world.file("made.txt").exists());
    let poll = assert_supervised(world.door.as_ref(), &supervisor, &report).await?;
    let resolved = &events(&poll, "approval_resolved")[0];
    assert_eq!(resolved["status"], "allowed");
    assert_eq!(resolved["by"], json!({"kind": "parent", "id": report.session}));
    Ok(())
}

async fn a_call_that_a_parent_denies_never_runs(world: World) -> anyhow::Result<()> {
    let supervisor = Supervisor::script(&world.model, &world.work, world.setup.channel, Verdict::Deny);
    script_child(&world.model, call_of_the_child());
    let place = ParentSetup::of(&world)?;
    let report = place.start(&place.server()?, &[])?.ended().await?;

    assert!(report.said.starts_with("My child's turn is complete"), "{}", report.said);
    assert!(!world.file("made.txt").exists());
    let poll = assert_supervised(world.door.as_ref(), &supervisor, &report).await?;
    assert_eq!(events(&poll, "approval_resolved")[0]["status"], "denied");
    let told = world.model.requests_for("CHILD-WORK").pop().unwrap_or_default();
    let results = tool_results(&told);
    assert!(results[0].is_error && results[0].text.contains("not while I am responsible"), "{results:?}");
    Ok(())
}

async fn a_waiting_parent_survives_a_kill_of_the_hub(mut world: World) -> anyhow::Result<()> {
    let supervisor = Supervisor::script(&world.model, &world.work, world.setup.channel, Verdict::Allow);
    let (held, hold) = Step::hold(call_of_the_child());
    script_child(&world.model, held);
    let place = ParentSetup::of(&world)?;
    // The same relay, with a log.
    let relay_log = world.home.join("relay.log");
    let script = r#"exec "$0" mcp --data-dir "$1" 2>"$2""#;
    let server = json!({
        "type": "stdio",
        "command": "/bin/sh",
        "args": ["-c", script, binaries::plexus()?, place.data, relay_log],
        "env": {"PLEXUS_LOG": "plexus=debug"},
    });
    let parent = place.start(&server, &[])?;

    // Its model has the current state and waits for a new event, and the child's model is busy.
    has_first_wait_result(&world.model).await?;
    world.model.seen(|request| request.marker.as_deref() == Some("CHILD-WORK")).await?;
    let socket = place.data.join("hub.sock");
    until("the parent waits at the hub", || is_connected(&socket)).await?;
    world.hub.kill9().await?;
    until("the relay has noticed", || {
        let log = std::fs::read_to_string(&relay_log).unwrap_or_default();
        log.lines().any(|line| line.contains("trying again") && line.contains("loopback.wait"))
    })
    .await?;
    world.hub.restart().await?;
    hold.release();

    let report = parent.ended().await?;
    assert_eq!(report.said, "My child's turn is complete: The child has made it.");
    assert!(world.file("made.txt").exists());
    assert_supervised(world.door.as_ref(), &supervisor, &report).await?;
    let last = world.model.requests_for("SUPERVISE").pop().unwrap_or_default();
    let mut results = tool_results(&last);
    results.retain(|result| result.is_error && !result.text.contains("No such tool"));
    assert!(results.is_empty(), "the parent must not notice the kill: {results:#?}");
    Ok(())
}

/// Waits until a parent's model has its first result of `loopback_wait`. After that it waits for a new event.
async fn has_first_wait_result(model: &ScriptedModel) -> anyhow::Result<()> {
    let knows = |body: &Value| tool_results(body).last().is_some_and(|last| last.text.contains("cursor"));
    model.seen(|request| request.marker.as_deref() == Some("SUPERVISE") && knows(&request.body)).await?;
    Ok(())
}

/// Whether a client is connected to a Unix socket.
fn is_connected(socket: &Path) -> bool {
    const CONNECTED: &str = "03";
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let socket = socket.to_string_lossy();
    sockets.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(7) == Some(&socket.as_ref()) && fields[5] == CONNECTED
    })
}

/// When the hub starts, if the parent starts before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    /// When the parent's relay runs. The CLI still waits for its tools.
    RelayRuns,
    /// When the parent's model got its first request. The CLI continued without the tools.
    ToolsMissed,
}

async fn a_parent_started_before_the_hub(
    version: &'static str,
    late: Late,
    test: &str,
) -> anyhow::Result<()> {
    let Some(claude) = require_claude(version, test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let [home, work, data] = ["home", "work", "data"].map(|name| dir.path().join(name));
    std::fs::create_dir(&home)?;
    std::fs::create_dir(&work)?;
    let model = ScriptedModel::start().await?;
    let supervisor = Supervisor::script(&model, &work, Channel::Control, Verdict::Allow);
    script_child(&model, call_of_the_child());
    let place = ParentSetup { claude: claude.clone(), home: &home, work: &work, data: &data, model: &model };
    let parent = place.start(&place.server()?, &[])?;
    match late {
        Late::RelayRuns => until("the relay runs", || relay_runs(&data)).await?,
        Late::ToolsMissed => {
            model.seen(|request| request.marker.as_deref() == Some("SUPERVISE")).await?;
        }
    }
    assert!(!data.exists(), "there was no hub so far");

    let env = clean_env(&home, &model.url());
    let hub =
        HubProcess::start(HubOptions { data_dir: data.clone(), claude, extra_args: Vec::new(), env }).await?;
    let report = parent.ended().await?;
    assert_eq!(report.said, "My child's turn is complete: The child has made it.");
    assert!(work.join("made.txt").exists());
    let door = plexus_testkit::rpc::Rpc::new(hub.url(), &hub.token()?);
    assert_supervised(&door, &supervisor, &report).await?;
    Ok(())
}

/// Whether a relay to the hub in `data` runs.
fn relay_runs(data: &Path) -> bool {
    let wanted = format!("mcp\0--data-dir\0{}\0", data.display());
    let mut all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.any(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).ends_with(&wanted)
    })
}

#[tokio::test]
async fn a_parent_gets_its_tools_when_the_hub_starts_cli_197() -> anyhow::Result<()> {
    let test = "a_parent_gets_its_tools_when_the_hub_starts_cli_197";
    a_parent_started_before_the_hub("2.1.197", Late::RelayRuns, test).await
}

#[tokio::test]
async fn a_parent_gets_its_tools_when_the_hub_starts_cli_325() -> anyhow::Result<()> {
    let test = "a_parent_gets_its_tools_when_the_hub_starts_cli_325";
    a_parent_started_before_the_hub("2.1.325", Late::RelayRuns, test).await
}

/// The newer CLI waits 30 s for its servers. The older one continues after 2 s and can wait for them later.
#[tokio::test]
async fn a_parent_that_continued_without_the_hub_gets_its_tools_later_cli_197() -> anyhow::Result<()> {
    let test = "a_parent_that_continued_without_the_hub_gets_its_tools_later_cli_197";
    a_parent_started_before_the_hub("2.1.197", Late::ToolsMissed, test).await
}

/// Lets a parent wait until its CLI, with an idle timeout of 2 s, has checked that timeout.
async fn waits_long(version: &'static str, progress_ms: &str) -> anyhow::Result<Option<String>> {
    let setup = Setup::cli(version, Channel::Control, DoorKind::Rpc);
    let Some(world) = setup.world("progress_prevents_the_idle_timeout_of_a_waiting_parent").await? else {
        return Ok(None);
    };
    Supervisor::script(&world.model, &world.work, Channel::Control, Verdict::Allow);
    let (held, hold) = Step::hold(call_of_the_child());
    script_child(&world.model, held);
    let place = ParentSetup::of(&world)?;
    let mut server = place.server()?;
    server["env"] = json!({"PLEXUS_PROGRESS_MS": progress_ms});
    let parent = place.start(&server, &[("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", "2000")])?;
    has_first_wait_result(&world.model).await?;
    tokio::time::sleep(Duration::from_secs(36)).await;
    hold.release();
    Ok(Some(parent.ended().await?.said))
}

#[tokio::test]
#[ignore = "slow: Claude Code looks for silence every 30 s"]
async fn progress_prevents_the_idle_timeout_of_a_waiting_parent() -> anyhow::Result<()> {
    let done = "My child's turn is complete: The child has made it.";
    let (old, new, silent) = tokio::join!(
        waits_long("2.1.197", "200"),
        waits_long("2.1.325", "200"),
        waits_long("2.1.325", "1000000"),
    );
    assert_eq!(old?.unwrap_or_else(|| done.to_owned()), done);
    assert_eq!(new?.unwrap_or_else(|| done.to_owned()), done);
    // The older CLI has no such timeout for stdio servers. The newer one shows that progress resets the timeout.
    if let Some(said) = silent? {
        assert!(said.contains("no response or progress"), "{said}");
    }
    Ok(())
}
