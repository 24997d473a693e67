//! A permit over MCP that waits a long time, on both pinned CLIs, through the relay and over HTTP. The tool runs exactly
//! once, however late the answer is and even if the hub is killed in between. Where a test sleeps, the passing time is
//! the subject of the test.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, LIMIT, Setup, World, events, over, processes_of, text, until};
use plexus_testkit::binaries;
use plexus_testkit::model::Step;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

over!(mcp_channels, "progress_secs = 0.2": a_tool_runs_after_a_late_allow);
over!(mcp_channels, "progress_secs = 0.5": a_permit_survives_two_kills_of_the_hub);

/// Every pinned CLI with every MCP transport.
const WAYS: [(&str, Channel); 4] = [
    ("2.1.197", Channel::Relay),
    ("2.1.197", Channel::Http),
    ("2.1.325", Channel::Relay),
    ("2.1.325", Channel::Http),
];

/// Starts a turn with one command that needs approval. The command appends a line to a file each time it runs.
async fn ask(world: &World, env: Value) -> anyhow::Result<(String, Value)> {
    let bash = json!({"command": "echo once >> ran.txt", "description": "note that it ran"});
    world.model.script("PATIENCE", vec![Step::tool("Bash", bash), Step::text("It was worth the wait.")]);
    let session = world.create("patient", json!({"env": env})).await?;
    world.chat(&session, "PATIENCE").await?;
    let (_, approval) = world.asked(&session).await?;
    assert!(!world.file("ran.txt").exists(), "it ran before it was allowed");
    Ok((session, approval))
}

/// Allows the call, and checks that it ran once and had one approval.
async fn allow_and_see_it_run(world: &World, session: &str, approval: &Value) -> anyhow::Result<()> {
    assert!(!world.file("ran.txt").exists(), "it ran before it was allowed");
    world.allow(approval).await?;
    let poll = world.ended(session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert_eq!(events(&poll, "complete")[0]["result"], "It was worth the wait.");
    assert_eq!(std::fs::read_to_string(world.file("ran.txt"))?, "once\n");
    assert_eq!(events(&poll, "approval_requested").len(), 1, "{poll:#}");
    let resolved = events(&poll, "approval_resolved");
    assert_eq!((resolved.len(), &resolved[0]["status"]), (1, &json!("allowed")), "{poll:#}");
    Ok(())
}

/// A user may have set a short tool timeout for Claude Code. It must not apply to permits.
async fn a_tool_runs_after_a_late_allow(world: World) -> anyhow::Result<()> {
    let (session, approval) = ask(&world, json!({"MCP_TOOL_TIMEOUT": "2000"})).await?;
    if world.setup.channel == Channel::Relay {
        let paces: Vec<_> =
            relays_of(&session).into_iter().map(|relay| variable(relay, "PLEXUS_PROGRESS_MS")).collect();
        assert_eq!(paces, [Some("200".to_owned())], "the relay uses the interval of the hub");
    }
    sleep(Duration::from_secs(3)).await;
    allow_and_see_it_run(&world, &session, &approval).await
}

/// The pids of the relays of a session's child.
fn relays_of(session: &str) -> Vec<u32> {
    let is_relay = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"\0mcp\0"))
    };
    processes_of(session).into_iter().filter(is_relay).collect()
}

/// A variable in the environment of a process.
fn variable(pid: u32, name: &str) -> Option<String> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let environ = String::from_utf8_lossy(&environ).into_owned();
    environ.split('\0').find_map(|entry| entry.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
}

async fn a_permit_survives_two_kills_of_the_hub(mut world: World) -> anyhow::Result<()> {
    let (session, approval) = ask(&world, json!({})).await?;
    // The relay repeats its request. Over HTTP, Claude Code resumes the stream with its `Last-Event-ID`.
    let back = match world.setup.channel {
        Channel::Http => "a client resumed the stream of a permit",
        _ => "a client repeated its permit request",
    };
    for _ in 0..2 {
        is_resumable(&world).await?;
        world.hub.kill9().await?;
        // Longer than a restart, and shorter than the time in which a child over HTTP reconnects: two attempts, 5 s apart.
        sleep(Duration::from_secs(3)).await;
        world.hub.restart().await?;
        until("the child resumes", || world.hub.stderr().contains(back)).await?;
    }
    allow_and_see_it_run(&world, &session, &approval).await
}

/// Waits until a child over HTTP has read the event id with which it can resume. After an earlier kill it would wait
/// until the hub withdraws its approval.
async fn is_resumable(world: &World) -> anyhow::Result<()> {
    let sign = "sent progress for a waiting permit";
    let is_sent = || world.setup.channel != Channel::Http || world.hub.stderr().matches(sign).count() >= 2;
    until("two progress notifications", is_sent).await
}

