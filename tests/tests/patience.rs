//! A permit over MCP that waits long, on both pinned CLIs, through the relay and over HTTP: however late the answer
//! comes, and though the hub is killed meanwhile, the tool runs, once. Where a test sleeps, the time that passes is
//! what it is about.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, LIMIT, Setup, World, events, processes_of, text, until};
use plexus_testkit::binaries;
use plexus_testkit::model::Step;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Makes one test of an `async fn(World) -> anyhow::Result<()>` per pinned CLI and way to ask over MCP.
macro_rules! over_mcp {
    ($name:ident, $config:literal) => {
        mod $name {
            use plexus_e2e::{Channel, DoorKind, Setup};
            plexus_e2e::over_channels!(@one $config $name cli_197_relay "2.1.197" Relay);
            plexus_e2e::over_channels!(@one $config $name cli_197_http "2.1.197" Http);
            plexus_e2e::over_channels!(@one $config $name cli_325_relay "2.1.325" Relay);
            plexus_e2e::over_channels!(@one $config $name cli_325_http "2.1.325" Http);
        }
    };
}

over_mcp!(a_late_answer_lets_the_tool_run, "progress_secs = 0.2");
over_mcp!(a_permit_outlives_two_kills_of_the_hub, "progress_secs = 0.5");

/// Every pinned CLI and way to ask over MCP.
const WAYS: [(&str, Channel); 4] = [
    ("2.1.197", Channel::Relay),
    ("2.1.197", Channel::Http),
    ("2.1.325", Channel::Relay),
    ("2.1.325", Channel::Http),
];

/// Begins a turn that asks for one command, which notes each time it runs.
async fn ask(world: &World, env: Value) -> anyhow::Result<(String, Value)> {
    let bash = json!({"command": "echo once >> ran.txt", "description": "note that it ran"});
    world.model.script("PATIENCE", vec![Step::tool("Bash", bash), Step::text("It was worth the wait.")]);
    let session = world.create("patient", json!({"env": env})).await?;
    world.chat(&session, "PATIENCE").await?;
    let (_, approval) = world.asked(&session).await?;
    assert!(!world.file("ran.txt").exists(), "it ran before it was allowed");
    Ok((session, approval))
}

/// Allows the call, and sees that it runs once and was asked once.
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

/// A user may have told Claude Code to give up on tools early; a permit is not meant by that.
async fn a_late_answer_lets_the_tool_run(world: World) -> anyhow::Result<()> {
    let (session, approval) = ask(&world, json!({"MCP_TOOL_TIMEOUT": "2000"})).await?;
    if world.setup.channel == Channel::Relay {
        let paces: Vec<_> =
            relays_of(&session).into_iter().map(|relay| variable(relay, "PLEXUS_PROGRESS_MS")).collect();
        assert_eq!(paces, [Some("200".to_owned())], "the relay keeps the pace of the hub");
    }
    sleep(Duration::from_secs(3)).await;
    allow_and_see_it_run(&world, &session, &approval).await
}

/// The relays of a session's child.
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

async fn a_permit_outlives_two_kills_of_the_hub(mut world: World) -> anyhow::Result<()> {
    let (session, approval) = ask(&world, json!({})).await?;
    // The relay asks again; over HTTP, Claude Code comes back to the stream with its `Last-Event-ID`.
    let back = match world.setup.channel {
        Channel::Http => "a client resumed the stream of a permit",
        _ => "a client repeated its permit request",
    };
    for _ in 0..2 {
        has_settled(&world).await?;
        world.hub.kill9().await?;
        // Longer than a restart takes, and within what a child over HTTP bears: two tries, 5 s apart.
        sleep(Duration::from_secs(3)).await;
        world.hub.restart().await?;
        until("the child comes back", || world.hub.stderr().contains(back)).await?;
    }
    allow_and_see_it_run(&world, &session, &approval).await
}

/// Waits until a child over HTTP has surely read how to come back: a kill before that makes it wait for good, until
/// the hub gives its question up.
async fn has_settled(world: &World) -> anyhow::Result<()> {
    let sign = "sent progress for a waiting permit";
    let is_settled = || world.setup.channel != Channel::Http || world.hub.stderr().matches(sign).count() >= 2;
    until("two signs of life", is_settled).await
}

/// A token with which a child that the hub did not start can ask, and the session it asks for.
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

/// The next JSON-RPC message in these lines, be they bare or those of an event stream.
async fn message(lines: &mut Lines<impl AsyncBufRead + Unpin>) -> anyhow::Result<Value> {
    loop {
        let line = timeout(LIMIT, lines.next_line()).await.context("silence")??.context("the end")?;
        let line = line.strip_prefix("data: ").unwrap_or(&line);
        if line.starts_with('{') {
            return Ok(serde_json::from_str(line)?);
        }
    }
}

/// Sees progress, answers, and sees the answer; nothing else comes.
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
async fn a_waiting_permit_shows_that_it_is_alive_over_http() -> anyhow::Result<()> {
    let world = Setup::scripted().with_config("progress_secs = 0.2").world("").await?.context("a world")?;
    let (session, token) = outsider(&world).await?;
    let host = world.hub.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await?;
    let body = permit_call().to_string();
    // HTTP/1.0, so that the stream comes as it is, not in chunks.
    let head = format!(
        "POST /mcp HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut lines = BufReader::new(stream).lines();
    let mut opening = Vec::new();
    while opening.last().is_none_or(|line: &String| !line.starts_with("retry:")) {
        let line = timeout(LIMIT, lines.next_line()).await??;
        opening.push(line.with_context(|| format!("the end after {opening:#?}"))?);
    }
    assert!(opening.iter().any(|line| line.starts_with("id: ")), "{opening:#?}");
    assert_eq!(opening.last().map(String::as_str), Some("retry: 5000"));
    progress_then_the_answer(&world, &session, &mut lines).await
}

#[tokio::test]
async fn a_waiting_permit_shows_that_it_is_alive_through_the_relay() -> anyhow::Result<()> {
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

/// What becomes of a permit that is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Waiting,
    GivenUp,
}

/// Leaves a permit alone until Claude Code, told to give up after 2 s without a sign, has looked at its clock.
async fn left_alone(version: &'static str, channel: Channel, progress: &str) -> anyhow::Result<Option<Left>> {
    let setup =
        Setup::cli(version, channel, DoorKind::Rpc).with_config(&format!("progress_secs = {progress}"));
    let name = "progress_keeps_a_permit_alive_where_silence_would_end_it";
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
async fn progress_keeps_a_permit_alive_where_silence_would_end_it() -> anyhow::Result<()> {
    let mut all = JoinSet::new();
    for (version, channel) in WAYS {
        all.spawn(async move {
            let with_progress = left_alone(version, channel, "0.2").await?;
            assert!(with_progress.is_none_or(|left| left == Left::Waiting), "{version} over {channel:?}");
            // The longest `timeout` in the server's config lifts the limit for silence on the newer CLI, and the
            // older one has none for servers on stdio: progress is what counts on the older one, over HTTP.
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
async fn an_answer_after_six_minutes_lets_the_tool_run() -> anyhow::Result<()> {
    let mut all = JoinSet::new();
    for (version, channel) in WAYS {
        all.spawn(async move {
            let setup = Setup::cli(version, channel, DoorKind::Rpc);
            let name = "an_answer_after_six_minutes_lets_the_tool_run";
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
