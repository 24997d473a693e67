//! Backup and restore as docs/fleet.md describes them, and the number of connections that it states.

use anyhow::Context as _;
use plexus_e2e::World;
use plexus_testkit::postgres::Postgres;
use plexus_testkit::skip;
use serde_json::{Value, json};

use super::Fleet;

/// The most connections of a hub.
const CONNECTIONS: u32 = 10;

async fn world(server: &Postgres, database: &str) -> anyhow::Result<World> {
    let fleet = Fleet { hosts: Vec::new(), url: server.url(database) };
    fleet.setup("one").world("backup").await?.context("the scripted agent")
}

async fn names(world: &World) -> anyhow::Result<Vec<Value>> {
    let listed = world.call("claudecode.list", json!({})).await?;
    Ok(listed["sessions"].as_array().into_iter().flatten().map(|session| session["name"].clone()).collect())
}

#[tokio::test]
async fn a_restored_database_is_used_only_after_the_loss_was_accepted() -> anyhow::Result<()> {
    let test = "a_restored_database_is_used_only_after_the_loss_was_accepted";
    let Some(server) = Postgres::shared() else {
        skip(test, "PostgreSQL");
        return Ok(());
    };
    let database = server.database()?;
    let mut one = world(server, &database).await?;
    one.create("before", json!({})).await?;
    let dump = one.file("plexus.dump");
    server.dump(&database, &dump)?;
    one.create("after", json!({})).await?;
    one.hub.down(plexus_e2e::LIMIT).await?;
    for sql in ["DROP DATABASE", "CREATE DATABASE"] {
        server.psql("postgres", &format!("{sql} {database}"))?;
    }
    server.restore(&dump, &database)?;

    one.hub.restart().await?;
    assert_eq!(names(&one).await?, ["before"]);
    let refused = one.refused("claudecode.create", json!({"name": "x", "working_dir": one.work})).await?;
    assert!(refused.to_string().contains("plexus host accept-rollback"), "{refused}");
    let hosts = one.call("host.list", json!({})).await?;
    assert_eq!(hosts["hosts"][0]["lost_commits"], true, "{hosts}");

    one.call("host.accept_rollback", json!({})).await?;
    one.hub.wait().await?;
    one.hub.restart().await?;
    one.create("again", json!({})).await?;
    assert_eq!(names(&one).await?, ["before", "again"]);
    let listed = one.call("audit.list", json!({"kind": "host"})).await?;
    let mut rows = listed["rows"].as_array().into_iter().flatten();
    assert!(rows.any(|row| row["entry"]["status"] == "rollback_accepted"), "{listed:#}");
    assert_eq!(one.call("audit.verify", json!({})).await?["type"], "ok");
    Ok(())
}

#[tokio::test]
async fn a_hub_uses_as_many_connections_as_documented() -> anyhow::Result<()> {
    let Some(server) = Postgres::shared() else {
        skip("a_hub_uses_as_many_connections_as_documented", "PostgreSQL");
        return Ok(());
    };
    let database = server.database()?;
    let one = world(server, &database).await?;
    let count = || -> anyhow::Result<u32> {
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
        Ok(server.psql("postgres", &sql)?.parse()?)
    };
    let idle = count()?;
    // Reads that take turns at the connections.
    let reads = (0..200).map(|_| one.call("claudecode.list", json!({})));
    futures::future::try_join_all(reads).await?;
    one.create("worker", json!({})).await?;
    let busy = count()?;
    assert!(idle <= 4 && idle < busy && busy <= CONNECTIONS, "{idle} at the start, {busy} when busy");
    let page = include_str!("../../../docs/fleet.md");
    assert!(page.contains("at most ten. A hub that has just started has three or four"));
    Ok(())
}
