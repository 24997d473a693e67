//! Automatic escalation: an approval moves on from a session that does not answer, and passes over a session that is not present.

use std::time::Duration;

use plexus_e2e::{LIMIT, Setup, World};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Member, asks, member, of, scripted};

/// With this setting a session is present only during a call.
const PRESENT_IN_CALLS_ONLY: &str = "present_secs = 0.000001";

fn allow_all() -> Value {
    json!({"approve_scope": ["*"]})
}

async fn family(world: &World, child: Value) -> anyhow::Result<[Member; 3]> {
    let grandparent = member(world, None, "grandparent", allow_all()).await?;
    let parent = member(world, Some(&grandparent), "parent", allow_all()).await?;
    let child = member(world, Some(&parent), "child", child).await?;
    Ok([grandparent, parent, child])
}

async fn cursor(rpc: &Rpc) -> anyhow::Result<Value> {
    Ok(rpc.call("loopback.wait", json!({})).await?["cursor"].take())
}

async fn news(rpc: &Rpc, cursor: &Value) -> anyhow::Result<Value> {
    Ok(rpc.call("loopback.wait", json!({"cursor": cursor, "timeout_ms": 60_000})).await?)
}

/// From whom an approval escalated, and why.
fn escalations(approval: &Value) -> Vec<(Value, Value)> {
    let passed = approval["passed"].as_array().into_iter().flatten();
    passed.map(|passed| (passed["from"]["id"].clone(), passed["why"].clone())).collect()
}

#[tokio::test]
async fn an_unanswered_approval_escalates_up_to_the_operator() -> anyhow::Result<()> {
    let world = scripted().await?;
    let [grandparent, parent, child] = family(&world, json!({"escalate_after_secs": 1})).await?;
    let operator = Rpc::new(world.hub.url(), &world.hub.token()?);
    let (mine, operators) = (cursor(&grandparent.rpc).await?, cursor(&operator).await?);
    let (approval, told) = asks(&world, &child, "git push").await?;

    // A slow machine may read this only after the next escalation, so the test checks the path and not the current addressee.
    let received = news(&grandparent.rpc, &mine).await?;
    let first = &received["approvals"][0];
    assert_eq!(first["id"], approval["id"], "{received}");
    assert_eq!(escalations(first)[0], (json!(parent.id), json!("unanswered")), "{received}");
    let received = news(&operator, &operators).await?;
    let last = &received["approvals"][0];
    assert_eq!(last["asked_of"], json!({"kind": "operator"}), "{received}");
    assert_eq!(last["passes_on_at"], Value::Null, "the operator has no ancestor: {received}");
    assert_eq!(escalations(last)[1], (json!(grandparent.id), json!("unanswered")), "{received}");

    // Both still see the approval. The first answer is committed, and the others are notified.
    let shown = parent.rpc.call("loopback.wait", json!({})).await?;
    assert_eq!(shown["approvals"][0]["id"], approval["id"], "{shown}");
    let cursors = [cursor(&grandparent.rpc).await?, cursor(&operator).await?];
    parent.rpc.call("loopback.respond", json!({"approval_id": approval["id"], "approve": true})).await?;
    assert_eq!(told.await??["behavior"], "allow");
    for (rpc, cursor) in [&grandparent.rpc, &operator].into_iter().zip(&cursors) {
        let received = news(rpc, cursor).await?;
        let expected = json!({"type": "resolved", "approval_id": approval["id"], "status": "allowed"});
        assert_eq!(received["notices"][0], expected, "{received}");
    }
    let record = world.call("audit.list", json!({"kind": "decision"})).await?;
    let passed = &record["rows"][0]["entry"]["passed"];
    assert_eq!(
        (&passed[0]["why"], &passed[1]["by"]["kind"]),
        (&json!("unanswered"), &json!("hub")),
        "{record}"
    );
    Ok(())
}

