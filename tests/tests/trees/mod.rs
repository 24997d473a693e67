//! Trees of sessions: how they are listed, which calls reach a whole tree, how large they may grow, and what a session can
//! grant to the sessions it creates.

mod delegation;
mod limits;
mod names;
mod prompts;

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, script, text};
use plexus_testkit::rpc::{Door, McpClient};
use serde_json::{Value, json};

async fn scripted(config: &str) -> anyhow::Result<World> {
    let setup = Setup::scripted().with_config(&format!("durability = \"normal\"\n{config}"));
    setup.world("trees").await?.context("the scripted agent is always available")
}

/// Creates a session with the hub's tools and waits for the end of its first turn. Returns it with a client.
async fn member(world: &World, maker: &dyn Door, name: &str) -> anyhow::Result<(String, McpClient)> {
    let prompt = script(&json!([{"say": "here"}]));
    let params = json!({"name": name, "working_dir": world.work, "hub_tools": true, "prompt": prompt});
    let id = text(&maker.call("claudecode.create", params).await?["id"]);
    assert_eq!(world.ended(&id).await?["status"], "complete");
    let door = world.door_of(&id).await?;
    Ok((id, door))
}

/// Starts a turn that needs approval. Returns the approval.
async fn asks(world: &World, session: &str) -> anyhow::Result<Value> {
    let step = json!({"tool": "Bash", "input": {"command": "true"}});
    world.chat(session, &script(&json!([step, {"say": "done"}]))).await?;
    Ok(world.asked(session).await?.1)
}

/// The listed sessions, by name and depth.
fn listed(list: &Value) -> Vec<(String, u64)> {
    let sessions = list["sessions"].as_array().into_iter().flatten();
    sessions.map(|one| (text(&one["name"]), one["depth"].as_u64().unwrap_or(u64::MAX))).collect()
}

fn named(list: &Value, name: &str) -> Value {
    let mut sessions = list["sessions"].as_array().into_iter().flatten();
    sessions.find(|one| one["name"] == name).cloned().unwrap_or_default()
}

fn cost(poll: &Value) -> f64 {
    events(poll, "complete").iter().filter_map(|event| event["cost_usd"].as_f64()).sum()
}

#[tokio::test]
async fn a_list_shows_the_tree_with_its_sums() -> anyhow::Result<()> {
    let world = scripted("").await?;
    let (top, top_door) = member(&world, &*world.door, "top").await?;
    let (middle, middle_door) = member(&world, &top_door, "middle").await?;
    let (other, _) = member(&world, &top_door, "other").await?;
    let (stranger, _) = member(&world, &*world.door, "stranger").await?;
    let (leaf, _) = member(&world, &middle_door, "leaf").await?;
    let mut costs = Vec::new();
    for session in [&top, &middle, &other, &stranger, &leaf] {
        costs.push(cost(&world.ended(session).await?));
    }
    assert!(costs.iter().all(|cost| *cost > 0.0), "{costs:?}");
    asks(&world, &leaf).await?;

    let name = |name: &str, depth| (name.to_owned(), depth);
    let list = world.call("claudecode.list", json!({})).await?;
    let expected =
        [name("top", 0), name("middle", 1), name("leaf", 2), name("other", 1), name("stranger", 0)];
    assert_eq!(listed(&list), expected, "{list:#}");
    assert_eq!(named(&list, "leaf")["answers_to"], json!({"kind": "session", "id": middle}));
    let sums = |name: &str| {
        let tree = &named(&list, name)["tree"];
        json!([tree["sessions"], tree["running"], tree["pending_approvals"]])
    };
    assert_eq!(sums("top"), json!([4, 1, 1]));
    assert_eq!(sums("middle"), json!([2, 1, 1]));
    assert_eq!(sums("other"), json!([1, 0, 0]));
    assert_eq!(
        (&named(&list, "top")["pending_approvals"], &named(&list, "leaf")["pending_approvals"]),
        (&json!(0), &json!(1))
    );
    let whole = named(&list, "top")["tree"]["cost_usd"].as_f64().unwrap_or_default();
    let below: f64 = costs[0] + costs[1] + costs[2] + costs[4];
    assert!((whole - below).abs() < 1e-9, "{whole} is {below}");
    assert_eq!(named(&list, "stranger")["cost_usd"].as_f64(), Some(costs[3]));

    // A session sees only its own tree, with depths relative to itself. `get` shows the same fields.
    let list = middle_door.call("claudecode.list", json!({})).await?;
    assert_eq!(listed(&list), [name("middle", 0), name("leaf", 1)]);
    let got = middle_door.call("claudecode.get", json!({"name": "leaf"})).await?;
    for field in ["depth", "tree", "cost_usd", "pending_approvals", "status", "answers_to"] {
        assert_eq!(got["session"][field], named(&list, "leaf")[field], "{field}");
    }
    Ok(())
}

#[tokio::test]
async fn the_cost_of_a_turn_is_counted_however_it_ended() -> anyhow::Result<()> {
    let mut world = scripted("").await?;
    let (session, _) = member(&world, &*world.door, "spender").await?;
    let first = cost(&world.ended(&session).await?);
    asks(&world, &session).await?;
    world.call("claudecode.interrupt", json!({"session_id": session})).await?;
    assert_eq!(world.ended(&session).await?["status"], "interrupted");
    let spent = async |world: &World| -> anyhow::Result<f64> {
        let got = world.call("claudecode.get", json!({"session_id": session})).await?;
        got["session"]["cost_usd"].as_f64().context("a cost")
    };
    let both = spent(&world).await?;
    assert!(both > first, "{both} is more than {first}");
    world.hub.restart().await?;
    world.door = Box::new(plexus_testkit::rpc::Rpc::new(world.hub.url(), &world.hub.token()?));
    assert_eq!(spent(&world).await?, both);
    Ok(())
}

#[tokio::test]
async fn an_interrupt_reaches_all_descendants() -> anyhow::Result<()> {
    let world = scripted("").await?;
    let (top, top_door) = member(&world, &*world.door, "top").await?;
    let (middle, middle_door) = member(&world, &top_door, "middle").await?;
    let (leaf, _) = member(&world, &middle_door, "leaf").await?;
    let (stranger, _) = member(&world, &*world.door, "stranger").await?;
    for session in [&top, &leaf, &stranger] {
        asks(&world, session).await?;
    }
    world.call("claudecode.interrupt", json!({"session_id": top})).await?;
    for session in [&top, &leaf] {
        let poll = world.call("claudecode.poll", json!({"session_id": session, "from_seq": 0})).await?;
        assert_eq!((&poll["status"], &poll["pending_approvals"]), (&json!("interrupted"), &json!([])));
    }
    let list = world.call("claudecode.list", json!({})).await?;
    let status = |name: &str| named(&list, name)["status"].clone();
    assert_eq!((status("middle"), status("stranger")), (json!("complete"), json!("awaiting_permission")));
    // Their processes still run for the next prompt.
    world.chat(&leaf, &script(&json!([{"say": "again"}]))).await?;
    assert_eq!(world.ended(&leaf).await?["status"], "complete");
    assert!(!world.run_dir(&leaf, 2).exists() && !world.run_dir(&middle, 2).exists());
    Ok(())
}
