//! Hub-wide limits: neither one child nor many can exhaust the hub. A request over a limit is refused or denied with a message that
//! says what to do, and other sessions continue.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, processes_of, script, text, until};
use plexus_testkit::rpc::{Door as _, McpClient, Rpc};
use serde_json::{Value, json};

async fn world(limits: &str) -> anyhow::Result<World> {
    let config = format!("[limits]\n{limits}");
    Setup::scripted()
        .with_config(&config)
        .world("limits")
        .await?
        .context("the scripted agent is always available")
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

async fn begin(world: &World, name: &str, steps: Value) -> anyhow::Result<String> {
    world.create(name, json!({"prompt": script(&steps)})).await
}

/// The calls that were denied without an approval.
fn denied_without_approval(poll: &Value) -> Vec<Value> {
    let denied = events(poll, "system").into_iter().filter(|event| event["subtype"] == "ask_denied");
    denied.map(|event| event["data"].clone()).collect()
}

#[tokio::test]
async fn sessions_are_limited_and_a_deleted_one_makes_room() -> anyhow::Result<()> {
    let mut world = world("sessions = 3").await?;
    let create = |name: &str| {
        let params = json!({"name": name, "working_dir": world.work});
        async { world.door.call("claudecode.create", params).await }
    };
    let (a, b, c, d, e) = tokio::join!(create("a"), create("b"), create("c"), create("d"), create("e"));
    let refused: Vec<_> = [a, b, c, d, e].into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    for refusal in refused {
        assert_eq!(refusal.kind.as_deref(), Some("limit_reached"), "{refusal}");
        assert_eq!((&refusal.data["limit"], &refusal.data["most"]), (&json!("sessions"), &json!(3)));
        assert!(refusal.message.contains("claudecode.delete") && refusal.message.contains("plexus.toml"));
    }
    world.hub.restart().await?;
    world.door = Box::new(Rpc::new(world.hub.url(), &world.hub.token()?));
    let listed = world.call("claudecode.list", json!({})).await?;
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(3));
    let more = json!({"name": "more", "working_dir": world.work});
    let refusal = world.refused("claudecode.create", more.clone()).await?;
    assert_eq!(refusal.kind.as_deref(), Some("limit_reached"), "the next hub counts them, too");
    // A call that fails because of its name does not count.
    world.call("claudecode.delete", json!({"session_id": listed["sessions"][0]["id"]})).await?;
    let taken = json!({"name": listed["sessions"][1]["name"], "working_dir": world.work});
    for _ in 0..3 {
        let refusal = world.refused("claudecode.create", taken.clone()).await?;
        assert_eq!(refusal.kind.as_deref(), Some("name_taken"), "{refusal}");
    }
    world.call("claudecode.create", more).await?;
    Ok(())
}

#[tokio::test]
async fn an_approval_over_the_limit_of_a_session_is_denied_and_logged() -> anyhow::Result<()> {
    let world = world("open_approvals_per_session = 2").await?;
    let calls: Vec<Value> = (0..4).map(|n| bash(&format!("touch {n}.txt"))).collect();
    let session =
        begin(&world, "eager", json!([{"tools": calls, "parallel": true}, {"say": "done"}])).await?;
    let poll = world.poll_until(&session, |poll| events(poll, "tool_result").len() == 2).await?;
    assert_eq!(poll["pending_approvals"].as_array().map(Vec::len), Some(2), "{poll:#}");
    for result in events(&poll, "tool_result") {
        assert_eq!(result["is_error"], true);
        assert!(result["output"].to_string().contains("2 approvals of this session are open"), "{result}");
        assert!(result["output"].to_string().contains("try again"), "{result}");
    }
    let denied = denied_without_approval(&poll);
    assert_eq!(denied.len(), 2, "{poll:#}");
    assert_eq!(denied[0]["limit"], "open_approvals_per_session");
    assert!(denied[0]["tool_use_id"].is_string() && denied[0]["tool_name"] == "Bash", "{denied:?}");
    assert!(world.ran().is_empty());
    // Another session has its own limit.
    let other = begin(&world, "other", json!([bash("true")])).await?;
    world.asked(&other).await?;
    for approval in poll["pending_approvals"].as_array().into_iter().flatten() {
        world.allow(approval).await?;
    }
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(world.ran().len(), 2);
    Ok(())
}