#[tokio::test]
async fn an_absent_session_is_passed_over_and_sees_the_approval_later() -> anyhow::Result<()> {
    let setup = Setup::scripted().with_config(PRESENT_IN_CALLS_ONLY);
    let Some(world) = setup.world("absent").await? else { return Ok(()) };
    let [grandparent, parent, child] = family(&world, json!({})).await?;
    let old = cursor(&grandparent.rpc).await?;
    let (approval, told) = asks(&world, &child, "make").await?;
    assert_eq!(approval["asked_of"], json!({"kind": "operator"}), "{approval}");
    let absent = [(json!(parent.id), json!("absent")), (json!(grandparent.id), json!("absent"))];
    assert_eq!(escalations(&approval), absent, "{approval}");
    // Returned with an old cursor, and without one.
    let received = news(&grandparent.rpc, &old).await?;
    assert_eq!(received["approvals"][0]["id"], approval["id"], "{received}");
    let shown = parent.rpc.call("loopback.wait", json!({})).await?;
    assert_eq!(shown["approvals"][0]["id"], approval["id"], "{shown}");

    // A session in a call is present.
    let here = {
        let (rpc, cursor) = (Rpc::new(world.hub.url(), &grandparent.token), received["cursor"].clone());
        tokio::spawn(async move { news(&rpc, &cursor).await })
    };
    let asked_of_it = async {
        for i in 0.. {
            let (approval, _) = asks(&world, &child, &format!("make {i}")).await?;
            if approval["asked_of"] == of(&grandparent) {
                assert_eq!(escalations(&approval), [(json!(parent.id), json!("absent"))], "{approval}");
                break;
            }
        }
        anyhow::Ok(())
    };
    timeout(LIMIT, asked_of_it).await??;
    assert!(here.await??["approvals"].as_array().is_some_and(|asked| !asked.is_empty()));
    grandparent.rpc.call("loopback.respond", json!({"approval_id": approval["id"], "approve": true})).await?;
    assert_eq!(told.await??["behavior"], "allow");
    Ok(())
}

#[tokio::test]
async fn an_escalation_that_became_due_without_a_hub_happens_after_the_restart() -> anyhow::Result<()> {
    let mut world = scripted().await?;
    let [_grandparent, parent, child] = family(&world, json!({"escalate_after_secs": 2})).await?;
    let (approval, _) = asks(&world, &child, "make").await?;
    assert_eq!(approval["asked_of"], of(&parent));
    world.hub.kill9().await?;
    // Waits until the escalation is due. No hub runs.
    let due = approval["passes_on_at"].as_u64().unwrap_or_default();
    while std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs() <= due {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.hub.restart().await?;
    world.door = Box::new(Rpc::new(world.hub.url(), &world.hub.token()?));
    let gone_on = async {
        loop {
            let get = json!({"approval_id": approval["id"]});
            let now = world.call("loopback.get", get).await?["approval"].take();
            if now["asked_of"] == json!({"kind": "operator"}) {
                return anyhow::Ok(now);
            }
            tokio::task::yield_now().await;
        }
    };
    let now = timeout(LIMIT, gone_on).await??;
    assert_eq!(now["passed"].as_array().map(Vec::len), Some(2), "{now}");
    Ok(())
}

#[tokio::test]
async fn the_time_until_escalation_is_inherited_and_validated() -> anyhow::Result<()> {
    let world = scripted().await?;
    let parent =
        member(&world, None, "parent", json!({"approve_scope": ["*"], "escalate_after_secs": 1000})).await?;
    let child = member(&world, Some(&parent), "child", json!({})).await?;
    let (approval, _) = asks(&world, &child, "make").await?;
    let after = approval["passes_on_at"].as_u64().zip(approval["created_at"].as_u64());
    assert!(after.is_some_and(|(on, asked)| (1000..1002).contains(&(on - asked))), "{approval}");
    let with = |more: Value| {
        let mut params = json!({"name": "x", "working_dir": world.work});
        for (field, value) in more.as_object().into_iter().flatten() {
            params[field] = value.clone();
        }
        params
    };
    for (more, field) in
        [(json!({"escalate_after_secs": 0}), "escalate_after_secs"), (json!({"wake": true}), "wake")]
    {
        assert_eq!(world.refused("claudecode.create", with(more)).await?.data["field"], field);
    }
    Ok(())
}
