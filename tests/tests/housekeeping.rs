//! Housekeeping removes old data and keeps data that is still needed. A request for removed data gets an error that says so. Data is
//! old after one second in these tests.

use std::time::Duration;

use anyhow::Context as _;
use plexus_e2e::{LIMIT, Setup, World, events, script, text, until};
use plexus_store::{Durability, EventsOfTurn, SqlStore, Store};
use plexus_testkit::rpc::Listener;
use serde_json::{Value, json};
use tokio::time::Instant;

/// About a second, in days.
const SHORT: &str = "0.00001";

async fn world(retention: &str) -> anyhow::Result<World> {
    let config = format!("[retention]\nevery_secs = 0.05\n{retention}");
    Setup::scripted()
        .with_config(&config)
        .world("housekeeping")
        .await?
        .context("the scripted agent is always available")
}

/// A session that has written something.
async fn talker(world: &World, name: &str, steps: Value) -> anyhow::Result<String> {
    let session = world.create(name, json!({"prompt": script(&steps)})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(session)
}

async fn says(world: &World, session: &str, what: &str) -> anyhow::Result<Value> {
    world.chat(session, &script(&json!([{"say": what}]))).await?;
    let poll = world.ended(session).await?;
    assert_eq!(events(&poll, "complete")[0]["result"], what, "{poll:#}");
    Ok(poll)
}

async fn stop(world: &World, session: &str) -> anyhow::Result<()> {
    world.call("claudecode.stop", json!({"session_id": session})).await.map(drop)
}

/// Repeats the call until it fails with this kind.
async fn until_refused(world: &World, method: &str, params: &Value, kind: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        match world.door.call(method, params.clone()).await {
            Err(error) => {
                assert_eq!(error.kind.as_deref(), Some(kind), "{error}");
                return Ok(());
            }
            Ok(result) => anyhow::ensure!(Instant::now() < deadline, "still there: {result}"),
        }
    }
}

#[tokio::test]
async fn files_of_ended_runs_are_removed_and_files_of_open_runs_stay() -> anyhow::Result<()> {
    let world = world(&format!("run_files_days = {SHORT}")).await?;
    let living = talker(&world, "living", json!([{"say": "here"}])).await?;
    let over = talker(&world, "over", json!([{"say": "there"}])).await?;
    stop(&world, &over).await?;
    until("its files are gone", || !world.run_dir(&over, 1).exists()).await?;
    assert!(world.run_dir(&living, 1).join("journal.jsonl").exists());
    says(&world, &living, "still here").await?;
    assert!(!world.run_dir(&living, 2).exists(), "it is the same process");
    // The events are in the store, and the session continues with another process.
    let all = json!({"session_id": over, "from_seq": 0});
    assert_eq!(events(&world.call("claudecode.poll", all).await?, "content")[0]["text"], "there");
    says(&world, &over, "back").await?;
    assert!(world.run_dir(&over, 2).exists());
    Ok(())
}

#[tokio::test]
async fn the_oldest_files_are_removed_first() -> anyhow::Result<()> {
    let world = world("run_files_days = 0\nrun_files_mb = 1").await?;
    let mut sessions = Vec::new();
    for name in ["first", "second", "third"] {
        let session = talker(&world, name, json!([{"flood": {"events": 12, "bytes": 50_000}}])).await?;
        stop(&world, &session).await?;
        // The end of a run is stored in seconds, so the next run has to end in a later second.
        let ended = now();
        until("a second has passed", || now() > ended).await?;
        sessions.push(session);
    }
    until("the first two are gone", || !world.run_dir(&sessions[1], 1).exists()).await?;
    assert!(!world.run_dir(&sessions[0], 1).exists());
    assert!(world.run_dir(&sessions[2], 1).join("journal.jsonl").metadata()?.len() > 500_000);
    Ok(())
}

fn now() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs()
}

#[tokio::test]
async fn files_of_deleted_sessions_are_removed_at_once() -> anyhow::Result<()> {
    let world = world("").await?;
    let kept = talker(&world, "kept", json!([{"say": "here"}])).await?;
    stop(&world, &kept).await?;
    let deleted = talker(&world, "deleted", json!([{"say": "there"}])).await?;
    world.call("claudecode.delete", json!({"session_id": deleted})).await?;
    let folder = world.hub.data_dir().join("sessions").join(&deleted);
    until("its folder is gone", || !folder.exists()).await?;
    assert!(world.run_dir(&kept, 1).exists());
    Ok(())
}

