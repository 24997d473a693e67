//! Grants between sessions: a grant is reserved from the budget of the granting session. Also, who decides a budget approval.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, text};
use plexus_testkit::rpc::{CallError, Door, McpClient};
use serde_json::{Value, json};

use super::{budget_of, calls, kind, ran, scripted};

/// Creates a session with the hub's tools and this budget, and waits for the end of its first turn. Returns it with a client.
async fn member(
    world: &World,
    maker: &dyn Door,
    name: &str,
    budget: Value,
) -> anyhow::Result<(String, McpClient)> {
    let params = json!({"name": name, "working_dir": world.work, "hub_tools": true, "prompt": calls(&[]),
                        "budget": budget});
    let id = text(&maker.call("claudecode.create", params).await?["id"]);
    assert_eq!(world.ended(&id).await?["status"], "complete");
    let door = world.door_of(&id).await?;
    Ok((id, door))
}

async fn refused(door: &dyn Door, method: &str, params: Value) -> anyhow::Result<CallError> {
    match door.call(method, params).await {
        Ok(done) => anyhow::bail!("not refused: {done}"),
        Err(refusal) => Ok(refusal),
    }
}

/// Calls `loopback.wait` until `fits` finds a value in the result.
async fn wait_for(door: &dyn Door, fits: impl Fn(&Value) -> Option<Value>) -> anyhow::Result<Value> {
    let mut cursor = json!(0);
    loop {
        let news = door.call("loopback.wait", json!({"cursor": cursor})).await?;
        if let Some(found) = fits(&news) {
            return Ok(found);
        }
        assert_ne!(news["cursor"], cursor, "no news arrives: {news:#}");
        cursor = news["cursor"].clone();
    }
}

#[tokio::test]
async fn a_child_is_granted_no_more_than_its_creator_has_left() -> anyhow::Result<()> {
    let world = scripted().await?;
    let budget = json!({"tool_calls": 10, "turns": 10, "cost_usd": 1, "children": 3});
    let (top, door) = member(&world, &*world.door, "top", budget).await?;
    let make = |name: &str, budget: Value| json!({"name": name, "working_dir": world.work, "budget": budget});
    for (limit, amount, left) in [("tool_calls", 11, 10), ("turns", 10, 9), ("children", 3, 2)] {
        let refused = refused(&door, "claudecode.create", make("greedy", json!({(limit): amount}))).await?;
        assert_eq!(kind(&refused), "budget_exceeded", "{refused}");
        assert_eq!(
            (&refused.data["limit"], &refused.data["left"]),
            (&json!(limit), &json!(left)),
            "{refused}"
        );
    }
    // A refused grant uses nothing.
    assert_eq!(budget_of(&world, &top, "children").await?, json!([3, 0, 3]));
    let child = text(&door.call("claudecode.create", make("child", json!({"tool_calls": 6}))).await?["id"]);
    assert_eq!(budget_of(&world, &top, "tool_calls").await?, json!([10, 0, 4]));
    let set = |amount: u64| json!({"session_id": child, "budget": {"tool_calls": amount}});
    assert_eq!(kind(&refused(&door, "claudecode.set_budget", set(11)).await?), "budget_exceeded");
    door.call("claudecode.set_budget", set(10)).await?;
    // No session raises its own budget.
    let own = json!({"session_id": top, "budget": {"tool_calls": 99}});
    assert_eq!(kind(&refused(&door, "claudecode.set_budget", own).await?), "session_not_found");
    // Not even the operator grants a child more than its parent has.
    let refused_to_operator = world.refused("claudecode.set_budget", set(11)).await?;
    assert_eq!(refused_to_operator.data["session_id"], json!(top), "{refused_to_operator}");
    // The limit counts every created child, including deleted children and those that others created.
    door.call("claudecode.create", make("second", json!({}))).await?;
    door.call("claudecode.delete", json!({"name": "second"})).await.ok();
    world.call("claudecode.delete", json!({"session_id": child})).await?;
    assert_eq!(
        budget_of(&world, &top, "tool_calls").await?,
        json!([10, 0, 10]),
        "the unused budget was returned"
    );
    door.call("claudecode.create", make("third", json!({}))).await?;
    let refused = refused(&door, "claudecode.create", make("fourth", json!({}))).await?;
    assert_eq!(
        (kind(&refused), &refused.data["limit"]),
        ("budget_exhausted", &json!("children")),
        "{refused}"
    );
    Ok(())
}

