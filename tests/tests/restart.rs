//! A hub that goes away, gently or not, and comes back: the same sessions, approvals and numbers are there, the child
//! has waited at the gate, and an answer reaches it exactly once. Both pinned CLIs, every channel.

use std::collections::HashMap;
use std::process::Stdio;

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, Setup, World, events, processes_of, script, text, until};
use plexus_testkit::binaries;
use plexus_testkit::model::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::Command;

/// Makes one test of an `async fn(World) -> anyhow::Result<()>` per pinned CLI and channel.
macro_rules! over_every_channel {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            over_every_channel!(@one $name cli_197_control "2.1.197" Control);
            over_every_channel!(@one $name cli_197_relay "2.1.197" Relay);
            over_every_channel!(@one $name cli_197_http "2.1.197" Http);
            over_every_channel!(@one $name cli_325_control "2.1.325" Control);
            over_every_channel!(@one $name cli_325_relay "2.1.325" Relay);
            over_every_channel!(@one $name cli_325_http "2.1.325" Http);
        }
    )*};
    (@one $name:ident $test:ident $version:literal $channel:ident) => {
        #[tokio::test]
        async fn $test() -> anyhow::Result<()> {
            let setup = super::Setup::cli($version, super::Channel::$channel, super::DoorKind::Rpc);
            // The CLI waits this long before it comes back to a stream that broke, twice.
            let setup = setup.with_config("sse_retry_ms = 2000\nprogress_secs = 0.1");
            match setup.world(concat!(stringify!($name), "::", stringify!($test))).await? {
                Some(world) => super::$name(world).await,
                None => Ok(()),
            }
        }
    };
}

over_every_channel!(
    a_hub_that_is_told_to_end_leaves_its_child_at_the_gate,
    a_hub_that_is_killed_leaves_its_child_at_the_gate,
    an_answer_given_just_before_the_kill_reaches_the_child_once,
    however_early_the_kill_no_child_waits_for_good,
);

async fn a_hub_that_is_told_to_end_leaves_its_child_at_the_gate(world: World) -> anyhow::Result<()> {
    waits_at_the_gate(world, Away::Told).await
}

async fn a_hub_that_is_killed_leaves_its_child_at_the_gate(world: World) -> anyhow::Result<()> {
    waits_at_the_gate(world, Away::Killed).await
}

/// How a hub goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Away {
    Told,
    Killed,
}

/// A real child at the gate with a call that leaves a mark each time it runs.
async fn asking(world: &World, name: &str) -> anyhow::Result<(String, Value, Value)> {
    let call = json!({"command": format!("echo ran >> {name}.txt"), "description": "a step"});
    world.model.script(&format!("MARK-{name}"), vec![Step::tool("Bash", call), Step::text("All done.")]);
    let session = world.create(name, json!({})).await?;
    world.chat(&session, &format!("MARK-{name}")).await?;
    let (poll, approval) = world.asked(&session).await?;
    Ok((session, poll, approval))
}

/// The same, once a child that asks over HTTP has been told how to come back.
async fn waiting(world: &World, name: &str) -> anyhow::Result<(String, Value, Value)> {
    let asked = asking(world, name).await?;
    if world.setup.channel == Channel::Http {
        // The first sign of life goes out after the word how to come back.
        until("its stream is open", || world.hub.stderr().contains("sent progress for a waiting permit"))
            .await?;
    }
    Ok(asked)
}

