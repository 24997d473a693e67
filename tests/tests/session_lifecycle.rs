//! The lifecycle of a session: several prompts in one process, interrupts, messages during a turn, a change of model, and
//! the end of an idle process. Each test runs on both pinned CLIs, over the control channel and over the relay.

use std::time::Duration;

use anyhow::Context as _;
use plexus_e2e::{LIMIT, Setup, World, events, is_alive, over, processes_of, script, text, until};
use plexus_testkit::model::{Recorded, Step};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Far less than the time after which a child that ignores an interrupt is ended.
const QUICK: Duration = Duration::from_secs(5);

over!(channels:
    an_interrupt_ends_the_command_and_keeps_the_process,
    an_interrupt_withdraws_open_approvals,
    an_interrupt_ends_a_model_request,
    an_interrupt_ends_a_turn_with_an_unread_message,
    an_interrupt_without_a_turn_changes_nothing,
    a_message_sent_while_an_approval_is_open_belongs_to_the_turn,
    a_new_model_answers_the_next_prompt,
    a_message_survives_a_kill_of_the_hub_and_is_delivered_once,
    an_interrupt_survives_a_kill_of_the_hub,
);
over!(channels, "idle_secs = 0.5": an_idle_process_ends_and_the_next_prompt_continues_the_conversation);

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "a step"}))
}

/// A command that reports its start and then runs until it is ended.
fn endless(name: &str) -> Step {
    bash(&format!("touch {name}.running; until [ -e {name}.never ]; do sleep 0.1; done"))
}

async fn session_of(world: &World, session: &str) -> anyhow::Result<Value> {
    Ok(world.call("claudecode.get", json!({"session_id": session})).await?["session"].clone())
}

/// The pid of the session's process.
async fn pid(world: &World, session: &str) -> anyhow::Result<u32> {
    let pid = session_of(world, session).await?["pid"].as_u64().context("it has a process")?;
    let pid = u32::try_from(pid)?;
    assert!(is_alive(pid));
    Ok(pid)
}

async fn interrupt(world: &World, session: &str) -> anyhow::Result<()> {
    let done = world.call("claudecode.interrupt", json!({"session_id": session})).await?;
    assert_eq!(done, json!({"type": "ok", "session_id": session}));
    Ok(())
}

async fn send(world: &World, session: &str, text: &str) -> anyhow::Result<Value> {
    world.call("claudecode.send", json!({"session_id": session, "prompt": text})).await
}