#[tokio::test]
async fn sessions_that_share_a_budget_wait_for_one_approval() -> anyhow::Result<()> {
    let world = scripted().await?;
    let (top, top_door) = member(&world, &*world.door, "top", json!({"tool_calls": 5})).await?;
    let (middle, middle_door) = member(&world, &top_door, "middle", json!({"tool_calls": 1})).await?;
    let (leaf, leaf_door) = member(&world, &middle_door, "leaf", json!({})).await?;
    let rules = json!({"rules": [{"rule": "Bash", "effect": "allow"}]});
    world.call("policy.add", rules).await?;
    world.chat(&middle, &calls(&["one", "two"])).await?;
    let more = wait_for(&top_door, |news| news["approvals"].get(0).cloned()).await?;
    assert_eq!((&more["kind"], &more["session_id"]), (&json!("budget"), &json!(middle)), "{more:#}");
    assert_eq!(more["asked_of"], json!({"kind": "session", "id": top}));
    world.chat(&leaf, &calls(&["three"])).await?;
    let held =
        world.poll_until(&leaf, |poll| events(poll, "system").iter().any(|event| event["subtype"] == "held"));
    let held = held.await?;
    let note = events(&held, "system").into_iter().find(|event| event["subtype"] == "held");
    assert_eq!(note.unwrap_or_default()["data"]["approval_id"], more["id"], "{held:#}");
    let waits = world.poll_until(&leaf, |poll| poll["attention"] == json!(["budget"])).await?;
    assert_eq!(waits["pending_approvals"], json!([]), "the approval belongs to another session: {waits:#}");
    assert_eq!(
        world.call("loopback.pending", json!({})).await?["approvals"].as_array().map(Vec::len),
        Some(1)
    );
    // Neither the requesting session nor a descendant can answer.
    let answer = |more_of: u64| json!({"approval_id": more["id"], "approve": true, "updated_input": {"more": more_of}});
    assert_eq!(kind(&refused(&middle_door, "loopback.respond", answer(1)).await?), "approval_not_found");
    assert_eq!(kind(&refused(&leaf_door, "loopback.respond", answer(1)).await?), "approval_not_found");
    let beyond = refused(&top_door, "loopback.respond", answer(5)).await?;
    assert_eq!((kind(&beyond), &beyond.data["left"]), ("budget_exceeded", &json!(4)), "{beyond}");
    top_door.call("loopback.respond", answer(2)).await?;
    for session in [&middle, &leaf] {
        assert_eq!(world.ended(session).await?["status"], "complete");
    }
    let mut all = ran(&world);
    all.sort();
    assert_eq!(all, ["one", "three", "two"]);
    assert_eq!(budget_of(&world, &top, "tool_calls").await?, json!([5, 3, 2]));
    assert_eq!(budget_of(&world, &middle, "tool_calls").await?, json!([3, 3, 0]));
    Ok(())
}

#[tokio::test]
async fn a_parent_with_nothing_left_escalates_the_budget_approval() -> anyhow::Result<()> {
    let world = scripted().await?;
    let (top, top_door) = member(&world, &*world.door, "top", json!({"tool_calls": 1})).await?;
    let (child, _) = member(&world, &top_door, "child", json!({"tool_calls": 1})).await?;
    world.call("policy.add", json!({"rules": [{"rule": "Bash", "effect": "allow"}]})).await?;
    world.chat(&child, &calls(&["one", "two"])).await?;
    let more = wait_for(&top_door, |news| news["approvals"].get(0).cloned()).await?;
    let answer = json!({"approval_id": more["id"], "approve": true});
    assert_eq!(kind(&refused(&top_door, "loopback.respond", answer.clone()).await?), "budget_exceeded");
    let passed =
        top_door.call("loopback.escalate", json!({"approval_id": more["id"], "opinion": "it is worth it"}));
    assert_eq!(passed.await?["asked_of"], json!({"kind": "operator"}));
    // The operator has to raise the parent's budget first. A child never has more than its parent.
    assert_eq!(kind(&world.refused("loopback.respond", answer.clone()).await?), "budget_exceeded");
    world.call("claudecode.set_budget", json!({"session_id": top, "budget": {"tool_calls": 3}})).await?;
    world.call("loopback.respond", answer).await?;
    assert_eq!(world.ended(&child).await?["status"], "complete");
    assert_eq!(budget_of(&world, &top, "tool_calls").await?, json!([3, 2, 1]));
    Ok(())
}

#[tokio::test]
async fn an_absent_parent_is_passed_over() -> anyhow::Result<()> {
    let setup = Setup::scripted().with_config("durability = \"normal\"\npresent_secs = 0.000001");
    let world = setup.world("budget").await?.context("the scripted agent is always available")?;
    let (top, top_door) = member(&world, &*world.door, "top", json!({})).await?;
    let (child, _) = member(&world, &top_door, "child", json!({"tool_calls": 1})).await?;
    world.call("policy.add", json!({"rules": [{"rule": "Bash", "effect": "allow"}]})).await?;
    world.chat(&child, &calls(&["one", "two"])).await?;
    let more = wait_for(&*world.door, |news| news["approvals"].get(0).cloned()).await?;
    assert_eq!((&more["kind"], &more["session_id"]), (&json!("budget"), &json!(child)), "{more:#}");
    assert_eq!(json!([more["passed"][0]["from"]["id"], more["passed"][0]["why"]]), json!([top, "absent"]));
    world.allow(&more).await?;
    assert_eq!(world.ended(&child).await?["status"], "complete");
    Ok(())
}

#[tokio::test]
async fn a_fork_draws_on_the_same_budget_of_its_parent() -> anyhow::Result<()> {
    let world = scripted().await?;
    let (top, door) = member(&world, &*world.door, "top", json!({"tool_calls": 3})).await?;
    let child =
        json!({"name": "child", "working_dir": world.work, "prompt": calls(&["true"]), "policy": "ask_all"});
    let child = text(&door.call("claudecode.create", child).await?["id"]);
    world.allow(&world.asked(&child).await?.1).await?;
    assert_eq!(world.ended(&child).await?["status"], "complete");
    // The budget of the parent is partly used, so nobody could grant it again.
    let fork = json!({"session_id": child, "new_name": "fork"});
    let fork = text(&world.call("claudecode.fork", fork).await?["id"]);
    let got = world.call("claudecode.get", json!({"session_id": fork})).await?;
    assert!(got["session"]["budget"].is_null(), "{got:#}");
    assert_eq!(budget_of(&world, &top, "tool_calls").await?, json!([3, 1, 2]));
    Ok(())
}
