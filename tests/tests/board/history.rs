//! The timeline of sessions, and figures over time.

use anyhow::Context as _;
use plexus_e2e::{World, script, text};
use serde_json::{Value, json};

use super::{bash, scripted, token};
use crate::console_methods::client_of;

/// The lanes of a timeline, by the name of their session.
async fn lanes(world: &World, params: Value) -> anyhow::Result<Vec<(String, Value)>> {
    let timeline = world.call("claudecode.timeline", params).await?;
    let lanes = timeline["lanes"].as_array().context("lanes")?;
    Ok(lanes.iter().map(|lane| (text(&lane["session_name"]), lane.clone())).collect())
}

/// Whether a lane has a span with this state.
fn did(lane: &Value, state: &str) -> bool {
    lane["spans"].as_array().is_some_and(|spans| spans.iter().any(|span| span["state"] == state))
}

#[tokio::test]
async fn a_timeline_shows_who_worked_and_who_was_waited_for() -> anyhow::Result<()> {
    let world = scripted().await?;
    let top = world.create("top", json!({"hub_tools": true, "approve_scope": ["*"]})).await?;
    let agent = client_of(&world, &top).await?;
    let below = json!({"name": "below", "working_dir": world.work, "prompt": script(&json!([bash("echo one"), bash("echo two")]))});
    let below = text(&agent.call("claudecode.create", below).await?["id"]);
    world.create("idle", json!({})).await?;
    let (_, first) = world.asked(&below).await?;
    let shown = lanes(&world, json!({})).await?;
    let [(above, top_lane), (name, lane)] = &shown[..] else { panic!("{shown:#?}") };
    assert_eq!(
        (above.as_str(), name.as_str()),
        ("top", "below"),
        "with the session above, without the idle one"
    );
    assert_eq!(
        (&top_lane["spans"], &lane["depth"], &lane["path"]),
        (&json!([]), &json!(1), &json!("top/below"))
    );
    assert!(did(lane, "waiting_for_agent"), "{lane:#}");
    assert_eq!(lane["marks"][0]["approval_id"], first["id"]);
    assert_eq!(
        (&lane["marks"][0]["status"], &lane["marks"][0]["asked_of"]),
        (&json!("pending"), &json!("agent"))
    );

    agent.call("loopback.escalate", json!({"approval_id": first["id"]})).await?;
    world.allow(&first).await?;
    world
        .poll_until(&below, |poll| {
            let open = &poll["pending_approvals"][0]["id"];
            open.is_string() && *open != first["id"]
        })
        .await?;
    let (_, second) = world.asked(&below).await?;
    agent.call("loopback.respond", json!({"approval_id": second["id"], "approve": false})).await?;
    world.ended(&below).await?;
    let shown = lanes(&world, json!({"session_id": below})).await?;
    let [(_, lane)] = &shown[..] else { panic!("{shown:#?}") };
    assert!(did(lane, "waiting_for_person"), "{lane:#}");
    let marks = lane["marks"].as_array().context("marks")?;
    let ends: Vec<Value> =
        marks.iter().map(|mark| json!([mark["status"], mark["by"], mark["asked_of"]])).collect();
    assert_eq!(ends, [json!(["allowed", "person", "person"]), json!(["denied", "agent", "agent"])]);

    let own = agent.call("claudecode.timeline", json!({})).await?;
    assert_eq!(own["lanes"].as_array().map(Vec::len), Some(2), "an agent sees its own tree");
    let stranger = world.create("stranger", json!({"hub_tools": true})).await?;
    let stranger = client_of(&world, &stranger).await?;
    assert_eq!(stranger.call("claudecode.timeline", json!({})).await?["lanes"], json!([]));
    let refused =
        stranger.call("claudecode.timeline", json!({"session_id": below})).await.expect_err("not its own");
    assert_eq!(refused.data["type"], "session_not_found");
    for (params, field) in [
        (json!({"from": 5, "to": 5}), "from"),
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 201}), "limit"),
    ] {
        assert_eq!(world.refused("claudecode.timeline", params).await?.data["field"], field);
    }
    let one = world.call("claudecode.timeline", json!({"limit": 1})).await?;
    assert_eq!((&one["lanes"], &one["more_lanes"]), (&json!([]), &json!(1)), "its parent has no room");
    Ok(())
}

#[tokio::test]
async fn figures_over_time_are_those_of_the_audit_log() -> anyhow::Result<()> {
    let world = scripted().await?;
    let rules =
        json!([{"rule": "Bash(echo rule:*)", "effect": "allow"}, {"rule": "Bash(rm:*)", "effect": "deny"}]);
    let prompt = script(&json!([bash("echo rule"), bash("rm x"), bash("echo ask"), bash("echo no")]));
    let session = world.create("a", json!({"rules": rules, "prompt": prompt})).await?;
    let (_, ask) = world.asked(&session).await?;
    world.allow(&ask).await?;
    world
        .poll_until(&session, |poll| {
            let open = &poll["pending_approvals"][0]["id"];
            open.is_string() && *open != ask["id"]
        })
        .await?;
    let (_, no) = world.asked(&session).await?;
    world.respond(&no, json!({"approve": false})).await?;
    world.ended(&session).await?;
    let other = world.create("b", json!({"prompt": script(&json!([bash("echo other")]))})).await?;
    let (_, open) = world.asked(&other).await?;

    let now = open["created_at"].as_u64().context("a time")?;
    let sum = |series: &Value, field: &str| -> f64 {
        series["buckets"].as_array().into_iter().flatten().filter_map(|bucket| bucket[field].as_f64()).sum()
    };
    let period = json!({"from": now - 3600, "to": now + 60, "buckets": 30});
    let all = world.call("audit.series", period.clone()).await?;
    assert_eq!(all["buckets"].as_array().map(Vec::len), Some(30), "{all:#}");
    for (field, expected) in [
        ("by_rule", 2.0),
        ("by_person", 2.0),
        ("by_agent", 0.0),
        ("allowed", 2.0),
        ("denied", 2.0),
        ("expired", 0.0),
        ("calls", 5.0),
        ("turns", 1.0),
    ] {
        assert_eq!(sum(&all, field), expected, "{field}: {all:#}");
    }
    let mut of_one = period;
    of_one["session_id"] = json!(other);
    let of_one = world.call("audit.series", of_one).await?;
    assert_eq!((sum(&of_one, "calls"), sum(&of_one, "by_rule")), (1.0, 0.0), "{of_one:#}");

    for (params, field) in [
        (json!({"from": 5, "to": 5}), "from"),
        (json!({"from": 5, "buckets": 0}), "buckets"),
        (json!({"from": 5, "buckets": 1001}), "buckets"),
    ] {
        assert_eq!(world.refused("audit.series", params).await?.data["field"], field);
    }
    let reads = token(&world, "read").await?;
    let refused = reads.call("audit.series", json!({"from": 5})).await.expect_err("the operator alone");
    assert_eq!(refused.data["type"], "forbidden");
    Ok(())
}
