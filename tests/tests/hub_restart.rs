//! A hub that stops or is killed, and restarts: sessions, approvals and event numbers are unchanged, the child waits at the
//! gate, and an answer reaches it exactly once. Both pinned CLIs, every channel.

use std::collections::HashMap;

use anyhow::Context as _;
use plexus_e2e::{Channel, Setup, World, events, over, processes_of, script, text, until};
use plexus_testkit::model::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

over!(every_channel, "sse_retry_ms = 2000\nprogress_secs = 0.1":
    a_child_waits_at_the_gate_while_a_stopped_hub_restarts,
    a_child_waits_at_the_gate_while_a_killed_hub_restarts,
    an_answer_committed_just_before_a_kill_reaches_the_child_once,
    a_child_never_waits_forever_however_early_the_hub_is_killed,
);

async fn a_child_waits_at_the_gate_while_a_stopped_hub_restarts(world: World) -> anyhow::Result<()> {
    waits_at_the_gate(world, Stop::Signalled).await
}

async fn a_child_waits_at_the_gate_while_a_killed_hub_restarts(world: World) -> anyhow::Result<()> {
    waits_at_the_gate(world, Stop::Killed).await
}

/// How the hub is stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Signalled,
    Killed,
}

/// A real child at the gate. Its call appends a line to a file each time it runs.
async fn asking(world: &World, name: &str) -> anyhow::Result<(String, Value, Value)> {
    let call = json!({"command": format!("echo ran >> {name}.txt"), "description": "a step"});
    world.model.script(&format!("MARK-{name}"), vec![Step::tool("Bash", call), Step::text("All done.")]);
    let session = world.create(name, json!({})).await?;
    world.chat(&session, &format!("MARK-{name}")).await?;
    let (poll, approval) = world.asked(&session).await?;
    Ok((session, poll, approval))
}

/// The same. A child over HTTP has also received the event id with which it can resume its stream.
async fn waiting(world: &World, name: &str) -> anyhow::Result<(String, Value, Value)> {
    let asked = asking(world, name).await?;
    if world.setup.channel == Channel::Http {
        // The first progress notification is sent after the event id.
        until("its stream is open", || world.hub.stderr().contains("sent progress for a waiting permit"))
            .await?;
    }
    Ok(asked)
}

async fn waits_at_the_gate(mut world: World, stop: Stop) -> anyhow::Result<()> {
    let (session, before, approval) = waiting(&world, "waiter").await?;
    let url = world.hub.url().to_owned();
    let children = processes_of(&session);
    match stop {
        Stop::Signalled => {
            assert!(world.hub.terminate().await?.success());
            let said = "1 child is paused at the gate";
            until("the hub says what it leaves", || world.hub.stderr().contains(said)).await?;
            assert!(!world.hub.data_dir().join("hub.json").exists(), "no hub listens");
        }
        Stop::Killed => world.hub.kill9().await?,
    }
    assert_eq!(processes_of(&session), children, "the child still runs");
    assert!(!world.file("waiter.txt").exists());

    world.hub.restart().await?;
    assert_eq!(world.hub.url(), url, "the same port again");
    let listed = world.call("claudecode.list", json!({})).await?;
    let listed: Vec<&Value> = listed["sessions"].as_array().into_iter().flatten().map(|s| &s["id"]).collect();
    assert_eq!(listed, [&json!(session)]);
    let (after, same) = world.asked(&session).await?;
    assert_eq!(same, approval);
    let seen = |poll: &Value| poll["events"].as_array().cloned().unwrap_or_default();
    assert!(seen(&after).starts_with(&seen(&before)), "every event has the same number: {after:#}");

    world.allow(&same).await?;
    completed_once(&world, &session, "waiter").await
}

