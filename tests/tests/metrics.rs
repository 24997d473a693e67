//! Metrics: counters and gauges change with the events they describe, gauges are correct after a restart, and only the operator can
//! read them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail, ensure};
use plexus_e2e::{LIMIT, Setup, World, limit_files, script};
use plexus_testkit::rpc::{Listener, get};
use serde_json::json;
use tokio::time::Instant;

async fn world(config: &str) -> anyhow::Result<World> {
    Setup::scripted()
        .with_config(config)
        .world("metrics")
        .await?
        .context("the scripted agent is always available")
}

/// The samples of the page, by name with labels. Fails if the page is not valid.
pub(crate) async fn figures(world: &World) -> anyhow::Result<BTreeMap<String, f64>> {
    let page = get(world.hub.url(), "/metrics", &world.hub.token()?).await?;
    ensure!(page.ends_with("# EOF\n"), "it is not whole: {page}");
    let (mut helped, mut typed, mut samples) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    for line in page.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(family), Some(help)) => {
                ensure!(!help.is_empty() && helped.insert(family.to_owned()), "{line}");
            }
            (Some("#"), Some("TYPE"), Some(family), Some(kind)) => {
                ensure!(helped.contains(family), "{line} without help");
                ensure!(typed.insert(family.to_owned(), kind.to_owned()).is_none(), "{line} twice");
            }
            (Some("#"), Some("UNIT"), Some(family), Some(unit)) => ensure!(family.ends_with(unit), "{line}"),
            _ => {
                let (name, value) = line.rsplit_once(' ').context("a sample")?;
                let plain = name.split('{').next().unwrap_or(name);
                let known = ["", "_total", "_sum", "_count", "_bucket"].iter().any(|suffix| {
                    plain.strip_suffix(suffix).is_some_and(|family| typed.contains_key(family))
                });
                ensure!(known, "{line} belongs to no family");
                ensure!(samples.insert(name.to_owned(), value.parse()?).is_none(), "{line} twice");
            }
        }
    }
    ensure!(typed.len() == helped.len() && typed.len() >= 13, "{typed:?}");
    Ok(samples)
}

/// Waits until the figure has this value.
async fn becomes(world: &World, name: &str, wanted: f64) -> anyhow::Result<BTreeMap<String, f64>> {
    become_these(world, &[(name, wanted)]).await
}

