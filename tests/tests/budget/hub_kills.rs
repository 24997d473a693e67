//! The hub is killed while a call is held, and between every two steps of a grant. No grant is lost or repeated, and the
//! held call runs once.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, script, until};
use serde_json::json;

use super::{budget_approval, budget_of, calls, ran, scripted};

async fn one_of_two_calls(world: &World) -> anyhow::Result<String> {
    let session = world.create("worker", json!({"policy": "allow_all", "budget": {"tool_calls": 1}})).await?;
    world.chat(&session, &calls(&["one", "two"])).await?;
    Ok(session)
}

#[tokio::test]
async fn wall_time_is_counted_while_no_hub_runs() -> anyhow::Result<()> {
    let mut world = scripted().await?;
    let session = world.create("slow", json!({"budget": {"wall_secs": 3}})).await?;
    world.chat(&session, &script(&json!([{"say": "begun"}, {"wait_file": world.file("never")}]))).await?;
    world.poll_until(&session, |poll| !events(poll, "content").is_empty()).await?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    let more = budget_approval(&world, &session).await?;
    assert_eq!(more["input"]["limit"], "wall_secs", "{more:#}");
    world.hub.kill9().await?;
    world.hub.restart().await?;
    world.respond(&more, json!({"approve": false})).await?;
    assert_eq!(world.ended(&session).await?["status"], "interrupted");
    let used = budget_of(&world, &session, "wall_secs").await?[1].as_f64();
    assert!(used >= Some(3.0) && used < Some(6.0), "{used:?}");
    Ok(())
}

/// Kills the hub at `point` while it processes the answer, and starts the next hub.
async fn killed_at(point: &str, answer: serde_json::Value) -> anyhow::Result<(World, String)> {
    let dir = tempfile::TempDir::new()?;
    let file = dir.path().join("point");
    let mut setup = Setup::scripted().with_config("durability = \"normal\"");
    setup.env.push(("PLEXUS_KILL_POINT_FILE".to_owned(), file.display().to_string()));
    let mut world = setup.world("budget").await?.context("the scripted agent is always available")?;
    let session = one_of_two_calls(&world).await?;
    let more = budget_approval(&world, &session).await?;
    std::fs::write(&file, format!("budget: {point}"))?;
    let mut params = json!({"approval_id": more["id"]});
    params["approve"] = answer;
    // Whether the caller gets a result depends on the kill point.
    let _ = world.door.call("loopback.respond", params.clone()).await;
    until("the hub is killed", || !file.exists()).await?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    // The answer may be lost. A committed answer is reported as resolved.
    world.call("loopback.respond", params).await?;
    Ok((world, session))
}

#[tokio::test]
async fn a_grant_is_applied_once_wherever_the_hub_is_killed() -> anyhow::Result<()> {
    for point in ["answered", "decided", "notified", "released"] {
        let (world, session) = killed_at(point, json!(true)).await.context(point)?;
        let ended = world.ended(&session).await.context(point)?;
        assert_eq!((&ended["status"], ran(&world).len()), (&json!("complete"), 2), "{point}: {ended:#}");
        assert_eq!(budget_of(&world, &session, "tool_calls").await?, json!([2, 2, 0]), "{point}");
    }
    Ok(())
}

#[tokio::test]
async fn a_denied_grant_stays_denied_wherever_the_hub_is_killed() -> anyhow::Result<()> {
    for point in ["answered", "decided", "released", "given up"] {
        let (world, session) = killed_at(point, json!(false)).await.context(point)?;
        let ended = world.ended(&session).await.context(point)?;
        assert_eq!((&ended["status"], ran(&world).len()), (&json!("interrupted"), 1), "{point}: {ended:#}");
        assert_eq!(events(&ended, "error")[0]["reason"], "budget_exhausted", "{point}");
        assert_eq!(budget_of(&world, &session, "tool_calls").await?, json!([1, 1, 0]), "{point}");
    }
    Ok(())
}
