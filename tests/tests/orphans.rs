//! Agents without a hub: an agent ends with all its processes if its data directory is deleted or if it is idle for too long. An
//! agent that waits for approval stays.

use plexus_e2e::{World, over, processes_of, until};
use plexus_testkit::model::Step;
use serde_json::json;

over!(channels: agents_end_with_their_data_directory);

mod without_a_hub {
    use plexus_e2e::over;
    over!(channels, "orphan_secs = 0.2": an_idle_agent_ends_and_a_waiting_one_stays);
    use super::an_idle_agent_ends_and_a_waiting_one_stays;
}

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "a step"}))
}

async fn agents_end_with_their_data_directory(mut world: World) -> anyhow::Result<()> {
    world.model.script("WAIT", vec![bash("touch made.txt"), Step::text("Done.")]);
    world.model.script("REST", vec![Step::text("Resting.")]);
    let asking = world.create("asking", json!({})).await?;
    world.chat(&asking, "WAIT for me").await?;
    world.asked(&asking).await?;
    let idle = world.create("idle", json!({})).await?;
    world.chat(&idle, "REST a while").await?;
    world.ended(&idle).await?;
    assert!(!processes_of(&asking).is_empty() && !processes_of(&idle).is_empty());
    world.hub.kill9().await?;
    std::fs::remove_dir_all(world.hub.data_dir())?;
    for session in [&asking, &idle] {
        until("its processes have ended", || processes_of(session).is_empty()).await?;
    }
    assert!(!world.file("made.txt").exists());
    Ok(())
}

async fn an_idle_agent_ends_and_a_waiting_one_stays(mut world: World) -> anyhow::Result<()> {
    world.model.script("WAIT", vec![bash("touch made.txt"), Step::text("Done.")]);
    world.model.script("REST", vec![Step::text("Resting.")]);
    world.model.script("AGAIN", vec![Step::text("Again.")]);
    let asking = world.create("asking", json!({})).await?;
    world.chat(&asking, "WAIT for me").await?;
    let (_, approval) = world.asked(&asking).await?;
    let idle = world.create("idle", json!({})).await?;
    world.chat(&idle, "REST a while").await?;
    world.ended(&idle).await?;
    let before = processes_of(&asking);
    world.hub.kill9().await?;
    until("the idle process has ended", || processes_of(&idle).is_empty()).await?;
    world.hub.restart().await?;
    world.allow(&approval).await?;
    assert_eq!(world.ended(&asking).await?["status"], "complete");
    assert!(world.file("made.txt").exists());
    assert!(before.iter().any(|pid| processes_of(&asking).contains(pid)), "it is the same process");
    // The next prompt starts the ended agent again, in the same conversation.
    world.chat(&idle, "AGAIN please").await?;
    assert_eq!(world.ended(&idle).await?["status"], "complete");
    Ok(())
}
