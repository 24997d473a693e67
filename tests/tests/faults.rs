//! Faults: a child that dies, lies, floods or stays silent, a full disk, a hub that cannot start. Each fault is reported in words
//! that a person can act on, and no tool runs because of it.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, is_alive, limit_files, outside, processes_of, script, text, until};
use plexus_testkit::{binaries, executable};
use serde_json::{Value, json};
use tokio::process::Command;

async fn world(config: &str) -> anyhow::Result<World> {
    let world = Setup::scripted().with_config(config).world("faults").await?;
    world.context("the scripted agent is always available")
}

/// A hub whose agent is this shell script.
async fn world_of_script(config: &str, lines: &str) -> anyhow::Result<(World, tempfile::TempDir)> {
    let dir = tempfile::tempdir()?;
    let program = dir.path().join("claude");
    executable::write(&program, &format!("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n{lines}\n"))?;
    Ok((Setup::scripted().with_config(config).start(program).await?, dir))
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// A session that runs these steps.
async fn start_session(world: &World, name: &str, steps: Value) -> anyhow::Result<String> {
    world.create(name, json!({"prompt": script(&steps)})).await
}

/// Checks that the turn failed with this reason. Returns its last event.
#[track_caller]
fn failed(poll: &Value, reason: &str) -> Value {
    assert_eq!(poll["status"], "failed", "{poll:#}");
    let error = events(poll, "error").pop().unwrap_or_default();
    assert_eq!(error["reason"], reason, "{poll:#}");
    error
}

fn signal(name: &str, pid: u32) -> anyhow::Result<()> {
    let status = std::process::Command::new("kill").args([format!("-{name}"), pid.to_string()]).status()?;
    anyhow::ensure!(status.success(), "kill -{name} {pid}");
    Ok(())
}

/// The hub's replies to a request of the first run of a session.
fn replies(world: &World, session: &str, request_id: &str) -> anyhow::Result<Vec<Value>> {
    let outbox = std::fs::read_to_string(world.run_dir(session, 1).join("outbox.jsonl"))?;
    let lines = outbox.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(lines.map(|line| line["response"].clone()).filter(|reply| reply["request_id"] == request_id).collect())
}

#[tokio::test]
async fn the_approval_of_a_child_that_dies_is_withdrawn() -> anyhow::Result<()> {
    let world = world("").await?;
    let session =
        start_session(&world, "mortal", json!([{"stderr": "my last words\n"}, bash("touch ghost.txt")]))
            .await?;
    let (_, approval) = world.asked(&session).await?;
    let view = world.call("claudecode.get", json!({"session_id": session})).await?;
    let keeper = view["session"]["pid"].as_u64().context("its keeper")?;
    let agent =
        processes_of(&session).into_iter().find(|pid| u64::from(*pid) != keeper).context("the agent")?;
    signal("KILL", agent)?;
    let poll = world.ended(&session).await?;
    let error = failed(&poll, "killed");
    assert!(text(&error["message"]).contains("signal 9"), "{error}");
    assert_eq!(error["stderr"], json!(["my last words"]));
    assert_eq!(events(&poll, "approval_resolved")[0]["status"], "withdrawn");
    let late = world.respond(&approval, json!({"approve": true})).await?;
    assert_eq!((&late["type"], &late["status"]), (&json!("already_resolved"), &json!("withdrawn")));
    assert!(world.ran().is_empty());
    // The session continues with a new process.
    world.chat(&session, &script(&json!([{"say": "back"}]))).await?;
    assert_eq!(events(&world.ended(&session).await?, "complete")[0]["result"], "back");
    Ok(())
}

#[tokio::test]
async fn an_early_exit_of_a_child_is_reported_with_its_stderr() -> anyhow::Result<()> {
    let world = world("").await?;
    let session =
        start_session(&world, "early", json!([{"stderr": "line one\nline two\n"}, {"exit": 3}])).await?;
    let error = failed(&world.ended(&session).await?, "exited");
    assert!(text(&error["message"]).contains("code 3"), "{error}");
    assert_eq!(error["stderr"], json!(["line one", "line two"]));
    Ok(())
}

#[tokio::test]
async fn a_missing_program_is_reported_with_its_path() -> anyhow::Result<()> {
    let world = Setup::scripted().start(PathBuf::from("/nonexistent/claude")).await?;
    let session = start_session(&world, "nobody", json!([{"say": "never"}])).await?;
    let error = failed(&world.ended(&session).await?, "cannot_start");
    assert!(text(&error["message"]).contains("/nonexistent/claude"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_child_that_prints_garbage_and_exits_fails_the_turn() -> anyhow::Result<()> {
    let lines =
        "echo 'Segmentation fault (not)'; printf '{\"half\": '; printf '\\377\\n'; echo oh no >&2; exit 0";
    let (world, _dir) = world_of_script("", lines).await?;
    let session = start_session(&world, "rubbish", json!([{"say": "never"}])).await?;
    let poll = world.ended(&session).await?;
    let error = failed(&poll, "exited");
    assert_eq!(error["stderr"], json!(["oh no"]));
    let kept: Vec<Value> =
        events(&poll, "system").into_iter().filter(|e| e["subtype"] == "rubbish").collect();
    assert_eq!(kept[0]["data"]["text"], "Segmentation fault (not)", "{poll:#}");
    assert_eq!(kept.len(), 2, "{poll:#}");
    Ok(())
}

#[tokio::test]
async fn a_child_that_never_responds_is_ended() -> anyhow::Result<()> {
    let (world, _dir) = world_of_script("initialize_secs = 0.3", "echo waiting >&2; exec sleep 1000").await?;
    let session = start_session(&world, "silent", json!([{"say": "never"}])).await?;
    let error = failed(&world.ended(&session).await?, "no_answer");
    assert_eq!(error["stderr"], json!(["waiting"]));
    assert!(processes_of(&session).is_empty(), "its process has ended");
    Ok(())
}

#[tokio::test]
async fn a_failed_result_fails_the_turn() -> anyhow::Result<()> {
    let world = world("").await?;
    let session =
        start_session(&world, "unlucky", json!([{"say": "trying"}, {"result_error": "API Error: 529"}]))
            .await?;
    let error = failed(&world.ended(&session).await?, "api_error");
    assert_eq!(error["message"], "API Error: 529");
    Ok(())
}

#[tokio::test]
async fn lines_of_any_size_and_shape_are_handled() -> anyhow::Result<()> {
    const BYTES: usize = 64 * 1024 * 1024;
    let world = world("").await?;
    let session = start_session(
        &world,
        "large",
        json!([
            {"big_line": BYTES},
            // A request of this size cannot be shown to anyone.
            {"tool": "Bash", "input": {"command": "touch large.txt"}, "big_input": BYTES},
            bash("touch small.txt"),
            {"say": "still here"},
        ]),
    )
    .await?;
    let (poll, approval) = world.asked(&session).await?;
    assert_eq!(approval["input"]["command"], "touch small.txt");
    let refused = &events(&poll, "tool_result")[0];
    assert_eq!(refused["is_error"], true);
    assert!(text(&refused["output"]).contains("denied"), "{refused}");
    world.allow(&approval).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(events(&poll, "complete")[0]["result"], "still here");
    assert_eq!(world.ran().len(), 1);
    assert!(world.file("small.txt").exists() && !world.file("large.txt").exists());
    let peak = peak_memory_kb(world.hub.pid())?;
    assert!(peak < 200 * 1024, "the hub grew to {peak} kB");
    Ok(())
}

fn peak_memory_kb(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

#[tokio::test]
async fn blank_broken_and_split_lines_are_handled() -> anyhow::Result<()> {
    let world = world("").await?;
    let line = json!({"type": "assistant", "message": {"id": "m", "role": "assistant", "content": [
        {"type": "text", "text": "zwölf \u{1f980}"},
    ]}, "parent_tool_use_id": null});
    let bytes = format!("{line}\n").into_bytes();
    // Splits inside the ö and inside the crab.
    let first = bytes.iter().position(|byte| *byte == 0xc3).context("the ö")? + 1;
    let second = bytes.iter().position(|byte| *byte == 0xf0).context("the crab")? + 2;
    let session = start_session(
        &world,
        "split",
        json!([
            {"raw": ""}, {"raw": "   \t"}, {"raw": "{"}, {"raw": "[1, 2]"}, {"raw": "{\"type\": \"news\", \"of\": \"day\"}"},
            {"raw_partial": [0xff, 0xfe, b'\n']},
            {"say": "now"},
            {"raw_partial": bytes[..first]},
            {"wait_file": "first"},
            {"raw_partial": bytes[first..second]},
            {"wait_file": "second"},
            {"raw_partial": bytes[second..]},
            {"say": "done"},
        ]),
    )
    .await?;
    world.poll_until(&session, |poll| !events(poll, "content").is_empty()).await?;
    std::fs::write(world.file("first"), "")?;
    std::fs::write(world.file("second"), "")?;
    let poll = world.ended(&session).await?;
    let said: Vec<String> = events(&poll, "content").iter().map(|event| text(&event["text"])).collect();
    assert_eq!(said, ["now", "zwölf \u{1f980}", "done"]);
    let kept = events(&poll, "system");
    assert_eq!(kept.iter().filter(|event| event["subtype"] == "rubbish").count(), 3, "{poll:#}");
    assert!(kept.iter().any(|event| event["subtype"] == "news" && event["data"]["of"] == "day"), "{poll:#}");
    assert_eq!(events(&poll, "complete")[0]["result"], "done");
    Ok(())
}

#[tokio::test]
async fn every_request_gets_one_reply_and_the_gate_never_an_error() -> anyhow::Result<()> {
    let world = world("").await?;
    let request = |id: &str, request: Value| json!({"raw": json!({"type": "control_request", "request_id": id, "request": request}).to_string()});
    let hook = |input: Value| json!({"subtype": "hook_callback", "callback_id": "x", "input": input});
    let session = start_session(
        &world,
        "asking",
        json!([
            {"unknown_request": "make_coffee"},
            request("gate-1", hook(json!("rubbish"))),
            request("gate-2", hook(json!({"hook_event_name": "PreToolUse"}))),
            request("gate-3", json!({"subtype": "hook_callback"})),
            request("gate-4", hook(json!({"hook_event_name": "PreToolUse", "tool_name": 7, "tool_input": [], "tool_use_id": {}}))),
            request("ask-1", json!({"subtype": "can_use_tool"})),
            request("ask-2", json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": "ls", "tool_use_id": "t"})),
            {"say": "done"},
        ]),
    )
    .await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    let said = text(&events(&poll, "content")[0]["text"]);
    assert!(
        said.starts_with("make_coffee was answered with error:") && said.contains("make_coffee`"),
        "{said}"
    );
    for id in ["gate-1", "gate-2", "gate-3", "gate-4"] {
        let [reply] =
            replies(&world, &session, id)?.try_into().map_err(|all| anyhow::anyhow!("{id}: {all:?}"))?;
        assert_eq!(reply["subtype"], "success", "{id}: {reply}");
        assert_eq!(reply["response"]["hookSpecificOutput"]["permissionDecision"], "deny", "{id}: {reply}");
    }
    for id in ["ask-1", "ask-2"] {
        let [reply] =
            replies(&world, &session, id)?.try_into().map_err(|all| anyhow::anyhow!("{id}: {all:?}"))?;
        assert_eq!(
            (&reply["subtype"], &reply["response"]["behavior"]),
            (&json!("success"), &json!("deny")),
            "{id}"
        );
    }
    assert!(events(&poll, "approval_requested").is_empty());
    Ok(())
}

#[tokio::test]
async fn a_permission_request_that_the_child_cancels_is_withdrawn() -> anyhow::Result<()> {
    let world = world("").await?;
    let steps = json!([{"cancel_open": true, "wait_file": "take-back"}, {"say": "never mind"}]);
    let session = start_session(&world, "fickle", steps).await?;
    let (_, approval) = world.asked(&session).await?;
    std::fs::write(world.file("take-back"), "")?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert_eq!(events(&poll, "approval_resolved")[0]["status"], "withdrawn");
    let late = world.respond(&approval, json!({"approve": true})).await?;
    assert_eq!((&late["type"], &late["status"]), (&json!("already_resolved"), &json!("withdrawn")));
    Ok(())
}

#[tokio::test]
async fn a_call_that_bypassed_the_gate_stops_the_session() -> anyhow::Result<()> {
    let world = world("").await?;
    for (name, way) in [("skips", "skip_gate"), ("defies", "ignore_denial"), ("hurries", "ignore_question")] {
        let call = json!({"tool": "Bash", "input": {"command": "true"}, way: true});
        let session = start_session(&world, name, json!([call, {"wait_file": "never"}])).await?;
        if way == "ignore_denial" {
            let (_, approval) = world.asked(&session).await?;
            world.respond(&approval, json!({"approve": false})).await?;
        }
        let error = failed(&world.ended(&session).await?, "gate_bypassed");
        assert!(text(&error["message"]).contains("stopped"), "{error}");
        until("its processes have ended", || processes_of(&session).is_empty()).await?;
    }
    assert_eq!(world.call("loopback.pending", json!({})).await?["approvals"], json!([]));
    Ok(())
}

#[tokio::test]
async fn stop_ends_all_descendants_of_a_child() -> anyhow::Result<()> {
    let world = world("").await?;
    // One process leaves the process group, one clears its environment, one loses its parent.
    let steps = json!([
        bash("setsid sleep 300 >/dev/null 2>&1 & echo $! > one.pid"),
        bash("env -i /usr/bin/setsid /bin/sleep 300 >/dev/null 2>&1 & echo $! > two.pid"),
        bash("(setsid sh -c 'echo $$ > three.pid; exec sleep 300' >/dev/null 2>&1 &)"),
    ]);
    let session = start_session(&world, "prolific", steps).await?;
    for _ in 0..3 {
        let (_, approval) = world.asked(&session).await?;
        world.allow(&approval).await?;
    }
    assert_eq!(world.ended(&session).await?["status"], "complete");
    let pid = |name: &str| std::fs::read_to_string(world.file(name)).ok()?.trim().parse::<u32>().ok();
    until("the third process has written its pid", || pid("three.pid").is_some()).await?;
    let pids = ["one.pid", "two.pid", "three.pid"]
        .map(|name| pid(name).and_then(|pid| outside(&session, pid)).unwrap_or_default());
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?} are at work");
    let stopped = world.call("claudecode.stop", json!({"session_id": session})).await?;
    assert_eq!(stopped, json!({"type": "ok", "session_id": session}));
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?} are gone");
    assert!(processes_of(&session).is_empty());
    world.chat(&session, &script(&json!([{"say": "again"}]))).await?;
    assert_eq!(events(&world.ended(&session).await?, "complete")[0]["result"], "again");
    Ok(())
}

#[tokio::test]
async fn nothing_runs_and_nothing_is_lost_while_the_disk_is_full() -> anyhow::Result<()> {
    let world = world("").await?;
    let mut sessions = Vec::new();
    for name in ["asked-before", "asks-meanwhile"] {
        let wait = json!({"wait_file": format!("{name}.go")});
        let call = bash(&format!("touch {name}.txt"));
        sessions
            .push(start_session(&world, name, json!([{"say": "ready"}, wait, call, {"say": "done"}])).await?);
    }
    std::fs::write(world.file("asked-before.go"), "")?;
    let (_, before) = world.asked(&sessions[0]).await?;
    world.poll_until(&sessions[1], |poll| !events(poll, "content").is_empty()).await?;

    limit_files(world.hub.pid(), "1")?;
    std::fs::write(world.file("asks-meanwhile.go"), "")?;
    let answer = json!({"approval_id": before["id"], "approve": true});
    for _ in 0..3 {
        let refused = world.refused("loopback.respond", answer.clone()).await?;
        assert_eq!(refused.kind.as_deref(), Some("store_unavailable"), "{refused}");
    }
    for (method, params) in [
        ("claudecode.create", json!({"name": "third", "working_dir": world.work})),
        ("claudecode.rename", json!({"name": "asked-before", "new_name": "x"})),
        ("loopback.configure", json!({"name": "asked-before"})),
    ] {
        let refused = world.refused(method, params).await?;
        assert_eq!(refused.kind.as_deref(), Some("store_unavailable"), "{method}: {refused}");
    }
    let held = format!("session={}", sessions[1]);
    until("the second call is held at the gate", || {
        world
            .hub
            .stderr()
            .lines()
            .any(|line| line.contains("waiting until the store is available") && line.contains(&held))
    })
    .await?;
    // Reading works, and the approval is still open.
    let pending = world.call("loopback.pending", json!({})).await?;
    assert_eq!(pending["approvals"].as_array().map(Vec::len), Some(1), "{pending}");
    assert!(world.ran().is_empty(), "nothing ran");

    limit_files(world.hub.pid(), "unlimited")?;
    world.allow(&before).await?;
    let (_, meanwhile) = world.asked(&sessions[1]).await?;
    world.allow(&meanwhile).await?;
    for session in &sessions {
        let poll = world.ended(session).await?;
        assert_eq!(poll["status"], "complete", "{poll:#}");
        assert_eq!(events(&poll, "approval_resolved").len(), 1);
    }
    let ran = world.ran();
    assert_eq!(ran.len(), 2, "each ran once: {ran:?}");
    for session in &sessions {
        let outbox = std::fs::read_to_string(world.run_dir(session, 1).join("outbox.jsonl"))?;
        assert!(
            !outbox.contains(r#""subtype":"error""#),
            "the gate is never answered with an error: {outbox}"
        );
    }
    assert!(world.file("asked-before.txt").exists() && world.file("asks-meanwhile.txt").exists());
    Ok(())
}

#[tokio::test]
async fn a_child_can_be_stopped_while_the_disk_is_full() -> anyhow::Result<()> {
    let world = world("").await?;
    let session = start_session(&world, "stuck", json!([bash("touch stuck.txt")])).await?;
    world.asked(&session).await?;
    limit_files(world.hub.pid(), "1")?;
    let stop = world.call("claudecode.stop", json!({"session_id": session}));
    let gone = async {
        until("its processes have ended", || processes_of(&session).is_empty()).await?;
        limit_files(world.hub.pid(), "unlimited")
    };
    let (stopped, gone) = tokio::join!(stop, gone);
    gone?;
    assert_eq!(stopped?["type"], "ok");
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "interrupted", "{poll:#}");
    assert_eq!(events(&poll, "approval_resolved")[0]["status"], "withdrawn");
    assert!(world.ran().is_empty());
    Ok(())
}

/// Runs `plexus serve` until it exits.
async fn serve(data_dir: &Path, listen: &str, before: &[&str]) -> anyhow::Result<Output> {
    let plexus = binaries::plexus()?;
    let mut words: Vec<&std::ffi::OsStr> = before.iter().map(std::ffi::OsStr::new).collect();
    words.extend([plexus.as_os_str(), "serve".as_ref(), "--data-dir".as_ref(), data_dir.as_os_str()]);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["--listen", listen]).env_clear().env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null()).kill_on_drop(true);
    tokio::time::timeout(plexus_e2e::LIMIT, command.output())
        .await
        .context("it did not end")?
        .map_err(Into::into)
}

#[track_caller]
fn said(output: &Output, code: i32, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(output.stdout.is_empty(), "it never reported its address");
    let last = stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("plexus: ") && words.iter().all(|word| last.contains(word)), "{stderr}");
}

#[tokio::test]
async fn an_unusable_data_directory_is_reported() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("a-file");
    std::fs::write(&file, "")?;
    let below = file.join("data");
    said(&serve(&below, "127.0.0.1:0", &[]).await?, 4, &["cannot use", &below.display().to_string()]);
    // A disk that is full from the start.
    let full = dir.path().join("full");
    let output = serve(&full, "127.0.0.1:0", &["prlimit", "--fsize=0"]).await?;
    said(&output, 4, &["identity.key"]);
    // A directory with the database of another program, which is not changed.
    let foreign = dir.path().join("foreign");
    std::fs::create_dir(&foreign)?;
    std::fs::write(foreign.join("plexus.db"), "my diary, which is no database at all")?;
    said(&serve(&foreign, "127.0.0.1:0", &[]).await?, 6, &["plexus.db", "not a SQLite database"]);
    assert_eq!(std::fs::read_to_string(foreign.join("plexus.db"))?, "my diary, which is no database at all");
    Ok(())
}

#[tokio::test]
async fn a_second_hub_is_refused_and_the_first_continues() -> anyhow::Result<()> {
    let world = world("").await?;
    let session = start_session(&world, "first", json!([bash("true")])).await?;
    let (_, approval) = world.asked(&session).await?;
    let output = serve(world.hub.data_dir(), "127.0.0.1:0", &[]).await?;
    said(&output, 1, &["in use by another hub", &world.hub.pid().to_string()]);
    world.allow(&approval).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(())
}

#[tokio::test]
async fn a_port_in_use_is_reported() -> anyhow::Result<()> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let dir = tempfile::tempdir()?;
    said(&serve(&dir.path().join("data"), &address, &[]).await?, 5, &[&address, "another program uses"]);
    Ok(())
}