/// Waits for the end of a turn, which must be complete.
async fn completed(world: &World, session: &str) -> anyhow::Result<Value> {
    let poll = world.ended(session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert_eq!(events(&poll, "complete").len(), 1, "a turn ends once: {poll:#}");
    Ok(poll)
}

/// Waits for the end of a turn, which must be interrupted.
async fn is_interrupted(world: &World, session: &str) -> anyhow::Result<Value> {
    let poll = world.ended(session).await?;
    assert_eq!(poll["status"], "interrupted", "{poll:#}");
    let ends = events(&poll, "error");
    assert_eq!((ends.len(), &ends[0]["reason"]), (1, &json!("interrupted")), "{poll:#}");
    Ok(poll)
}

/// Checks that the same process answers the next prompt.
async fn assert_answers_in_the_same_process(
    world: &World,
    session: &str,
    process: u32,
) -> anyhow::Result<()> {
    world.model.script("GO-ON", vec![Step::text("Here again.")]);
    world.chat(session, "GO-ON").await?;
    let poll = completed(world, session).await?;
    assert_eq!(events(&poll, "complete")[0]["result"], "Here again.");
    assert_eq!(pid(world, session).await?, process);
    Ok(())
}

/// The number of times a text occurs in the messages of a model request.
fn occurrences(body: &Value, text: &str) -> usize {
    body["messages"].to_string().matches(text).count()
}

fn is_about(request: &Recorded, marker: &str) -> bool {
    request.marker.as_deref() == Some(marker)
}

async fn an_interrupt_ends_the_command_and_keeps_the_process(world: World) -> anyhow::Result<()> {
    world.model.script("RUN-LONG", vec![endless("long"), Step::text("Never said.")]);
    let session = world.create("long", json!({})).await?;
    world.chat(&session, "RUN-LONG").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    until("the command runs", || world.file("long.running").exists()).await?;
    let process = pid(&world, &session).await?;

    let before = Instant::now();
    interrupt(&world, &session).await?;
    assert!(before.elapsed() < QUICK, "{:?}", before.elapsed());
    let poll = is_interrupted(&world, &session).await?;
    assert_eq!(events(&poll, "tool_result").len(), 1, "{poll:#}");
    until("the command has ended", || {
        let commands =
            processes_of(&session).into_iter().map(|pid| std::fs::read(format!("/proc/{pid}/cmdline")));
        !commands.flatten().any(|line| String::from_utf8_lossy(&line).contains("long.never"))
    })
    .await?;
    assert_answers_in_the_same_process(&world, &session, process).await
}

async fn an_interrupt_withdraws_open_approvals(world: World) -> anyhow::Result<()> {
    world.model.script("ASK-FIRST", vec![bash("touch asked.txt"), Step::text("Never said.")]);
    let session = world.create("asking", json!({})).await?;
    world.chat(&session, "ASK-FIRST").await?;
    let (_, approval) = world.asked(&session).await?;
    let process = pid(&world, &session).await?;

    let before = Instant::now();
    interrupt(&world, &session).await?;
    assert!(before.elapsed() < QUICK, "{:?}", before.elapsed());
    let poll = is_interrupted(&world, &session).await?;
    assert_eq!(events(&poll, "approval_resolved")[0]["status"], "withdrawn", "{poll:#}");
    assert_eq!(poll["pending_approvals"], json!([]));
    let late = world.respond(&approval, json!({"approve": true})).await?;
    assert_eq!((&late["type"], &late["status"]), (&json!("already_resolved"), &json!("withdrawn")));
    assert_answers_in_the_same_process(&world, &session, process).await?;
    assert!(!world.file("asked.txt").exists());
    Ok(())
}

async fn an_interrupt_ends_a_model_request(world: World) -> anyhow::Result<()> {
    let (held, _hold) = Step::hold(Step::text("Too late."));
    world.model.script("THINK-LONG", vec![held]);
    let session = world.create("thinking", json!({})).await?;
    world.chat(&session, "THINK-LONG").await?;
    world.model.seen(|request| is_about(request, "THINK-LONG")).await?;
    let process = pid(&world, &session).await?;
    interrupt(&world, &session).await?;
    is_interrupted(&world, &session).await?;
    assert_answers_in_the_same_process(&world, &session, process).await
}

async fn an_interrupt_ends_a_turn_with_an_unread_message(world: World) -> anyhow::Result<()> {
    world.model.script("RUN-AND-HEAR", vec![endless("hear"), Step::text("Never said.")]);
    let session = world.create("hear", json!({})).await?;
    world.chat(&session, "RUN-AND-HEAR").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    until("the command runs", || world.file("hear.running").exists()).await?;
    let process = pid(&world, &session).await?;
    send(&world, &session, "ONE-MORE-THING").await?;
    let before = Instant::now();
    interrupt(&world, &session).await?;
    assert!(before.elapsed() < QUICK, "{:?}", before.elapsed());
    is_interrupted(&world, &session).await?;
    assert_answers_in_the_same_process(&world, &session, process).await?;
    let heard = world.model.requests().iter().any(|request| occurrences(&request.body, "ONE-MORE-THING") > 0);
    assert!(!heard, "an unread message is withdrawn by the interrupt");
    Ok(())
}

async fn an_interrupt_without_a_turn_changes_nothing(world: World) -> anyhow::Result<()> {
    let session = world.create("calm", json!({})).await?;
    interrupt(&world, &session).await?;
    world.model.script("BE-CALM", vec![Step::text("Calm.")]);
    world.chat(&session, "BE-CALM").await?;
    completed(&world, &session).await?;
    let process = pid(&world, &session).await?;
    interrupt(&world, &session).await?;
    assert_eq!(session_of(&world, &session).await?["status"], "complete");
    assert_answers_in_the_same_process(&world, &session, process).await
}

/// A session whose first call waits for approval.
async fn waiting(world: &World, marker: &str) -> anyhow::Result<(String, Value)> {
    world.model.script(marker, vec![bash(&format!("touch {marker}.txt")), Step::text("Done.")]);
    let session = world.create(marker, json!({})).await?;
    world.chat(&session, marker).await?;
    let (_, approval) = world.asked(&session).await?;
    Ok((session, approval))
}

async fn a_message_sent_while_an_approval_is_open_belongs_to_the_turn(world: World) -> anyhow::Result<()> {
    let (session, approval) = waiting(&world, "LISTEN").await?;
    let sent = send(&world, &session, "AND-MIND-THE-GAP").await?;
    assert_eq!(sent, json!({"type": "sent", "session_id": session, "turn": 1}));
    let second =
        world.refused("claudecode.chat_async", json!({"session_id": session, "prompt": "LISTEN"})).await?;
    assert_eq!(second.kind.as_deref(), Some("turn_in_progress"), "{second:?}");
    world.allow(&approval).await?;

    let poll = completed(&world, &session).await?;
    assert_eq!(poll["turn"], 1);
    assert!(world.file("LISTEN.txt").exists());
    let notes = events(&poll, "system");
    assert_eq!(notes.iter().filter(|note| note["subtype"] == "sent").count(), 1, "{poll:#}");
    let requests = world.model.requests_for("LISTEN");
    let counts: Vec<usize> = requests.iter().map(|body| occurrences(body, "AND-MIND-THE-GAP")).collect();
    assert_eq!(counts, [0, 1], "the model receives it once, with the result of the call");
    assert_eq!(session_of(&world, &session).await?["status"], "complete");
    Ok(())
}

async fn a_new_model_answers_the_next_prompt(world: World) -> anyhow::Result<()> {
    for marker in ["BEFORE", "AFTER", "LAST"] {
        world.model.script(marker, vec![Step::text("Answered.")]);
    }
    let session = world.create("modelled", json!({"model": "claude-sonnet-4-5"})).await?;
    let set = |model: &'static str| {
        world.call("claudecode.set_model", json!({"session_id": session, "model": model}))
    };
    let asked =
        |marker: &str| world.model.requests_for(marker).iter().map(|b| text(&b["model"])).collect::<Vec<_>>();
    world.chat(&session, "BEFORE").await?;
    completed(&world, &session).await?;
    assert_eq!(asked("BEFORE"), ["claude-sonnet-4-5"]);
    let process = pid(&world, &session).await?;

    assert_eq!(set("claude-haiku-4-5").await?["type"], "ok");
    assert_eq!(session_of(&world, &session).await?["model"], "claude-haiku-4-5");
    world.chat(&session, "AFTER").await?;
    completed(&world, &session).await?;
    assert_eq!(asked("AFTER"), ["claude-haiku-4-5"]);
    assert_eq!(pid(&world, &session).await?, process);

    // A new process starts with the new model.
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    assert_eq!(set("claude-sonnet-4-5").await?["type"], "ok");
    world.chat(&session, "LAST").await?;
    completed(&world, &session).await?;
    assert_eq!(asked("LAST"), ["claude-sonnet-4-5"]);
    Ok(())
}

