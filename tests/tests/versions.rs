//! Differences between versions of Claude Code that a user would notice.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, over};
use plexus_testkit::executable;
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

#[tokio::test]
async fn a_version_that_is_too_old_is_refused_before_anything_is_created() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let program = dir.path().join("claude");
    executable::write(&program, "#!/bin/sh\necho '2.0.75 (Claude Code)'\n")?;
    let world = Setup::scripted().start(program.clone()).await?;
    let params = json!({"name": "old", "working_dir": world.work});
    let refused = world.refused("claudecode.create", params.clone()).await?;
    assert_eq!(refused.kind.as_deref(), Some("claude_too_old"));
    assert!(
        refused.message.contains("Claude Code 2.0.75 is too old; 2.1.197 or later is required"),
        "{refused:?}"
    );
    assert_eq!(world.call("claudecode.list", json!({})).await?["sessions"], json!([]));

    // After an update, and after a downgrade between two turns.
    executable::write(&program, "#!/bin/sh\necho '2.1.325 (Claude Code)'\n")?;
    let session = world.create("new", json!({})).await?;
    executable::write(&program, "#!/bin/sh\necho '2.1.196 (Claude Code)'\n")?;
    world.chat(&session, "go").await?;
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "failed", "{ended:#}");
    assert!(ended["events"].to_string().contains("claude_too_old"), "{ended:#}");
    Ok(())
}
