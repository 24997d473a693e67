//! A hub that is killed while a hook runs: the next hub runs the hook again, and the agent finishes as the hook decides.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, over, script, until};
use serde_json::json;

use super::{calling, hook_events, hooks, ran};

over!(clis:
    a_call_waits_for_its_hook_while_a_killed_hub_restarts,
    a_call_waits_for_its_hook_while_a_stopped_hub_restarts,
);
over!(channels: a_hook_that_denies_after_a_restart_is_obeyed);

/// Waits for the file `go`. Notes each start and each end.
fn waiting(end: &str) -> String {
    format!("echo started >>starts; until [ -e go ]; do sleep 0.05; done; echo ended >>ends; {end}")
}

fn lines(world: &World, file: &str) -> usize {
    std::fs::read_to_string(world.file(file)).unwrap_or_default().lines().count()
}

enum Stop {
    Killed,
    Signalled,
}

async fn restarted(world: &mut World, end: &str, stop: Stop) -> anyhow::Result<serde_json::Value> {
    let session = calling(world, "slow", "allow_all", hooks("PreToolUse", &waiting(end))).await?;
    until("the hook runs", || lines(world, "starts") == 1).await?;
    match stop {
        Stop::Killed => world.hub.kill9().await?,
        Stop::Signalled => drop(world.hub.terminate().await?),
    }
    assert!(!ran(world, "slow"));
    world.hub.restart().await?;
    until("the hook runs again", || lines(world, "starts") == 2).await?;
    assert!(!ran(world, "slow"));
    std::fs::write(world.file("go"), "")?;
    let poll = world.ended(&session).await?;
    assert_eq!(lines(world, "ends"), 1, "the first run of the hook was ended");
    assert_eq!(events(&poll, "tool_result").len(), 1, "{poll:#}");
    Ok(poll)
}

async fn a_call_waits_for_its_hook_while_a_killed_hub_restarts(mut world: World) -> anyhow::Result<()> {
    let poll = restarted(&mut world, "exit 0", Stop::Killed).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(ran(&world, "slow"));
    Ok(())
}

async fn a_call_waits_for_its_hook_while_a_stopped_hub_restarts(mut world: World) -> anyhow::Result<()> {
    let poll = restarted(&mut world, "exit 0", Stop::Signalled).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(ran(&world, "slow"));
    Ok(())
}

async fn a_hook_that_denies_after_a_restart_is_obeyed(mut world: World) -> anyhow::Result<()> {
    let poll = restarted(&mut world, "exit 2", Stop::Killed).await?;
    assert_eq!(hook_events(&poll)[0]["status"], json!("denied"), "{poll:#}");
    assert!(!ran(&world, "slow"));
    Ok(())
}

/// A hook that denies its first call and allows all later ones: the answer of its first run stands if it was stored.
#[tokio::test]
async fn a_stored_answer_stands_wherever_the_hub_is_killed() -> anyhow::Result<()> {
    for (point, starts, runs) in [("ended", 2, 1), ("stored", 1, 0), ("answered", 1, 0)] {
        let files = tempfile::tempdir()?;
        let file = files.path().join("kill-point");
        let mut setup = Setup::scripted();
        setup.env.push(("PLEXUS_KILL_POINT_FILE".to_owned(), file.display().to_string()));
        let mut world = setup.world("hooks").await?.context("the scripted agent is always available")?;
        let once = "echo started >>starts; [ -e denied ] || { touch denied; exit 2; }";
        let session =
            world.create("once", json!({"policy": "allow_all", "hooks": hooks("PreToolUse", once)})).await?;
        std::fs::write(&file, format!("hook: {point}"))?;
        let call = json!({"tool": "Bash", "input": {"command": "true"}});
        world.chat(&session, &script(&json!([call, {"say": "done"}]))).await?;
        until("the hub is killed", || !file.exists()).await?;
        world.hub.wait().await?;
        world.hub.restart().await?;
        let poll = world.ended(&session).await?;
        assert_eq!((lines(&world, "starts"), world.ran().len()), (starts, runs), "{point}: {poll:#}");
        let denied = hook_events(&poll).iter().filter(|event| event["status"] == "denied").count();
        assert_eq!(denied, 1 - runs, "{point}: {poll:#}");
    }
    Ok(())
}