/// Waits until all figures have these values. A reader of the store can see a commit shortly before it is counted.
async fn become_these(world: &World, wanted: &[(&str, f64)]) -> anyhow::Result<BTreeMap<String, f64>> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let all = figures(world).await?;
        let wrong: Vec<_> = wanted.iter().filter(|(name, value)| all.get(*name) != Some(value)).collect();
        if wrong.is_empty() {
            return Ok(all);
        }
        if Instant::now() > deadline {
            bail!("expected {wrong:?} in {all:#?}");
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn metrics_change_with_the_events_they_describe() -> anyhow::Result<()> {
    let mut world = world("").await?;
    let fresh = figures(&world).await?;
    for name in ["plexus_sessions", "plexus_children", "plexus_approvals_open", "plexus_held"] {
        assert_eq!(fresh[name], 0.0, "{name}");
    }
    assert_eq!(fresh[r#"plexus_turns_total{outcome="failed"}"#], 0.0, "it exists before the first failure");

    let steps = json!([{"tool": "Bash", "input": {"command": "true"}}, {"say": "done"}]);
    let session = world.create("asks", json!({"prompt": script(&steps)})).await?;
    world.asked(&session).await?;
    let asked = become_these(
        &world,
        &[
            ("plexus_sessions", 1.0),
            ("plexus_children", 1.0),
            ("plexus_approvals_open", 1.0),
            ("plexus_approvals_asked_total", 1.0),
            ("plexus_journal_lag_bytes", 0.0),
        ],
    )
    .await?;
    assert!(asked["plexus_store_commit_seconds_count"] > fresh["plexus_store_commit_seconds_count"]);
    assert!(asked["plexus_store_commit_seconds_sum"] > 0.0);

    // The next hub knows the gauges. Its counters start at zero.
    world.hub.kill9().await?;
    world.hub.restart().await?;
    world.door = Box::new(plexus_testkit::rpc::Rpc::new(world.hub.url(), &world.hub.token()?));
    let known = [
        ("plexus_sessions", 1.0),
        ("plexus_children", 1.0),
        ("plexus_approvals_open", 1.0),
        ("plexus_approvals_asked_total", 0.0),
    ];
    become_these(&world, &known).await?;

    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    world.ended(&session).await?;
    let done = [
        ("plexus_approvals_open", 0.0),
        ("plexus_approvals_oldest_seconds", 0.0),
        (r#"plexus_decision_seconds_count{answer="allowed"}"#, 1.0),
        (r#"plexus_turns_total{outcome="complete"}"#, 1.0),
    ];
    become_these(&world, &done).await?;

    let failing = world.create("fails", json!({"prompt": script(&json!([{"exit": 3}]))})).await?;
    world.ended(&failing).await?;
    let failed = [
        (r#"plexus_turns_total{outcome="failed"}"#, 1.0),
        ("plexus_sessions", 2.0),
        ("plexus_children", 1.0),
    ];
    become_these(&world, &failed).await?;
    Ok(())
}

#[tokio::test]
async fn changes_held_by_a_full_disk_are_counted() -> anyhow::Result<()> {
    let world = world("").await?;
    let steps = json!([{"say": "ready"}, {"wait_file": "go"}, {"say": "x".repeat(10_000)}]);
    let session = world.create("held", json!({"prompt": script(&steps)})).await?;
    world.poll_until(&session, |poll| !plexus_e2e::events(poll, "content").is_empty()).await?;
    assert_eq!(figures(&world).await?["plexus_store_failures_total"], 0.0);

    limit_files(world.hub.pid(), "1")?;
    std::fs::write(world.file("go"), "")?;
    let held = becomes(&world, "plexus_held", 1.0).await?;
    assert!(held["plexus_store_failures_total"] >= 1.0);
    let lag = held["plexus_journal_lag_bytes"];
    assert!(lag >= 10_000.0 && held["plexus_journal_lag_worst_bytes"] == lag, "{lag}");

    limit_files(world.hub.pid(), "unlimited")?;
    world.ended(&session).await?;
    becomes(&world, "plexus_held", 0.0).await?;
    becomes(&world, "plexus_journal_lag_bytes", 0.0).await?;
    Ok(())
}

#[tokio::test]
async fn listeners_are_counted_while_they_are_connected() -> anyhow::Result<()> {
    let world = world("").await?;
    let session = world.create("followed", json!({})).await?;
    let token = world.hub.token()?;
    let path = format!("/sessions/{session}/events");
    let listener = Listener::open(world.hub.url(), &path, &token, None).await?;
    becomes(&world, r#"plexus_listeners{stream="session"}"#, 1.0).await?;
    drop(listener);
    becomes(&world, r#"plexus_listeners{stream="session"}"#, 0.0).await?;
    Ok(())
}

#[tokio::test]
async fn only_the_operator_can_read_metrics() -> anyhow::Result<()> {
    let world = world("").await?;
    for token in ["", "not-a-token"] {
        let refused = get(world.hub.url(), "/metrics", token).await.expect_err("it is refused");
        assert_eq!(refused.kind.as_deref(), Some("http_401"), "{refused}");
    }
    let session = world.create("nosy", json!({})).await?;
    let configured = world.call("loopback.configure", json!({"session_id": session})).await?;
    let header = &configured["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"];
    let token = header.as_str().and_then(|header| header.strip_prefix("Bearer ")).context("its token")?;
    let refused = get(world.hub.url(), "/metrics", token).await.expect_err("it is refused");
    assert_eq!(refused.kind.as_deref(), Some("http_403"), "{refused}");
    Ok(())
}
