//! The limits on the depth and size of a tree.

use plexus_e2e::{World, text};
use plexus_testkit::rpc::{CallError, Door};
use serde_json::json;

use super::{member, scripted};

async fn refused(world: &World, maker: &dyn Door, name: &str) -> anyhow::Result<CallError> {
    let params = json!({"name": name, "working_dir": world.work});
    match maker.call("claudecode.create", params).await {
        Ok(made) => anyhow::bail!("not refused: {made}"),
        Err(refusal) => Ok(refusal),
    }
}

#[tokio::test]
async fn an_agent_is_limited_in_descendants() -> anyhow::Result<()> {
    let mut world = scripted("[limits]\ndescendants = 2").await?;
    let (_, top) = member(&world, &*world.door, "top").await?;
    let (child, child_door) = member(&world, &top, "child").await?;
    // Of several concurrent calls only as many succeed as the limit allows.
    let make = |name: &'static str| {
        let params = json!({"name": name, "working_dir": world.work});
        async { child_door.call("claudecode.create", params).await }
    };
    let (a, b, c) = tokio::join!(make("a"), make("b"), make("c"));
    let (made, refusals): (Vec<_>, Vec<_>) = [a, b, c].into_iter().partition(Result::is_ok);
    assert_eq!(made.len(), 1, "{made:?}");
    for refusal in refusals.into_iter().filter_map(Result::err) {
        assert_eq!(refusal.kind.as_deref(), Some("limit_reached"), "{refusal}");
        assert_eq!((&refusal.data["limit"], &refusal.data["most"]), (&json!("descendants"), &json!(2)));
    }
    // The limit does not apply to the operator, and the next hub counts the same.
    member(&world, &*world.door, "other").await?;
    world.hub.restart().await?;
    world.door = Box::new(plexus_testkit::rpc::Rpc::new(world.hub.url(), &world.hub.token()?));
    assert_eq!(refused(&world, &top, "one-more").await?.data["limit"], "descendants");
    world.call("claudecode.delete", json!({"session_id": child})).await?;
    let again = top.call("claudecode.create", json!({"name": "again", "working_dir": world.work})).await?;
    assert!(!text(&again["id"]).is_empty());
    Ok(())
}
