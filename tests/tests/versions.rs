//! Differences between versions of Claude Code that a user would notice.

use anyhow::Context as _;
use plexus_e2e::{World, over};
use plexus_testkit::model::Step;
use serde_json::json;

over!(versions: every_prompt_in_plan_mode_has_the_instructions_of_plan_mode);

async fn every_prompt_in_plan_mode_has_the_instructions_of_plan_mode(world: World) -> anyhow::Result<()> {
    world.model.script("PLANNED", vec![Step::text("I think."), Step::text("I think again.")]);
    let session = world.create("planner", json!({"permission_mode": "plan"})).await?;
    for prompt in ["PLANNED: first", "then @second"] {
        world.chat(&session, prompt).await?;
        let ended = world.ended(&session).await?;
        assert_eq!(ended["status"], "complete", "{ended:#}");
        let request = world.model.requests_for("PLANNED").pop().context("a model request")?;
        assert!(request["messages"].to_string().contains("Plan mode is active"), "{prompt}: {request:#}");
    }
    Ok(())
}
