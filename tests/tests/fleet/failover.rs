//! A standby takes over from the database. With all commits, every hub continues; without the last ones, the hubs that miss commits hold all changes until
//! the loss is accepted.

use std::time::Duration;

use anyhow::Context as _;
use plexus_e2e::chaos::fleet::Link;
use plexus_e2e::{LIMIT, Setup, World, script, until};
use plexus_testkit::postgres::Postgres;
use plexus_testkit::skip;
use serde_json::{Value, json};

/// Two hubs, with links that can be switched to another server.
struct Replicated {
    server: Postgres,
    links: Vec<Link>,
    hosts: Vec<World>,
}

impl Replicated {
    async fn start(test: &str) -> anyhow::Result<Option<Self>> {
        let Some(server) = Postgres::own()? else {
            skip(test, "PostgreSQL");
            return Ok(None);
        };
        let database = server.database()?;
        let (mut links, mut hosts) = (Vec::new(), Vec::new());
        for host in ["one", "two"] {
            let link = Link::start(server.socket())?;
            let config = format!("[store]\nurl = \"{}\"\nhost = \"{host}\"", link.url(&database));
            hosts.push(
                Setup::scripted().with_config(&config).world(test).await?.context("the scripted agent")?,
            );
            links.push(link);
        }
        Ok(Some(Self { server, links, hosts }))
    }

    /// Kills the server, and lets a standby take over.
    fn fail_over_to(&self, standby: &Postgres) -> anyhow::Result<()> {
        self.server.kill9()?;
        standby.promote()?;
        self.links.iter().for_each(|link| link.switch_to(&standby.socket()));
        Ok(())
    }
}

fn touches(file: &str) -> String {
    script(&json!([{"tool": "Bash", "input": {"command": format!("touch {file}")}}, {"say": "done"}]))
}

/// Calls a method until its result fits: after a failover the first calls may fail.
async fn until_called(
    world: &World,
    method: &str,
    params: Value,
    fits: impl Fn(&Result<Value, String>) -> bool,
) -> anyhow::Result<Value> {
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        let result = world.door.call(method, params.clone()).await.map_err(|error| error.to_string());
        if fits(&result) {
            return Ok(result.unwrap_or_else(Value::from));
        }
        anyhow::ensure!(
            tokio::time::Instant::now() < deadline,
            "{method}: {result:?}\n{}",
            world.hub.stderr()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn hubs_continue_with_a_standby_that_has_all_commits() -> anyhow::Result<()> {
    let test = "hubs_continue_with_a_standby_that_has_all_commits";
    let Some(replicated) = Replicated::start(test).await? else { return Ok(()) };
    let [one, two] = &replicated.hosts[..] else { unreachable!() };
    let standby = replicated.server.standby()?;
    replicated.server.wait_for_standby()?;
    let session = two.create("worker", json!({"prompt": touches("made")})).await?;
    let (_, approval) = one.asked(&session).await?;
    replicated.fail_over_to(&standby)?;

    let allow = json!({"approval_id": approval["id"], "approve": true});
    until_called(one, "loopback.respond", allow, Result::is_ok).await?;
    until("the call runs", || two.file("made").exists()).await?;
    let verified = until_called(one, "audit.verify", json!({}), Result::is_ok).await?;
    assert_eq!(verified["type"], "ok", "{verified}");
    Ok(())
}

#[tokio::test]
async fn hubs_hold_all_changes_if_a_standby_has_lost_their_commits() -> anyhow::Result<()> {
    let test = "hubs_hold_all_changes_if_a_standby_has_lost_their_commits";
    let Some(mut replicated) = Replicated::start(test).await? else { return Ok(()) };
    let [one, two] = &replicated.hosts[..] else { unreachable!() };
    let session = two.create("worker", json!({"prompt": touches("first")})).await?;
    let (_, approval) = one.asked(&session).await?;
    let standby = replicated.server.standby()?;
    standby.disconnect_standby()?;
    one.allow(&approval).await?;
    assert_eq!(one.ended(&session).await?["status"], "complete");
    replicated.fail_over_to(&standby)?;

    // The hub has delivered an answer that the database does not have.
    let prompt = json!({"session_id": session, "prompt": touches("second")});
    let is_held = |result: &Result<Value, String>| {
        result.as_ref().is_err_and(|error| error.contains("plexus host accept-rollback"))
    };
    until_called(two, "claudecode.chat_async", prompt.clone(), is_held).await?;
    assert!(!two.file("second").exists());
    let hosts = two.call("host.list", json!({})).await?;
    assert_eq!(hosts["hosts"][1]["lost_commits"], json!(true), "{hosts:#}");

    let two = &mut replicated.hosts[1];
    two.call("host.accept_rollback", json!({})).await?;
    tokio::time::timeout(LIMIT, two.hub.wait()).await.context("the hub stops")??;
    two.hub.restart().await?;
    let audited = two.call("audit.list", json!({"kind": "host"})).await?;
    let mut rows = audited["rows"].as_array().into_iter().flatten();
    assert!(rows.any(|row| row["entry"]["status"] == "rollback_accepted"), "{audited:#}");
    let worker = two.create("another", json!({"prompt": touches("third"), "policy": "allow_all"})).await?;
    assert_eq!(two.ended(&worker).await?["status"], "complete");
    assert!(two.file("third").exists());
    Ok(())
}