#[tokio::test]
async fn a_request_for_removed_events_gets_an_error() -> anyhow::Result<()> {
    let world = world(&format!("events_days = {SHORT}")).await?;
    let asks = json!([{"tool": "Step", "input": {"number": 1}}, {"say": "one"}]);
    let session = world.create("old", json!({"prompt": script(&asks)})).await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    world.ended(&session).await?;
    says(&world, &session, "two").await?;

    let first = json!({"session_id": session, "turn": 1, "from_seq": 0});
    until_refused(&world, "claudecode.poll", &first, "gone").await?;
    let event = json!({"session_id": session, "turn": 1, "seq": 0});
    until_refused(&world, "claudecode.event", &event, "gone").await?;
    let told = world.refused("claudecode.poll", first).await?;
    assert!(told.to_string().contains("turn 1"), "{told}");
    for (query, last) in [("?turn=1", None), ("", Some("1-2"))] {
        let path = format!("/sessions/{session}/events{query}");
        let refused = Listener::open(world.hub.url(), &path, &world.hub.token()?, last).await.map(drop);
        let refused = refused.expect_err("a stream of removed events").to_string();
        assert!(refused.contains("410") || refused.contains("gone"), "{refused}");
    }
    // The latest turn stays, however old it is. Decisions stay, too.
    let latest = world.call("claudecode.poll", json!({"session_id": session, "from_seq": 0})).await?;
    assert_eq!((&latest["turn"], events(&latest, "content").len()), (&json!(2), 1), "{latest:#}");
    let kept = world.call("loopback.get", json!({"approval_id": approval["id"]})).await?;
    assert_eq!(kept["approval"]["status"], "allowed");
    says(&world, &session, "three").await?;
    Ok(())
}

#[tokio::test]
async fn old_approvals_are_removed_only_if_configured_and_open_ones_never() -> anyhow::Result<()> {
    let world = world(&format!("decisions_days = {SHORT}")).await?;
    let asks =
        |name: &str| (name.to_owned(), json!([{"tool": "Step", "input": {"number": 1}}, {"say": "done"}]));
    let (name, steps) = asks("over");
    let over = world.create(&name, json!({"prompt": script(&steps)})).await?;
    let (_, decided) = world.asked(&over).await?;
    let (name, steps) = asks("asking");
    let asking = world.create(&name, json!({"prompt": script(&steps)})).await?;
    let (_, open) = world.asked(&asking).await?;
    world.allow(&decided).await?;
    world.ended(&over).await?;
    stop(&world, &over).await?;

    until_refused(&world, "loopback.get", &json!({"approval_id": decided["id"]}), "approval_not_found")
        .await?;
    let late =
        world.refused("loopback.respond", json!({"approval_id": decided["id"], "approve": true})).await?;
    assert_eq!(late.kind.as_deref(), Some("approval_not_found"), "{late}");
    let told = world.call("claudecode.poll", json!({"session_id": over, "from_seq": 0})).await?;
    assert_eq!(events(&told, "approval_resolved").len(), 1, "events have their own retention");
    world.allow(&open).await?;
    assert_eq!(world.ended(&asking).await?["status"], "complete");
    assert_eq!(world.ran().len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_hub_killed_during_housekeeping_loses_nothing_and_the_next_continues() -> anyhow::Result<()> {
    let mut world = world(&format!("events_days = {SHORT}\nrun_files_days = {SHORT}")).await?;
    let asks = json!([{"say": "before"}, {"tool": "Step", "input": {"number": 1}}, {"say": "after"}]);
    let asking = world.create("asking", json!({"prompt": script(&asks)})).await?;
    let (_, open) = world.asked(&asking).await?;
    let session = talker(&world, "old", json!([{"flood": {"events": 5000, "bytes": 100}}])).await?;
    says(&world, &session, "two").await?;
    stop(&world, &session).await?;

    let first = json!({"session_id": session, "turn": 1, "from_seq": 0, "limit": 1});
    for _ in 0..3 {
        // After its first step. Some thousand events still exist.
        until_refused(&world, "claudecode.poll", &first, "gone").await?;
        world.hub.kill9().await?;
        world.hub.restart().await?;
        world.door = Box::new(plexus_testkit::rpc::Rpc::new(world.hub.url(), &world.hub.token()?));
    }
    until("its files are gone", || !world.run_dir(&session, 1).exists()).await?;
    let two = world.call("claudecode.poll", json!({"session_id": session, "from_seq": 0})).await?;
    assert_eq!(events(&two, "content")[0]["text"], "two", "{two:#}");
    world.allow(&open).await?;
    let poll = world.ended(&asking).await?;
    let said: Vec<String> = events(&poll, "content").iter().map(|event| text(&event["text"])).collect();
    assert_eq!(said, ["before", "after"]);

    // Opens the store as another program, beside the hub.
    let store = SqlStore::sqlite(&world.hub.data_dir().join("plexus.db"), Durability::Full)?;
    let (id, deadline) = (session.parse()?, Instant::now() + LIMIT);
    while store.turn(id, 1).await?.context("the turn stays")?.events != EventsOfTurn::Removed {
        anyhow::ensure!(Instant::now() < deadline, "{} events are left", store.event_count(id, 1).await?);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(store.event_count(id, 1).await?, 0);
    Ok(())
}
