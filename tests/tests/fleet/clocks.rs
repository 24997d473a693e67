//! Hosts whose clocks are wrong: rules expire by the clock of the database, on every host at the same time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use plexus_e2e::script;
use serde_json::json;

use super::Fleet;

fn runs(command: &str) -> String {
    script(&json!([{"tool": "Bash", "input": {"command": command}}, {"say": "done"}]))
}

fn now() -> anyhow::Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

#[tokio::test]
async fn rules_expire_at_the_same_time_on_hosts_whose_clocks_differ() -> anyhow::Result<()> {
    let test = "rules_expire_at_the_same_time_on_hosts_whose_clocks_differ";
    let Some(mut fleet) = Fleet::start(test, &["one"]).await? else { return Ok(()) };
    for (host, clock) in [("ahead", "90"), ("behind", "-90")] {
        let mut setup = fleet.setup(host);
        setup.env.push(("PLEXUS_CLOCK_OFFSET_SECS".to_owned(), clock.to_owned()));
        fleet.hosts.push(setup.world(test).await?.context("the scripted agent")?);
    }
    let [one, ahead, behind] = &fleet.hosts[..] else { unreachable!() };
    let expires_at = now()? + 1;
    let rules = json!([
        {"rule": "Bash(touch *)", "effect": "allow", "expires_at": now()? + 80},
        {"rule": "Bash(mkdir *)", "effect": "allow", "expires_at": expires_at},
    ]);
    one.call("policy.add", json!({"rules": rules})).await?;

    // A rule that is in force is in force on a host whose clock is ahead.
    let session = ahead.create("ahead", json!({"prompt": runs("touch made")})).await?;
    assert_eq!(one.ended(&session).await?["status"], "complete");
    assert!(ahead.file("made").exists());
    // A rule that has expired has expired on a host whose clock is behind.
    while now()? <= expires_at {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let session = behind.create("behind", json!({"prompt": runs("mkdir made")})).await?;
    let (_, approval) = one.asked(&session).await?;
    assert_eq!(approval["input"]["command"], "mkdir made");
    let created = approval["created_at"].as_u64().context("a time")?;
    assert!(created.abs_diff(now()?) < 30, "{created}");
    Ok(())
}