async fn waits_at_the_gate(mut world: World, away: Away) -> anyhow::Result<()> {
    let (session, before, approval) = waiting(&world, "waiter").await?;
    let url = world.hub.url().to_owned();
    let children = processes_of(&session);
    match away {
        Away::Told => {
            assert!(world.hub.terminate().await?.success());
            let said = "1 child is paused at the gate";
            until("the hub says what it leaves", || world.hub.stderr().contains(said)).await?;
            assert!(!world.hub.data_dir().join("hub.json").exists(), "nobody listens any more");
        }
        Away::Killed => world.hub.kill9().await?,
    }
    assert_eq!(processes_of(&session), children, "the child goes on");
    assert!(!world.file("waiter.txt").exists());

    world.hub.restart().await?;
    assert_eq!(world.hub.url(), url, "the same port again");
    let listed = world.call("claudecode.list", json!({})).await?;
    let listed: Vec<&Value> = listed["sessions"].as_array().into_iter().flatten().map(|s| &s["id"]).collect();
    assert_eq!(listed, [&json!(session)]);
    let (after, same) = world.asked(&session).await?;
    assert_eq!(same, approval);
    let seen = |poll: &Value| poll["events"].as_array().cloned().unwrap_or_default();
    assert!(seen(&after).starts_with(&seen(&before)), "every event is there under its number: {after:#}");

    world.allow(&same).await?;
    completed_once(&world, &session, "waiter").await
}

/// The turn went on to its end, the call ran once, and the story has no gap.
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

/// No request of the child was answered twice.
fn replied_once(world: &World, session: &str) -> anyhow::Result<()> {
    let outbox = std::fs::read_to_string(world.run_dir(session, 1).join("outbox.jsonl"))?;
    let mut replies: HashMap<String, usize> = HashMap::new();
    for line in outbox.lines() {
        let line: Value = serde_json::from_str(line)?;
        if line["type"] == "control_response" {
            *replies.entry(text(&line["response"]["request_id"])).or_default() += 1;
        }
    }
    assert!(!replies.is_empty(), "the gate was answered at least");
    assert!(replies.values().all(|count| *count == 1), "{replies:?}\n{outbox}");
    Ok(())
}

async fn an_answer_given_just_before_the_kill_reaches_the_child_once(mut world: World) -> anyhow::Result<()> {
    let (session, _, approval) = waiting(&world, "quick").await?;
    world.allow(&approval).await?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    completed_once(&world, &session, "quick").await?;
    let late = world.respond(&approval, json!({"approve": false})).await?;
    assert_eq!((&late["type"], &late["status"]), (&json!("already_resolved"), &json!("allowed")));
    Ok(())
}