async fn an_idle_process_ends_and_the_next_prompt_continues_the_conversation(
    world: World,
) -> anyhow::Result<()> {
    world.model.script("FIRST-WORD", vec![Step::text("The word is plum.")]);
    world.model.script("SECOND-WORD", vec![bash("touch second.txt"), Step::text("It was plum.")]);
    let session = world.create("patient", json!({})).await?;
    world.chat(&session, "FIRST-WORD").await?;
    completed(&world, &session).await?;
    until("the process has ended", || processes_of(&session).is_empty()).await?;
    let let_go = async {
        loop {
            let shown = session_of(&world, &session).await?;
            if shown["pid"].is_null() {
                return anyhow::Ok(shown);
            }
        }
    };
    let shown = tokio::time::timeout(LIMIT, let_go).await??;
    assert_eq!((&shown["status"], &shown["pid"]), (&json!("complete"), &Value::Null), "{shown:#}");

    assert_eq!(world.chat(&session, "SECOND-WORD").await?, 2);
    let (_, approval) = world.asked(&session).await?;
    // A process that waits for approval is not idle.
    let process = pid(&world, &session).await?;
    let longer = Instant::now() + Duration::from_secs(1);
    until("the time of an idle process is over", || Instant::now() > longer).await?;
    assert_eq!(pid(&world, &session).await?, process);
    world.allow(&approval).await?;
    completed(&world, &session).await?;
    let body = world.model.seen(|request| is_about(request, "SECOND-WORD")).await?.body;
    assert_eq!(occurrences(&body, "FIRST-WORD"), 1, "{body:#}");
    assert_eq!(occurrences(&body, "The word is plum."), 1, "{body:#}");
    assert!(world.file("second.txt").exists());
    Ok(())
}

