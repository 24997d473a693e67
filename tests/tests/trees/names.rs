//! Names of sessions: unique among the sessions of one creator, and told apart by their paths.

use super::{member, named, scripted};
use plexus_e2e::{World, text};
use plexus_testkit::rpc::{Door, McpClient};
use serde_json::{Value, json};

async fn worker_of(world: &World, lead: &McpClient) -> anyhow::Result<String> {
    let params = json!({"name": "worker", "working_dir": world.work});
    Ok(text(&lead.call("claudecode.create", params).await?["id"]))
}

/// The id of the session that a caller finds by this name or path.
async fn found(door: &dyn Door, name: &str) -> anyhow::Result<String> {
    Ok(text(&door.call("claudecode.get", json!({"name": name})).await?["session"]["id"]))
}

#[tokio::test]
async fn two_parents_have_children_of_the_same_name() -> anyhow::Result<()> {
    let world = scripted("").await?;
    let (_, lead) = member(&world, &*world.door, "lead").await?;
    let (_, other) = member(&world, &*world.door, "other").await?;
    let (ours, theirs) = (worker_of(&world, &lead).await?, worker_of(&world, &other).await?);
    let again = json!({"name": "worker", "working_dir": world.work});
    let Err(taken) = lead.call("claudecode.create", again).await else { anyhow::bail!("a second `worker`") };
    assert_eq!(taken.kind.as_deref(), Some("name_taken"));

    // Each parent finds its own child. The operator uses paths, which the list shows.
    assert_eq!(
        (found(&lead, "worker").await?, found(&other, "worker").await?),
        (ours.clone(), theirs.clone())
    );
    assert_eq!(found(&*world.door, "lead/worker").await?, ours);
    assert_eq!(found(&*world.door, "other/worker").await?, theirs);
    assert_eq!(found(&lead, "lead/worker").await?, ours, "a path as in the session's own list");
    let list = world.call("claudecode.list", json!({})).await?;
    let sessions = list["sessions"].as_array().into_iter().flatten();
    let paths: Vec<(String, String)> = sessions.map(|one| (text(&one["name"]), text(&one["path"]))).collect();
    let expected =
        [("lead", "lead"), ("worker", "lead/worker"), ("other", "other"), ("worker", "other/worker")];
    assert_eq!(paths, expected.map(|(name, path)| (name.to_owned(), path.to_owned())));

    let ambiguous = world.refused("claudecode.get", json!({"name": "worker"})).await?;
    assert_eq!(ambiguous.data["paths"], json!(["lead/worker", "other/worker"]), "{ambiguous}");
    assert_eq!(ambiguous.kind.as_deref(), Some("invalid_params"));
    // A parent learns nothing of the children of others.
    let unseen = lead.call("claudecode.get", json!({"name": "other/worker"})).await.err();
    assert_eq!(unseen.and_then(|error| error.kind).as_deref(), Some("session_not_found"));

    // A session of the operator itself has precedence over sessions further down.
    let own = world.create("worker", json!({})).await?;
    assert_eq!(found(&*world.door, "worker").await?, own);
    world.call("claudecode.delete", json!({"name": "worker"})).await?;
    world.call("claudecode.delete", json!({"name": "other/worker"})).await?;
    assert_eq!(found(&*world.door, "worker").await?, ours, "the name is unambiguous again");
    let renamed = json!({"name": "worker", "new_name": "lead"});
    lead.call("claudecode.update", renamed).await?;
    let list: Value = world.call("claudecode.list", json!({})).await?;
    assert_eq!(named(&list, "other")["path"], "other");
    assert_eq!(found(&*world.door, "lead/lead").await?, ours);
    Ok(())
}