/// A session, and a token with which a child that the hub did not start can request permits for it.
async fn outsider(world: &World) -> anyhow::Result<(String, String)> {
    let session = world.create("outsider", json!({})).await?;
    let configured = world.call("loopback.configure", json!({"session_id": session})).await?;
    let bearer = text(&configured["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
    Ok((session, bearer.strip_prefix("Bearer ").context("a bearer token")?.to_owned()))
}

fn permit_call() -> Value {
    let arguments = json!({"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "toolu_outside"});
    let params =
        json!({"name": "loopback_permit", "arguments": arguments, "_meta": {"progressToken": "patience"}});
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
}

/// The next JSON-RPC message in these lines, either bare or in an event stream.
async fn message(lines: &mut Lines<impl AsyncBufRead + Unpin>) -> anyhow::Result<Value> {
    loop {
        let line = timeout(LIMIT, lines.next_line()).await.context("silence")??.context("the end")?;
        let line = line.strip_prefix("data: ").unwrap_or(&line);
        if line.starts_with('{') {
            return Ok(serde_json::from_str(line)?);
        }
    }
}

/// Checks that only progress arrives, allows the call, and checks the decision.
async fn progress_then_the_answer(
    world: &World,
    session: &str,
    lines: &mut Lines<impl AsyncBufRead + Unpin>,
) -> anyhow::Result<()> {
    let mut last = 0.0;
    for _ in 0..5 {
        let progress = message(lines).await?;
        assert_eq!(progress["method"], "notifications/progress", "{progress}");
        assert_eq!(progress["params"]["progressToken"], "patience");
        let now = progress["params"]["progress"].as_f64().context("a number")?;
        assert!(now > last, "progress goes up: {last} to {now}");
        last = now;
    }
    let pending = world.call("loopback.pending", json!({"session_id": session})).await?;
    world.allow(&pending["approvals"][0]).await?;
    let answer = loop {
        let next = message(lines).await?;
        if next["method"].is_null() {
            break next;
        }
    };
    assert_eq!(answer["id"], 7);
    let decision: Value = serde_json::from_str(&text(&answer["result"]["content"][0]["text"]))?;
    assert_eq!(decision, json!({"behavior": "allow", "updatedInput": {"command": "ls"}}));
    Ok(())
}

#[tokio::test]
async fn a_waiting_permit_sends_progress_through_the_relay() -> anyhow::Result<()> {
    let world = Setup::scripted().world("").await?.context("a world")?;
    let (session, token) = outsider(&world).await?;
    let mut relay = Command::new(binaries::plexus()?);
    relay.arg("mcp").env_clear().env("PLEXUS_HUB_URL", world.hub.url()).env("PLEXUS_TOKEN", token);
    relay.env("PLEXUS_PROGRESS_MS", "200");
    let mut relay = relay.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut stdin = relay.stdin.take().context("stdin")?;
    let mut lines = BufReader::new(relay.stdout.take().context("stdout")?).lines();
    let client = json!({"name": "patience", "version": "0"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    stdin.write_all(format!("{initialize}\n").as_bytes()).await?;
    assert_eq!(message(&mut lines).await?["result"]["serverInfo"]["name"], "plexus");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    stdin.write_all(format!("{initialized}\n{}\n", permit_call()).as_bytes()).await?;
    progress_then_the_answer(&world, &session, &mut lines).await?;
    drop(stdin);
    assert!(timeout(LIMIT, relay.wait()).await??.success(), "it ends with its client");
    Ok(())
}

/// The state of a permit that nobody answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Waiting,
    GivenUp,
}

/// Leaves a permit unanswered until Claude Code, with an idle timeout of 2 s, has checked that timeout.
async fn left_alone(version: &'static str, channel: Channel, progress: &str) -> anyhow::Result<Option<Left>> {
    let setup =
        Setup::cli(version, channel, DoorKind::Rpc).with_config(&format!("progress_secs = {progress}"));
    let name = "progress_prevents_the_idle_timeout_of_a_permit";
    let Some(world) = setup.world(name).await? else { return Ok(None) };
    let (session, approval) = ask(&world, json!({"CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": "2000"})).await?;
    sleep(Duration::from_secs(36)).await;
    let pending = world.call("loopback.pending", json!({"session_id": session})).await?;
    if pending["approvals"].as_array().is_some_and(Vec::is_empty) {
        let poll = world.ended(&session).await?;
        assert_eq!(events(&poll, "approval_resolved")[0]["status"], "withdrawn", "{poll:#}");
        assert!(events(&poll, "tool_result")[0].to_string().contains("no response or progress"), "{poll:#}");
        assert!(!world.file("ran.txt").exists());
        return Ok(Some(Left::GivenUp));
    }
    allow_and_see_it_run(&world, &session, &approval).await?;
    Ok(Some(Left::Waiting))
}

#[tokio::test]
#[ignore = "slow: Claude Code looks for silence every 30 s"]
async fn progress_prevents_the_idle_timeout_of_a_permit() -> anyhow::Result<()> {
    let mut all = JoinSet::new();
    for (version, channel) in WAYS {
        all.spawn(async move {
            let with_progress = left_alone(version, channel, "0.2").await?;
            assert!(with_progress.is_none_or(|left| left == Left::Waiting), "{version} over {channel:?}");
            // The long `timeout` in the server's config disables the idle timeout of the newer CLI, and the older
            // one has none for stdio servers. So progress is needed by the older one over HTTP only.
            let silent = left_alone(version, channel, "1000").await?;
            let wanted = if (version, channel) == WAYS[1] { Left::GivenUp } else { Left::Waiting };
            assert!(silent.is_none_or(|left| left == wanted), "{version} over {channel:?}: {silent:?}");
            anyhow::Ok(())
        });
    }
    while let Some(outcome) = all.join_next().await {
        outcome??;
    }
    Ok(())
}

#[tokio::test]
#[ignore = "slow: six minutes, in which Claude Code gives up on silence"]
async fn a_tool_runs_after_an_allow_six_minutes_later() -> anyhow::Result<()> {
    let mut all = JoinSet::new();
    for (version, channel) in WAYS {
        all.spawn(async move {
            let setup = Setup::cli(version, channel, DoorKind::Rpc);
            let name = "a_tool_runs_after_an_allow_six_minutes_later";
            let Some(world) = setup.world(name).await? else { return Ok(()) };
            let (session, approval) = ask(&world, json!({})).await?;
            sleep(Duration::from_secs(360)).await;
            allow_and_see_it_run(&world, &session, &approval)
                .await
                .with_context(|| format!("{version} over {channel:?}"))
        });
    }
    while let Some(outcome) = all.join_next().await {
        outcome??;
    }
    Ok(())
}
