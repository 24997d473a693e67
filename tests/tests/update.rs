//! `claudecode.update` changes one field after the other. A change that the agent rejects does not undo the ones before it.

use anyhow::Context as _;
use plexus_e2e::{Setup, script};
use serde_json::json;

#[tokio::test]
async fn an_update_that_the_agent_rejects_in_part_says_what_was_changed() -> anyhow::Result<()> {
    let world = Setup::scripted().world("update").await?.context("the scripted agent is always available")?;
    let asks = json!([{"tool": "Bash", "input": {"command": "true"}}, {"say": "done"}]);
    let session = world.create("worker", json!({"prompt": script(&asks), "model": "opus"})).await?;
    let (_, approval) = world.asked(&session).await?;

    // The scripted agent changes its mode, and rejects another model.
    let update =
        json!({"name": "worker", "new_name": "helper", "permission_mode": "acceptEdits", "model": "sonnet"});
    let rejected = world.refused("claudecode.update", update).await?;
    assert_eq!(rejected.kind.as_deref(), Some("agent_refused"), "{rejected}");
    assert_eq!(rejected.data["updated"], json!(["new_name", "permission_mode"]), "{rejected}");
    let view = world.call("claudecode.get", json!({"session_id": session})).await?["session"].clone();
    assert_eq!(
        (&view["name"], &view["permission_mode"], &view["model"]),
        (&json!("helper"), &json!("acceptEdits"), &json!("opus")),
    );

    // A change that the hub rejects is found before the first change.
    let update = json!({"session_id": session, "new_name": "other", "permission_mode": "sudo"});
    let rejected = world.refused("claudecode.update", update).await?;
    assert_eq!((rejected.kind.as_deref(), &rejected.data["updated"]), (Some("invalid_params"), &json!(null)));
    world.create("taken", json!({})).await?;
    let update = json!({"session_id": session, "new_name": "taken", "permission_mode": "plan"});
    let rejected = world.refused("claudecode.update", update).await?;
    assert_eq!(rejected.kind.as_deref(), Some("name_taken"), "{rejected}");
    let view = world.call("claudecode.get", json!({"session_id": session})).await?["session"].clone();
    assert_eq!((&view["name"], &view["permission_mode"]), (&json!("helper"), &json!("acceptEdits")));
    world.allow(&approval).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(())
}