async fn a_message_survives_a_kill_of_the_hub_and_is_delivered_once(mut world: World) -> anyhow::Result<()> {
    let (session, approval) = waiting(&world, "SURVIVE").await?;
    let process = pid(&world, &session).await?;
    send(&world, &session, "STILL-HERE").await?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    world.allow(&approval).await?;
    completed(&world, &session).await?;
    assert_eq!(pid(&world, &session).await?, process);
    let requests = world.model.requests_for("SURVIVE");
    assert_eq!(occurrences(requests.last().context("a request")?, "STILL-HERE"), 1);
    assert_eq!(outbox(&world, &session)?.matches("STILL-HERE").count(), 1);
    Ok(())
}

async fn an_interrupt_survives_a_kill_of_the_hub(mut world: World) -> anyhow::Result<()> {
    world.model.script("RUN-ON", vec![endless("on"), Step::text("Never said.")]);
    let session = world.create("on", json!({})).await?;
    world.chat(&session, "RUN-ON").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    until("the command runs", || world.file("on.running").exists()).await?;
    let process = pid(&world, &session).await?;
    // The hub is killed when it has sent the interrupt or has seen the end of the turn, whichever is first.
    tokio::select! {
        done = interrupt(&world, &session) => done?,
        asked = until("the interrupt is sent", || {
            outbox(&world, &session).is_ok_and(|outbox| outbox.contains("plexus-interrupt-1"))
        }) => asked?,
    }
    world.hub.kill9().await?;
    world.hub.restart().await?;
    is_interrupted(&world, &session).await?;
    assert_eq!(outbox(&world, &session)?.matches("plexus-interrupt-1").count(), 1);
    assert_answers_in_the_same_process(&world, &session, process).await
}

/// Everything that was sent to the session's first process.
fn outbox(world: &World, session: &str) -> anyhow::Result<String> {
    Ok(std::fs::read_to_string(world.run_dir(session, 1).join("outbox.jsonl"))?)
}

async fn scripted(config: &str) -> anyhow::Result<World> {
    let world = Setup::scripted().with_config(config).world("life").await?;
    world.context("the scripted agent is always available")
}

fn echo(words: &str) -> String {
    script(&json!([{"tool": "Bash", "input": {"command": format!("echo {words}")}}, {"say": words}]))
}

/// The commands that the agents ran, in order.
fn echoed(world: &World) -> Vec<String> {
    world.ran().iter().map(|call| text(&call["input"]["command"])).collect()
}

/// The number of processes that a session has had.
fn processes(world: &World, session: &str) -> usize {
    (1..).take_while(|run| world.run_dir(session, *run).exists()).count()
}

