//! Waking: a session gets a turn when an approval of a descendant is addressed to it.

use anyhow::Context as _;
use plexus_e2e::{LIMIT, Setup, World, events, script, text};
use plexus_testkit::rpc::{Door, McpClient, Rpc};
use serde_json::{Value, json};
use tokio::time::timeout;

/// A session after its first turn, with this value of `wake`, and a child of it.
async fn family(world: &World, wake: Value) -> anyhow::Result<(String, String)> {
    let prompt = script(&json!([{"say": "made"}]));
    let more = json!({"hub_tools": true, "approve_scope": ["*"], "wake": wake, "prompt": prompt});
    let parent = world.create("parent", more).await?;
    assert_eq!(world.ended(&parent).await?["status"], "complete");
    let door: McpClient = world.door_of(&parent).await?;
    let made = door.call("claudecode.create", json!({"name": "child", "working_dir": world.work})).await?;
    Ok((parent, text(&made["id"])))
}

async fn ask(world: &World, child: &str) -> anyhow::Result<Value> {
    let step = json!({"tool": "Bash", "input": {"command": "true"}});
    world.chat(child, &script(&json!([step, {"say": "done"}]))).await?;
    Ok(world.asked(child).await?.1)
}

/// Waits for the end of the turn with this number.
async fn turn(world: &World, session: &str, turn: u64) -> anyhow::Result<Value> {
    let ended = async {
        loop {
            let params = json!({"session_id": session, "turn": turn, "from_seq": 0, "wait_ms": 1000});
            match world.door.call("claudecode.poll", params).await {
                Ok(poll) if poll["status"] == "complete" => return anyhow::Ok(poll),
                _ => tokio::task::yield_now().await,
            }
        }
    };
    timeout(LIMIT, ended).await?.with_context(|| format!("turn {turn}"))
}

async fn latest(world: &World, session: &str) -> anyhow::Result<Value> {
    Ok(world.call("claudecode.poll", json!({"session_id": session})).await?["turn"].take())
}

#[tokio::test]
async fn a_session_is_woken_once_for_an_approval() -> anyhow::Result<()> {
    let mut world =
        Setup::scripted().world("wakes").await?.context("the scripted agent is always available")?;
    let (parent, child) = family(&world, json!(true)).await?;
    let approval = ask(&world, &child).await?;
    assert_eq!(approval["asked_of"], json!({"kind": "session", "id": parent}));
    let woken = turn(&world, &parent, 2).await?;
    assert_eq!(events(&woken, "start")[0]["origin"], "hub", "{woken}");
    // The session did not answer. It is not woken again for the same approval, even after a restart.
    world.hub.kill9().await?;
    world.hub.restart().await?;
    world.door = Box::new(Rpc::new(world.hub.url(), &world.hub.token()?));
    world.chat(&parent, &script(&json!([{"say": "something else"}]))).await?;
    turn(&world, &parent, 3).await?;
    world.call("loopback.respond", json!({"approval_id": approval["id"], "approve": false})).await?;
    assert_eq!(world.ended(&child).await?["status"], "complete");
    assert_eq!(latest(&world, &parent).await?, 3);
    // A later approval wakes it again.
    ask(&world, &child).await?;
    let woken = turn(&world, &parent, 4).await?;
    assert_eq!(events(&woken, "start")[0]["origin"], "hub", "{woken}");
    Ok(())
}

#[tokio::test]
async fn an_approval_during_a_turn_wakes_the_session_after_it_unless_it_was_interrupted() -> anyhow::Result<()>
{
    let world = Setup::scripted().world("wakes").await?.context("the scripted agent is always available")?;
    let (parent, child) = family(&world, json!(true)).await?;
    let busy = json!([{"tool": "Bash", "input": {"command": "true"}}, {"say": "done"}]);
    world.chat(&parent, &script(&busy)).await?;
    let own = world.asked(&parent).await?.1;
    ask(&world, &child).await?;
    assert_eq!(latest(&world, &parent).await?, 2);
    world.call("loopback.respond", json!({"approval_id": own["id"], "approve": true})).await?;
    let woken = turn(&world, &parent, 3).await?;
    assert_eq!(events(&woken, "start")[0]["origin"], "hub", "{woken}");

    world.call("claudecode.interrupt", json!({"session_id": child})).await?;
    world.chat(&parent, &script(&busy)).await?;
    let own = world.asked(&parent).await?.1;
    ask(&world, &child).await?;
    let stop = json!({"approval_id": own["id"], "approve": false, "interrupt": true});
    world.call("loopback.respond", stop).await?;
    assert_eq!(world.ended(&parent).await?["status"], "interrupted");
    // This turn is the operator's. If the session had been woken, it would be refused.
    world.chat(&parent, &script(&busy)).await?;
    assert_eq!(latest(&world, &parent).await?, 5);
    Ok(())
}

#[tokio::test]
async fn a_session_without_wake_is_not_woken() -> anyhow::Result<()> {
    let world = Setup::scripted().world("wakes").await?.context("the scripted agent is always available")?;
    let (parent, child) = family(&world, json!(false)).await?;
    let approval = ask(&world, &child).await?;
    world.call("loopback.respond", json!({"approval_id": approval["id"], "approve": true})).await?;
    assert_eq!(world.ended(&child).await?["status"], "complete");
    assert_eq!(latest(&world, &parent).await?, 1);
    Ok(())
}