/// The turn is complete, the call ran once, and the event numbers have no gaps.
async fn completed_once(world: &World, session: &str, name: &str) -> anyhow::Result<()> {
    let poll = world.ended(session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert_eq!(events(&poll, "complete")[0]["result"], "All done.");
    assert_eq!(std::fs::read_to_string(world.file(&format!("{name}.txt")))?, "ran\n");
    for kind in ["start", "tool_use", "approval_requested", "approval_resolved", "tool_result", "complete"] {
        assert_eq!(events(&poll, kind).len(), 1, "{kind}: {poll:#}");
    }
    let all = poll["events"].as_array().cloned().unwrap_or_default();
    let seqs: Vec<u64> = all.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
    replied_once(world, session)
}

/// Checks that no request of the child was answered twice.
fn replied_once(world: &World, session: &str) -> anyhow::Result<()> {
    let outbox = std::fs::read_to_string(world.run_dir(session, 1).join("outbox.jsonl"))?;
    let mut replies: HashMap<String, usize> = HashMap::new();
    for line in outbox.lines() {
        let line: Value = serde_json::from_str(line)?;
        if line["type"] == "control_response" {
            *replies.entry(text(&line["response"]["request_id"])).or_default() += 1;
        }
    }
    assert!(!replies.is_empty(), "the gate was answered at least once");
    assert!(replies.values().all(|count| *count == 1), "{replies:?}\n{outbox}");
    Ok(())
}

async fn an_answer_committed_just_before_a_kill_reaches_the_child_once(
    mut world: World,
) -> anyhow::Result<()> {
    let (session, _, approval) = waiting(&world, "quick").await?;
    world.allow(&approval).await?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    completed_once(&world, &session, "quick").await?;
    let late = world.respond(&approval, json!({"approve": false})).await?;
    assert_eq!((&late["type"], &late["status"]), (&json!("already_resolved"), &json!("allowed")));
    Ok(())
}

/// The approval is stored before the child receives the event id with which it can resume. The kill may come in between.
async fn a_child_never_waits_forever_however_early_the_hub_is_killed(mut world: World) -> anyhow::Result<()> {
    for name in ["first", "second", "third"] {
        let (session, _, approval) = asking(&world, name).await?;
        world.hub.kill9().await?;
        world.hub.restart().await?;
        world.allow(&approval).await?;
        let poll = world.ended(&session).await?;
        let ran = world.file(&format!("{name}.txt")).exists();
        if poll["status"] == "complete" {
            // A kill before the response has started is an error of the call for a child over HTTP.
            let failed = world.setup.channel == Channel::Http
                && events(&poll, "tool_result").iter().any(|result| result["is_error"] == true);
            assert!(ran != failed, "{poll:#}");
            continue;
        }
        // The hub interrupted a child over HTTP that never resumed.
        assert_eq!(world.setup.channel, Channel::Http, "{poll:#}");
        assert_eq!(events(&poll, "error")[0]["reason"], "permit_lost", "{poll:#}");
        assert!(!ran);
        world.model.script("GO-ON", vec![Step::text("Here again.")]);
        world.chat(&session, "GO-ON").await?;
        assert_eq!(world.ended(&session).await?["status"], "complete");
    }
    Ok(())
}

async fn scripted() -> anyhow::Result<World> {
    Setup::scripted().world("restart").await?.context("the scripted agent is always available")
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// The next approval of a session, unless its turn ends first.
async fn next_approval(world: &World, session: &str) -> anyhow::Result<Option<Value>> {
    let poll = world
        .poll_until(session, |poll| poll["status"] == "complete" || poll["status"] == "awaiting_permission")
        .await?;
    Ok(poll["pending_approvals"].get(0).cloned())
}

/// Returns when this approval is resolved.
async fn is_resolved(world: &World, approval: &Value) -> anyhow::Result<()> {
    let get = json!({"approval_id": approval["id"]});
    while world.call("loopback.get", get.clone()).await?["approval"]["status"] == "pending" {}
    Ok(())
}

/// Many children at once, so that the kill reaches each of them in a different state.
#[tokio::test]
async fn answers_sent_around_a_kill_reach_each_child_once() -> anyhow::Result<()> {
    const CHILDREN: usize = 24;
    let mut world = scripted().await?;
    let mut asked = Vec::new();
    for n in 0..CHILDREN {
        let prompt = script(
            &json!([bash(&format!("echo {n}")), bash(&format!("echo again {n}")), {"say": "All done."}]),
        );
        asked.push(world.create(&format!("child-{n}"), json!({"prompt": prompt})).await?);
    }
    for kills in [1, 1, 0] {
        let mut open = Vec::new();
        for session in &asked {
            open.extend(next_approval(&world, session).await?);
        }
        let answers = open.iter().map(|approval| world.respond(approval, json!({"approve": true})));
        let answers = futures::future::join_all(answers);
        if kills == 0 {
            answers.await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
            break;
        }
        // The hub is killed while it commits the answers: some are committed, some are lost.
        let first = open.first().context("no approval is open")?;
        tokio::select! {
            _ = answers => {}
            is_resolved = is_resolved(&world, first) => is_resolved?,
        }
        world.hub.kill9().await?;
        world.hub.restart().await?;
        // All answers are repeated at once, while the hub still recovers.
        let again = open.iter().map(|approval| world.respond(approval, json!({"approve": true})));
        for answered in futures::future::join_all(again).await {
            let answered = answered?;
            assert!(answered["type"] == "ok" || answered["status"] == "allowed", "{answered}");
        }
    }
    for session in &asked {
        let poll = world.ended(session).await?;
        assert_eq!(poll["status"], "complete", "{poll:#}");
        assert_eq!(events(&poll, "tool_result").len(), 2, "{poll:#}");
        replied_once(&world, session)?;
    }
    let mut ran: Vec<String> = world.ran().iter().map(|call| text(&call["tool_use_id"])).collect();
    assert_eq!(ran.len(), 2 * CHILDREN);
    ran.sort_unstable();
    ran.dedup();
    assert_eq!(ran.len(), 2 * CHILDREN, "none ran twice");
    Ok(())
}

#[tokio::test]
async fn a_deadline_that_passed_without_a_hub_expires_after_the_restart() -> anyhow::Result<()> {
    let mut world = scripted().await?;
    let prompt = script(&json!([bash("touch late.txt"), {"say": "gave up"}]));
    let session = world.create("overdue", json!({"prompt": prompt, "approval_timeout_secs": 2})).await?;
    let (_, approval) = world.asked(&session).await?;
    world.hub.kill9().await?;
    let deadline = approval["expires_at"].as_u64().context("a deadline")?;
    until("the deadline has passed", || {
        std::time::UNIX_EPOCH.elapsed().is_ok_and(|now| now.as_secs() > deadline)
    })
    .await?;
    world.hub.restart().await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert_eq!(events(&poll, "approval_resolved")[0]["status"], "expired");
    assert!(world.ran().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_turn_that_ended_without_a_hub_is_reported_after_the_restart() -> anyhow::Result<()> {
    let mut world = scripted().await?;
    let prompt = script(&json!([{"say": "before"}, {"wait_file": "go"}, {"say": "meanwhile"}]));
    let session = world.create("busy", json!({"prompt": prompt})).await?;
    world.poll_until(&session, |poll| !events(poll, "content").is_empty()).await?;
    world.hub.kill9().await?;
    std::fs::write(world.file("go"), "")?;
    let journal = world.run_dir(&session, 1).join("journal.jsonl");
    until("the child has said the rest", || {
        std::fs::read_to_string(&journal).is_ok_and(|journal| journal.contains("meanwhile"))
    })
    .await?;
    world.hub.restart().await?;
    let poll = world.ended(&session).await?;
    let said: Vec<String> = events(&poll, "content").iter().map(|event| text(&event["text"])).collect();
    assert_eq!(said, ["before", "meanwhile"]);
    assert_eq!(poll["status"], "complete", "{poll:#}");
    Ok(())
}

/// The process that should read the prompt is killed while no hub runs. The next hub is killed while it starts another process.
#[tokio::test]
async fn a_prompt_that_moves_to_another_process_survives_any_kill() -> anyhow::Result<()> {
    let files = tempfile::tempdir()?;
    let file = files.path().join("kill-point");
    for point in ["start: keeper known", "start: initialize sent", "ready: stored"] {
        let mut setup = Setup::scripted();
        setup.env.push(("PLEXUS_KILL_POINT_FILE".to_owned(), file.display().to_string()));
        let mut world = setup.world("a prompt on its way").await?.context("the scripted agent")?;
        let session = world.create("moved", json!({})).await?;
        std::fs::write(&file, "prompt: bound")?;
        world.chat(&session, &script(&json!([{"say": "here"}]))).await?;
        world.hub.wait().await?;
        for pid in processes_of(&session) {
            kill_process(Pid::from_raw(pid.cast_signed()).context("a pid")?, Signal::KILL)?;
        }
        until("its process to end", || processes_of(&session).is_empty()).await?;

        std::fs::write(&file, point)?;
        // The hub may reach the kill point before it is ready.
        let _ = world.hub.restart().await;
        world.hub.wait().await?;
        world.hub.restart().await?;
        let poll = world.ended(&session).await?;
        assert_eq!(poll["status"], "complete", "{point}: {poll:#}");
        assert_eq!(events(&poll, "complete")[0]["result"], "here");
    }
    Ok(())
}
