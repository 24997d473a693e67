//! Tokens that the operator creates: how long they are valid, and how their open streams and calls end.

use std::time::Duration;

use anyhow::Context as _;
use plexus_e2e::{LIMIT, Setup, World, text};
use plexus_testkit::rpc::{Listener, Rpc};
use serde_json::{Value, json};
use tokio::time::timeout;

async fn scripted() -> anyhow::Result<World> {
    Setup::scripted().world("scripted").await?.context("the scripted agent is always available")
}

async fn token(world: &World, params: Value) -> anyhow::Result<String> {
    Ok(text(&world.call("token.new", params).await?["token"]))
}

#[tokio::test]
async fn revoking_a_token_ends_its_open_streams_and_calls() -> anyhow::Result<()> {
    let world = scripted().await?;
    let session = world.create("one", json!({})).await?;
    let reader = token(&world, json!({"name": "reader", "right": "read"})).await?;
    let other = token(&world, json!({"name": "other", "right": "read"})).await?;
    let path = format!("/sessions/{session}/events");
    let mut events = Listener::open(world.hub.url(), &path, &reader, None).await?;
    let mut approvals = Listener::open(world.hub.url(), "/approvals/events", &reader, None).await?;
    let mut others = Listener::open(world.hub.url(), "/approvals/events", &other, None).await?;
    let waiting = tokio::spawn({
        let rpc = Rpc::new(world.hub.url(), &reader);
        async move { rpc.call("loopback.wait", json!({"cursor": 1_000_000, "timeout_ms": 60_000})).await }
    });
    world.call("token.revoke", json!({"name": "reader"})).await?;
    for stream in [&mut events, &mut approvals] {
        while timeout(LIMIT, stream.next()).await?.is_ok_and(|event| event.is_some()) {}
    }
    let refused = timeout(LIMIT, waiting).await??.expect_err("the token was revoked");
    assert_eq!(refused.code, 401);
    let refused = Rpc::new(world.hub.url(), &reader).call("claudecode.list", json!({})).await;
    assert_eq!(refused.expect_err("the same").code, 401);
    assert!(
        timeout(Duration::from_millis(100), others.next()).await.is_err(),
        "streams of other tokens stay open"
    );
    let listed = world.call("token.list", json!({})).await?;
    assert_eq!(listed["tokens"].as_array().map(Vec::len), Some(1), "{listed}");
    assert!(!listed.to_string().contains(&other), "no secret is shown: {listed}");
    world.call("token.new", json!({"name": "reader", "right": "decide"})).await?;
    Ok(())
}

#[tokio::test]
async fn a_token_expires_in_time_and_survives_a_kill_of_the_hub() -> anyhow::Result<()> {
    let mut world = scripted().await?;
    let short = token(&world, json!({"name": "short", "right": "read", "expires_secs": 2})).await?;
    let long = token(&world, json!({"name": "long", "right": "read", "expires_secs": 3600})).await?;
    let mut stream = Listener::open(world.hub.url(), "/approvals/events", &short, None).await?;
    while timeout(LIMIT, stream.next()).await?.is_ok_and(|event| event.is_some()) {}
    let refused = Rpc::new(world.hub.url(), &short).call("claudecode.list", json!({})).await;
    assert_eq!(refused.expect_err("the token has expired").code, 401);
    world.hub.kill9().await?;
    world.hub.restart().await?;
    Rpc::new(world.hub.url(), &long).call("claudecode.list", json!({})).await?;
    Ok(())
}

#[tokio::test]
async fn all_invalid_tokens_get_the_same_error() -> anyhow::Result<()> {
    let world = scripted().await?;
    let taken_back = token(&world, json!({"name": "gone", "right": "read"})).await?;
    world.call("token.revoke", json!({"name": "gone"})).await?;
    let mut said = Vec::new();
    for bad in [taken_back.as_str(), "unknown", &"0".repeat(64)] {
        let refused = Rpc::new(world.hub.url(), bad).call("claudecode.list", json!({})).await;
        let refused = refused.expect_err("the token is not valid");
        said.push((refused.code, refused.message));
    }
    assert!(said.iter().all(|one| *one == said[0] && one.0 == 401), "{said:?}");
    let with_token = format!("/approvals/events?token={}", world.hub.token()?);
    let refused = Listener::open(world.hub.url(), &with_token, "", None).await.expect_err("not in a URL");
    assert_eq!(refused.kind.as_deref(), Some("http_401"));
    for (params, field) in [
        (json!({"name": "a b", "right": "read"}), "name"),
        (json!({"name": "a", "right": "all"}), "right"),
        (json!({"name": "a", "right": "read", "expires_secs": 0}), "expires_secs"),
    ] {
        assert_eq!(world.refused("token.new", params).await?.data["field"], field);
    }
    world.call("token.new", json!({"name": "twice", "right": "read"})).await?;
    let again = world.refused("token.new", json!({"name": "twice", "right": "decide"})).await?;
    assert_eq!(again.kind.as_deref(), Some("name_taken"));
    let unknown = world.refused("token.revoke", json!({"name": "nobody"})).await?;
    assert_eq!(unknown.kind.as_deref(), Some("token_not_found"));
    Ok(())
}

#[tokio::test]
async fn a_decision_names_the_token_that_made_it() -> anyhow::Result<()> {
    let world = scripted().await?;
    let session = world.create("one", json!({})).await?;
    world
        .chat(&session, &json!({"steps": [{"tool": "Bash", "input": {"command": "true"}}]}).to_string())
        .await?;
    let (_, approval) = world.asked(&session).await?;
    let decider = token(&world, json!({"name": "phone", "right": "decide"})).await?;
    let rpc = Rpc::new(world.hub.url(), &decider);
    let looser = json!({"approval_id": approval["id"], "approve": true, "mode": "acceptEdits"});
    let refused = rpc.call("loopback.respond", looser).await.expect_err("it cannot change the session");
    assert_eq!((&refused.data["type"], &refused.data["field"]), (&json!("forbidden"), &json!("mode")));
    rpc.call("loopback.respond", json!({"approval_id": approval["id"], "approve": true})).await?;
    let known = world.call("loopback.get", json!({"approval_id": approval["id"]})).await?;
    assert_eq!(known["approval"]["decision"]["by"], json!({"kind": "token", "name": "phone"}), "{known}");
    assert_eq!(known["approval"]["decision"]["right"], "token");
    world.ended(&session).await?;
    Ok(())
}