/// The question is durable before the child is told how to come back for the answer: a kill may fall in between.
async fn however_early_the_kill_no_child_waits_for_good(mut world: World) -> anyhow::Result<()> {
    for name in ["first", "second", "third"] {
        let (session, _, approval) = asking(&world, name).await?;
        world.hub.kill9().await?;
        world.hub.restart().await?;
        world.allow(&approval).await?;
        let poll = world.ended(&session).await?;
        let ran = world.file(&format!("{name}.txt")).exists();
        if poll["status"] == "complete" {
            assert!(ran, "{poll:#}");
            continue;
        }
        // A child over HTTP that never came back was set free.
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
    Setup::scripted().world("restart").await?.context("the scripted agent is always there")
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// What a session asks next, unless its turn ends first.
async fn next_question(world: &World, session: &str) -> anyhow::Result<Option<Value>> {
    let poll = world
        .poll_until(session, |poll| poll["status"] == "complete" || poll["status"] == "awaiting_permission")
        .await?;
    Ok(poll["pending_approvals"].get(0).cloned())
}

/// Returns once an answer to this approval counts.
async fn counts(world: &World, approval: &Value) -> anyhow::Result<()> {
    let get = json!({"approval_id": approval["id"]});
    while world.call("loopback.get", get.clone()).await?["approval"]["status"] == "pending" {}
    Ok(())
}

/// Many children at once, so that the kill meets each of them at another point of its way.
#[tokio::test]
async fn answers_around_a_kill_reach_each_child_once() -> anyhow::Result<()> {
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
            open.extend(next_question(&world, session).await?);
        }
        let answers = open.iter().map(|approval| world.respond(approval, json!({"approve": true})));
        let answers = futures::future::join_all(answers);
        if kills == 0 {
            answers.await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
            break;
        }
        // Some answers count, some are cut off: the hub is killed in the midst of them.
        let first = open.first().context("someone asks")?;
        tokio::select! {
            _ = answers => {}
            counts = counts(&world, first) => counts?,
        }
        world.hub.kill9().await?;
        world.hub.restart().await?;
        // Whoever's answer was lost is answered again, at once, while the hub still takes things up.
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
async fn a_deadline_that_passed_while_the_hub_was_away_expires_when_it_is_back() -> anyhow::Result<()> {
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
async fn a_turn_that_ended_while_the_hub_was_away_is_told_when_it_is_back() -> anyhow::Result<()> {
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

async fn down(world: &World) -> anyhow::Result<String> {
    let mut command = Command::new(binaries::plexus()?);
    command.args(["down", "--data-dir"]).arg(world.hub.data_dir()).env_clear().stdin(Stdio::null());
    let output =
        tokio::time::timeout(plexus_e2e::LIMIT, command.output()).await.context("it did not end")??;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    anyhow::ensure!(output.status.success(), "{said}");
    Ok(said)
}

#[tokio::test]
async fn down_ends_the_hub_and_its_children() -> anyhow::Result<()> {
    let mut world = scripted().await?;
    let mut sessions = Vec::new();
    for name in ["one", "two"] {
        let session = world.create(name, json!({"prompt": script(&json!([bash("true")]))})).await?;
        world.asked(&session).await?;
        sessions.push(session);
    }
    assert!(down(&world).await?.contains("stopped the hub and 2 children"));
    assert!(world.hub.wait().await?.success());
    assert!(sessions.iter().all(|session| processes_of(session).is_empty()));
    // What was open is told the next time.
    world.hub.restart().await?;
    for session in &sessions {
        let poll = world.ended(session).await?;
        assert_eq!(poll["status"], "interrupted", "{poll:#}");
        assert_eq!(events(&poll, "approval_resolved")[0]["status"], "withdrawn");
    }
    assert!(world.ran().is_empty());
    Ok(())
}

#[tokio::test]
async fn down_ends_children_that_a_dead_hub_left() -> anyhow::Result<()> {
    let mut world = scripted().await?;
    let session = world.create("orphan", json!({"prompt": script(&json!([bash("true")]))})).await?;
    world.asked(&session).await?;
    world.hub.kill9().await?;
    assert!(!processes_of(&session).is_empty());
    assert!(down(&world).await?.contains("stopped 1 child of an earlier hub"));
    assert!(processes_of(&session).is_empty());
    assert!(world.ran().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_prompt_taken_just_before_a_kill_goes_to_the_process_that_is_there() -> anyhow::Result<()> {
    let setup = Setup::scripted().with_config("initialize_secs = 10");
    let mut world = setup.world("a prompt just before a kill").await?.context("the scripted agent")?;
    let session = world.create("steady", json!({"prompt": script(&json!([{"say": "turn 1"}]))})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    for turn in 2..=12 {
        world.chat(&session, &script(&json!([{"say": format!("turn {turn}")}]))).await?;
        world.hub.kill9().await?;
        world.hub.restart().await?;
        let poll = world.ended(&session).await?;
        assert_eq!((&poll["status"], &poll["turn"]), (&json!("complete"), &json!(turn)), "{poll:#}");
        assert_eq!(events(&poll, "complete")[0]["result"], format!("turn {turn}"));
        assert!(events(&poll, "complete")[0]["cost_usd"].as_f64() < Some(0.002), "its own cost: {poll:#}");
    }
    assert!(!world.run_dir(&session, 2).exists(), "one process for all of them");
    Ok(())
}

/// The process that was to read a prompt is killed while the hub is away, and the hub again while it starts the next.
#[tokio::test]
async fn a_prompt_on_its_way_to_another_process_arrives_whatever_is_killed() -> anyhow::Result<()> {
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
        until("its process to be gone", || processes_of(&session).is_empty()).await?;

        std::fs::write(&file, point)?;
        // It may come to the point before it is ready.
        let _ = world.hub.restart().await;
        world.hub.wait().await?;
        world.hub.restart().await?;
        let poll = world.ended(&session).await?;
        assert_eq!(poll["status"], "complete", "{point}: {poll:#}");
        assert_eq!(events(&poll, "complete")[0]["result"], "here");
    }
    Ok(())
}