/// Each prompt is sent close to the instant at which the idle process is closed. After a prompt that was too late the
/// next one is sent earlier, after one that was too early later.
#[tokio::test]
async fn a_prompt_at_the_end_of_an_idle_process_is_delivered_exactly_once() -> anyhow::Result<()> {
    const SESSIONS: u64 = 4;
    const PROMPTS: u64 = 50;
    let world = scripted("idle_secs = 0.1").await?;
    let mut sessions = Vec::new();
    for n in 0..SESSIONS {
        sessions.push(world.create(&format!("racer-{n}"), json!({"policy": "allow_all"})).await?);
    }
    let races = sessions.iter().enumerate().map(|(n, session)| {
        let world = &world;
        async move {
            let (mut pause, mut step) = (Duration::from_millis(60), Duration::from_millis(20));
            for prompt in 0..PROMPTS {
                let before = processes(world, session);
                let turn = world.chat(session, &echo(&format!("{n}-{prompt}"))).await?;
                assert_eq!(turn, prompt + 1);
                let poll = completed(world, session).await?;
                assert_eq!(events(&poll, "complete")[0]["result"], format!("{n}-{prompt}"), "{poll:#}");
                let was_late = processes(world, session) > before;
                pause = if was_late { pause.saturating_sub(step) } else { pause + step };
                step = (step * 3 / 4).max(Duration::from_millis(1));
                // This pause waits for nothing. It chooses the instant of the next prompt.
                tokio::time::sleep(pause).await;
            }
            anyhow::Ok(())
        }
    });
    for race in futures::future::join_all(races).await {
        race?;
    }
    let mut ran = echoed(&world);
    let mut wanted: Vec<String> =
        (0..SESSIONS).flat_map(|n| (0..PROMPTS).map(move |prompt| format!("echo {n}-{prompt}"))).collect();
    ran.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(ran, wanted);
    let runs: usize = sessions.iter().map(|session| processes(&world, session)).sum();
    println!("{} prompts in {runs} processes", SESSIONS * PROMPTS);
    assert!(
        runs as u64 > SESSIONS && (runs as u64) < SESSIONS * PROMPTS,
        "prompts came on both sides: {runs}"
    );
    Ok(())
}

#[tokio::test]
async fn messages_sent_before_a_kill_are_read_once_and_in_their_turn() -> anyhow::Result<()> {
    const CHILDREN: usize = 12;
    let mut world = scripted("").await?;
    let mut sessions = Vec::new();
    for n in 0..CHILDREN {
        let prompt = script(&json!([{"say": "waiting"}, {"wait_file": "go"}, {"say": "went"}]));
        let more = json!({"prompt": prompt, "policy": "allow_all"});
        sessions.push(world.create(&format!("hearer-{n}"), more).await?);
    }
    for session in &sessions {
        world.poll_until(session, |poll| !events(poll, "content").is_empty()).await?;
    }
    let sends = sessions
        .iter()
        .enumerate()
        .map(|(n, session)| send_owned(&world, session, echo(&format!("heard {n}"))));
    for sent in futures::future::join_all(sends).await {
        assert_eq!(sent?["type"], "sent");
    }
    world.hub.kill9().await?;
    world.hub.restart().await?;
    std::fs::write(world.file("go"), "")?;
    for (n, session) in sessions.iter().enumerate() {
        let poll = completed(&world, session).await?;
        assert_eq!(poll["turn"], 1);
        let said: Vec<String> = events(&poll, "content").iter().map(|event| text(&event["text"])).collect();
        assert_eq!(said, ["waiting".to_owned(), "went".to_owned(), format!("heard {n}")]);
    }
    let (mut ran, mut wanted) =
        (echoed(&world), (0..CHILDREN).map(|n| format!("echo heard {n}")).collect::<Vec<_>>());
    ran.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(ran, wanted);
    Ok(())
}

#[tokio::test]
async fn an_interrupt_withdraws_an_unread_message() -> anyhow::Result<()> {
    let world = scripted("").await?;
    let prompt = script(&json!([{"say": "waiting"}, {"wait_file": "go"}]));
    let session = world.create("unread", json!({"prompt": prompt, "policy": "allow_all"})).await?;
    world.poll_until(&session, |poll| !events(poll, "content").is_empty()).await?;
    let process = pid(&world, &session).await?;
    send(&world, &session, &echo("unread")).await?;
    interrupt(&world, &session).await?;
    is_interrupted(&world, &session).await?;
    assert_eq!(world.chat(&session, &echo("read")).await?, 2);
    completed(&world, &session).await?;
    assert_eq!(pid(&world, &session).await?, process);
    assert_eq!(echoed(&world), ["echo read"]);
    Ok(())
}

async fn send_owned(world: &World, session: &str, text: String) -> anyhow::Result<Value> {
    send(world, session, &text).await
}