#[tokio::test]
async fn an_approval_over_the_limit_of_the_hub_is_denied_on_both_channels() -> anyhow::Result<()> {
    let world = world("open_approvals = 1").await?;
    let first = begin(&world, "first", json!([bash("true"), bash("true"), {"say": "done"}])).await?;
    let (_, approval) = world.asked(&first).await?;
    let second = begin(&world, "second", json!([bash("true"), {"say": "done"}])).await?;
    let poll = world.ended(&second).await?;
    assert_eq!(denied_without_approval(&poll)[0]["limit"], "open_approvals", "{poll:#}");

    let elsewhere = world.create("elsewhere", json!({})).await?;
    let configured = world.call("loopback.configure", json!({"session_id": elsewhere})).await?;
    let header = text(&configured["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
    let token = header.strip_prefix("Bearer ").context("a token")?;
    let client = McpClient::connect(world.hub.url(), token).await?;
    let question = json!({"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t"});
    let answer = client.call("loopback.permit", question).await?;
    assert_eq!(answer["behavior"], "deny", "{answer}");
    assert!(text(&answer["message"]).contains("1 approvals of all agents together are open"), "{answer}");

    // After an answer, the next approval is accepted.
    world.allow(&approval).await?;
    let (_, approval) = world.asked(&first).await?;
    world.allow(&approval).await?;
    assert_eq!(world.ended(&first).await?["status"], "complete");
    Ok(())
}

#[tokio::test]
async fn a_child_that_requests_too_often_is_slowed_down_and_others_are_not() -> anyhow::Result<()> {
    let world = world("asks_per_minute = 2").await?;
    let session =
        begin(&world, "hasty", json!([bash("true"), bash("true"), bash("true"), {"say": "done"}])).await?;
    for _ in 0..2 {
        let (_, approval) = world.asked(&session).await?;
        world.allow(&approval).await?;
    }
    let poll = world.ended(&session).await?;
    assert_eq!(denied_without_approval(&poll)[0]["limit"], "asks_per_minute", "{poll:#}");
    let last = events(&poll, "tool_result").pop().unwrap_or_default();
    assert!(last["output"].to_string().contains("more than 2 approvals in a minute"), "{last}");
    assert_eq!(world.ran().len(), 2);
    let other = begin(&world, "patient", json!([bash("true")])).await?;
    world.asked(&other).await?;
    Ok(())
}

#[tokio::test]
async fn a_large_event_is_stored_truncated_and_an_approval_in_full() -> anyhow::Result<()> {
    let world = world("event_kb = 1").await?;
    let said = "ü".repeat(5000);
    let large = json!({"tool": "Bash", "input": {"command": "true"}, "big_input": 5000});
    let steps = json!([{"say": said}, large, {"big_line": 9_000_000}, {"say": "done"}]);
    let session = begin(&world, "wordy", steps).await?;
    let (_, approval) = world.asked(&session).await?;
    let read = world.call("loopback.get", json!({"approval_id": approval["id"]})).await?;
    assert!(read["approval"]["input"].to_string().len() > 5000, "{read}");
    world.respond(&approval, json!({"approve": true, "digest": read["approval"]["digest"]})).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");

    let [first, second, last] =
        <[Value; 3]>::try_from(events(&poll, "content")).map_err(|all| anyhow::anyhow!("{all:?}"))?;
    assert!(said.starts_with(&text(&first["text"])) && text(&first["text"]).len() > 900, "{first}");
    assert_eq!(
        last,
        json!({"type": "content", "text": "done"}),
        "a complete event is not marked as truncated"
    );
    let journal = std::fs::read(world.run_dir(&session, 1).join("journal.jsonl"))?;
    let whole = |event: &Value| -> anyhow::Result<Value> {
        let at = |name: &str| event["truncated"][name].as_u64().with_context(|| event.to_string());
        assert_eq!(event["truncated"]["run"], 1);
        Ok(serde_json::from_slice(&journal[at("start")? as usize..at("end")? as usize])?)
    };
    assert_eq!(whole(&first)?["message"]["content"][0]["text"], said);
    let line = whole(&second)?;
    assert!(line["message"]["content"][0]["text"].as_str().is_some_and(|text| text.len() >= 9_000_000));
    let called = &events(&poll, "tool_use")[0];
    assert_eq!(whole(called)?["message"]["content"][0]["id"], called["tool_use_id"]);
    Ok(())
}

#[tokio::test]
async fn a_child_that_fills_its_journal_is_ended_and_others_continue() -> anyhow::Result<()> {
    let world = world("journal_mb = 1").await?;
    let other = begin(&world, "other", json!([bash("true"), {"say": "done"}])).await?;
    let (_, approval) = world.asked(&other).await?;
    let flood = json!([{"flood": {"events": 500, "bytes": 10_000}}, {"say": "never"}]);
    let session = begin(&world, "flooding", flood).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "failed", "{}", poll["status"]);
    let error = events(&poll, "error").pop().unwrap_or_default();
    assert_eq!(error["reason"], "journal_full", "{error}");
    assert!(text(&error["message"]).contains("journal_mb"), "{error}");
    assert!(events(&poll, "content").len() > 90, "the stored events are kept");
    let journal = std::fs::metadata(world.run_dir(&session, 1).join("journal.jsonl"))?;
    assert_eq!(journal.len(), 1024 * 1024, "and not a byte more");
    assert!(processes_of(&session).is_empty(), "its processes have ended");
    world.chat(&session, &script(&json!([{"say": "again"}]))).await?;
    assert_eq!(events(&world.ended(&session).await?, "complete")[0]["result"], "again");
    world.allow(&approval).await?;
    assert_eq!(world.ended(&other).await?["status"], "complete");
    Ok(())
}

#[tokio::test]
async fn disk_space_is_reserved_for_decisions() -> anyhow::Result<()> {
    const MIB: u64 = 1024 * 1024;
    // Hardly any other program writes to this file system.
    let shm = std::fs::File::open("/dev/shm")?;
    let reserve = plexus_agent::free_bytes(&shm)? / MIB - 16;
    let mut setup = Setup::scripted().with_config(&format!("[limits]\nreserve_mb = {reserve}"));
    setup.parent_dir = Some("/dev/shm".into());
    let world = setup.world("limits").await?.context("the scripted agent is always available")?;
    let deciding = begin(&world, "deciding", json!([bash("true"), {"say": "done"}])).await?;
    let (_, approval) = world.asked(&deciding).await?;
    let steps = json!([{"say": "ready"}, {"wait_file": "go"}, {"say": "late"}]);
    let writing = begin(&world, "writing", steps).await?;
    let before = world.poll_until(&writing, |poll| !events(poll, "content").is_empty()).await?;
    let idle = world.create("idle", json!({})).await?;

    let filler = world.file("filler");
    std::fs::write(&filler, vec![1; 24 * MIB as usize])?;
    for (method, params) in [
        ("claudecode.create", json!({"name": "more", "working_dir": world.work})),
        ("claudecode.chat_async", json!({"session_id": idle, "prompt": "[]"})),
    ] {
        let refused = world.refused(method, params).await?;
        assert_eq!(refused.kind.as_deref(), Some("disk_low"), "{method}: {refused}");
        assert!(refused.message.contains("reserve_mb"), "{refused}");
    }
    std::fs::write(world.file("go"), "")?;
    // A decision is still stored and delivered.
    world.allow(&approval).await?;
    until("the allowed call has run", || world.ran().len() == 1).await?;
    let now = world.call("claudecode.poll", json!({"session_id": writing, "from_seq": 0})).await?;
    assert_eq!(now["total_events"], before["total_events"], "the output of children is not read");

    std::fs::remove_file(&filler)?;
    for session in [&deciding, &writing] {
        assert_eq!(world.ended(session).await?["status"], "complete");
    }
    world.chat(&idle, &script(&json!([{"say": "hello"}]))).await?;
    assert_eq!(world.ended(&idle).await?["status"], "complete");
    Ok(())
}
