//! `plexus migrate` with the real program: a machine moves to a database and back, with an agent that waits at the gate all the time.

use std::process::Output;

use anyhow::{Context as _, ensure};
use plexus_e2e::{Setup, World, script, text};
use plexus_testkit::postgres::Postgres;
use plexus_testkit::{binaries, clean_env, skip};
use serde_json::json;

fn touches(file: &str) -> String {
    script(
        &json!([{"say": "a word"}, {"tool": "Bash", "input": {"command": format!("touch {file}")}}, {"say": "done"}]),
    )
}

/// Runs `plexus migrate` on the data directory of a world.
fn migrate(world: &World, args: &[&str]) -> anyhow::Result<Output> {
    let mut migrate = std::process::Command::new(binaries::plexus()?);
    migrate.arg("migrate").args(args).arg("--data-dir").arg(world.hub.data_dir());
    migrate.env_clear().envs(clean_env(&world.home, &world.model.url()));
    Ok(migrate.output()?)
}

fn succeeds(world: &World, args: &[&str]) -> anyhow::Result<String> {
    let output = migrate(world, args)?;
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{shown}");
    ensure!(shown.contains("rows to the "), "{shown}");
    Ok(String::from_utf8(output.stdout)?)
}

fn refused(world: &World, args: &[&str], why: &str) -> anyhow::Result<()> {
    let output = migrate(world, args)?;
    let shown = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && shown.contains(why), "{shown}");
    Ok(())
}

/// Starts the hub, which must refuse.
async fn does_not_start(world: &mut World, why: &str) -> anyhow::Result<()> {
    let error = world.hub.restart().await.err().context("the hub started")?;
    ensure!(error.to_string().contains(why), "{error}");
    Ok(())
}

/// What a hub shows of a session that has ended, of the audit log, and of a search.
async fn seen(world: &World, session: &str) -> anyhow::Result<serde_json::Value> {
    let poll = world.ended(session).await?;
    let verified = world.call("audit.verify", json!({})).await?;
    assert_eq!(verified["type"], "ok", "{verified}");
    let entries = world.call("audit.list", json!({"session_id": session})).await?;
    let found = world.call("arbor.search", json!({"query": "touch first"})).await?;
    ensure!(found["found"].as_array().is_some_and(|found| !found.is_empty()), "{found}");
    Ok(json!({"events": poll["events"], "entries": entries["rows"], "found": found}))
}

#[tokio::test]
async fn a_machine_moves_to_a_database_and_back_with_its_running_agents() -> anyhow::Result<()> {
    let test = "a_machine_moves_to_a_database_and_back_with_its_running_agents";
    let Some(server) = Postgres::shared() else {
        skip(test, "PostgreSQL");
        return Ok(());
    };
    let url = server.url(&server.database()?);
    let mut world = Setup::scripted().world(test).await?.context("the scripted agent")?;
    let settings = world.hub.data_dir().join("plexus.toml");
    let in_file = std::fs::read_to_string(&settings)?;
    let ended = world.create("ended", json!({"prompt": touches("first")})).await?;
    let (_, approval) = world.asked(&ended).await?;
    world.allow(&approval).await?;
    let before = seen(&world, &ended).await?;
    let waiting = world.create("waiting", json!({"prompt": touches("second")})).await?;
    let (_, approval) = world.asked(&waiting).await?;

    let to_database = ["--to", &url, "--host", "laptop"];
    refused(&world, &to_database, "plexus down")?;
    world.hub.kill9().await?;
    let section = succeeds(&world, &to_database)?;
    does_not_start(&mut world, &format!("is in a PostgreSQL database (postgres://plexus@/{}", name(&url)))
        .await?;
    refused(&world, &to_database, "already in a database")?;
    std::fs::write(&settings, format!("{in_file}\n{section}"))?;
    world.hub.restart().await?;
    assert_eq!(seen(&world, &ended).await?, before);
    assert_eq!(world.asked(&waiting).await?.1["id"], approval["id"]);
    world.allow(&approval).await?;
    assert_eq!(world.ended(&waiting).await?["status"], "complete");
    assert!(world.file("second").exists());
    let hosts = world.call("host.list", json!({})).await?;
    assert_eq!(text(&hosts["hosts"][0]["name"]), "laptop", "{hosts}");

    let again = world.create("again", json!({"prompt": touches("third")})).await?;
    let (_, approval) = world.asked(&again).await?;
    let before = seen(&world, &ended).await?;
    world.hub.kill9().await?;
    succeeds(&world, &["--to", "sqlite"])?;
    does_not_start(&mut world, "plexus.db contains the state").await?;
    std::fs::write(&settings, in_file)?;
    world.hub.restart().await?;
    assert_eq!(seen(&world, &ended).await?, before);
    world.allow(&approval).await?;
    assert_eq!(world.ended(&again).await?["status"], "complete");
    assert!(world.file("third").exists());
    Ok(())
}

/// The name of the database in an address.
fn name(url: &str) -> &str {
    url.split(['/', '?']).nth(3).unwrap_or_default()
}
