//! The `attention` field of a session: besides its status it shows what blocks the session, for example a rate limit, a retry,
//! a stalled model or an open approval.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, over, script, text};
use plexus_testkit::model::Step;
use serde_json::{Value, json};

/// The attention of a session. `poll`, `get` and `list` must return the same.
async fn attention(world: &World, session: &str) -> anyhow::Result<Value> {
    let poll =
        world.call("claudecode.poll", json!({"session_id": session, "from_seq": 0, "limit": 1})).await?;
    let get = world.call("claudecode.get", json!({"session_id": session})).await?;
    let list = world.call("claudecode.list", json!({})).await?;
    let listed = list["sessions"].as_array().into_iter().flatten().find(|row| row["id"] == session).cloned();
    assert_eq!(poll["attention"], get["session"]["attention"]);
    assert_eq!(listed.context("the session in the list")?["attention"], get["session"]["attention"]);
    Ok(poll["attention"].clone())
}

over!(channels, "stalled_secs = 2":
    a_rate_limit_is_shown_and_reported,
    a_retry_is_shown_until_the_model_answers,
    a_silent_model_is_a_stall_and_a_long_tool_is_not,
    an_open_approval_is_shown_with_its_kind,
);

async fn a_rate_limit_is_shown_and_reported(world: World) -> anyhow::Result<()> {
    world.model.script("LIMIT", vec![Step::failing(1, 429, 30, Step::text("never"))]);
    let session = world.create("limited", json!({})).await?;
    let cursor = world.call("loopback.wait", json!({})).await?["cursor"].clone();
    world.chat(&session, "LIMIT").await?;
    let told = world.call("loopback.wait", json!({"cursor": cursor, "timeout_ms": 60_000})).await?;
    assert_eq!(told["notices"][0]["type"], "rate_limited", "{told}");
    assert_eq!(told["notices"][0]["session_name"], "limited");
    assert_eq!(attention(&world, &session).await?, json!(["rate_limited"]));
    world.call("claudecode.interrupt", json!({"session_id": session})).await?;
    assert_eq!(world.ended(&session).await?["status"], "interrupted");
    assert_eq!(attention(&world, &session).await?, Value::Null);
    Ok(())
}

async fn a_retry_is_shown_until_the_model_answers(world: World) -> anyhow::Result<()> {
    let (held, hold) = Step::hold(Step::text("at last"));
    world.model.script("RETRY", vec![Step::failing(2, 529, 1, held)]);
    let session = world.create("retrying", json!({})).await?;
    world.chat(&session, "RETRY").await?;
    let retries =
        |poll: &Value| events(poll, "system").iter().filter(|e| e["subtype"] == "api_retry").count();
    world.poll_until(&session, |poll| retries(poll) == 2).await?;
    assert_eq!(attention(&world, &session).await?, json!(["api_retry"]));
    hold.release();
    let poll = world.ended(&session).await?;
    assert_eq!((&poll["status"], &poll["attention"]), (&json!("complete"), &Value::Null));
    Ok(())
}

async fn a_silent_model_is_a_stall_and_a_long_tool_is_not(world: World) -> anyhow::Result<()> {
    let wait = format!("until [ -e {} ]; do sleep 0.1; done; touch ran", world.file("go").display());
    let steps = vec![Step::tool("Bash", json!({"command": wait})), Step::text("done")];
    world.model.script("BUSY", steps);
    let (held, hold) = Step::hold(Step::text("at last"));
    world.model.script("QUIET", vec![held]);
    let busy = world.create("busy", json!({})).await?;
    world.chat(&busy, "BUSY").await?;
    let (_, approval) = world.asked(&busy).await?;
    assert_eq!(attention(&world, &busy).await?, json!(["permission"]));
    world.allow(&approval).await?;

    // This session starts later. When it has stalled, the tool has run for longer than a stall takes.
    let quiet = world.create("quiet", json!({})).await?;
    let cursor = world.call("loopback.wait", json!({})).await?["cursor"].clone();
    world.chat(&quiet, "QUIET").await?;
    let told = world.call("loopback.wait", json!({"cursor": cursor, "timeout_ms": 60_000})).await?;
    assert_eq!(told["notices"][0]["type"], "stalled", "{told}");
    assert_eq!(told["notices"][0]["session_id"], json!(quiet));
    let poll =
        world.poll_until(&quiet, |poll| events(poll, "system").iter().any(|e| e["subtype"] == "stalled"));
    assert_eq!(poll.await?["status"], "running");
    assert_eq!(attention(&world, &quiet).await?, json!(["stalled"]));
    assert_eq!(attention(&world, &busy).await?, Value::Null, "a tool at work");

    hold.release();
    std::fs::write(world.file("go"), "")?;
    for session in [&quiet, &busy] {
        let poll = world.ended(session).await?;
        assert_eq!((&poll["status"], &poll["attention"]), (&json!("complete"), &Value::Null));
    }
    Ok(())
}

async fn an_open_approval_is_shown_with_its_kind(world: World) -> anyhow::Result<()> {
    let question = json!({"questions": [{"question": "Which?", "header": "Which", "multiSelect": false,
        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]}]});
    world.model.script("ASK", vec![Step::tool("AskUserQuestion", question), Step::text("done")]);
    world
        .model
        .script("PLAN", vec![Step::tool("ExitPlanMode", json!({"plan": "do it"})), Step::text("done")]);
    let asks = world.create("asks", json!({})).await?;
    let plans = world.create("plans", json!({"permission_mode": "plan"})).await?;
    for (session, prompt, kind) in [(&asks, "ASK", "question"), (&plans, "PLAN", "plan")] {
        world.chat(session, prompt).await?;
        let (_, approval) = world.asked(session).await?;
        assert_eq!(text(&approval["kind"]), kind);
        assert_eq!(attention(&world, session).await?, json!([kind]));
        world.respond(&approval, json!({"approve": false, "message": "no"})).await?;
        world.ended(session).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_stall_is_still_shown_after_a_restart() -> anyhow::Result<()> {
    let setup = Setup::scripted().with_config("stalled_secs = 0.5");
    let Some(mut world) = setup.world("a_stall_is_still_shown_after_a_restart").await? else { return Ok(()) };
    let go = world.file("go");
    let steps = json!([{"wait_file": go}, {"say": "done"}]);
    let session = world.create("quiet", json!({"prompt": script(&steps)})).await?;
    let stalled = |poll: &Value| poll["attention"] == json!(["stalled"]);
    world.poll_until(&session, stalled).await?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    let poll = world.poll_until(&session, stalled).await?;
    let told = events(&poll, "system").into_iter().filter(|event| event["subtype"] == "stalled").count();
    assert_eq!(told, 1, "one notice per stall");
    std::fs::write(&go, "")?;
    assert_eq!(world.ended(&session).await?["attention"], Value::Null);
    Ok(())
}
