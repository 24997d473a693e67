//! A database that a hub cannot reach: nothing is allowed meanwhile, and agents can be stopped.

use anyhow::ensure;
use plexus_e2e::chaos::fleet::{Direction, State};
use plexus_e2e::{LIMIT, World, events, processes_of, script, until};
use plexus_testkit::binaries;
use serde_json::json;
use tokio::process::Command;

use super::long_outage::CutOff;
use super::trees::Parent;

/// How the hub loses the database: at once, and without noticing it.
const OUTAGES: [State; 2] = [State::Cut, State::Deaf(Direction::ToHub)];

/// Starts an agent that requests an approval.
async fn asks(world: &World, name: &str) -> anyhow::Result<String> {
    let prompt = script(&json!([{"tool": "Bash", "input": {"command": "touch made"}}, {"say": "done"}]));
    let session = world.create(name, json!({"prompt": prompt})).await?;
    world.asked(&session).await?;
    Ok(session)
}

async fn stop(world: &World, name: &str) -> anyhow::Result<String> {
    let mut command = Command::new(binaries::plexus()?);
    command.args(["stop", name, "--data-dir"]).arg(world.hub.data_dir());
    let run = command.env_clear().env("HOME", &world.home).output().await?;
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    ensure!(run.status.success(), "{said}");
    Ok(String::from_utf8_lossy(&run.stdout).into_owned() + &said)
}

#[tokio::test]
async fn agents_are_stopped_by_name_while_the_database_is_unreachable() -> anyhow::Result<()> {
    let test = "agents_are_stopped_by_name_while_the_database_is_unreachable";
    for outage in OUTAGES {
        let Some(cut_off) = CutOff::start(test).await? else { return Ok(()) };
        let (_, two) = cut_off.hosts();
        let (session, other) = (asks(two, "worker").await?, asks(two, "other").await?);
        cut_off.link.set(outage);
        let unknown = stop(two, "stranger").await.unwrap_err().to_string();
        assert!(unknown.contains("`worker`") && unknown.contains("`other`"), "{unknown}");
        assert_eq!(stop(two, "worker").await?.trim(), "stopped worker", "{outage:?}");
        assert!(processes_of(&session).is_empty() && !processes_of(&other).is_empty(), "{outage:?}");
        assert!(!two.file("made").exists());

        cut_off.link.set(State::Sound);
        let poll = two.ended(&session).await?;
        assert_eq!(poll["status"], "interrupted", "{poll:#}");
        assert_eq!(events(&poll, "approval_resolved")[0]["status"], "withdrawn");
    }
    Ok(())
}

#[tokio::test]
async fn a_tree_is_stopped_although_its_hub_cannot_write() -> anyhow::Result<()> {
    let test = "a_tree_is_stopped_although_its_hub_cannot_write";
    let Some(cut_off) = CutOff::start(test).await? else { return Ok(()) };
    let (one, _) = cut_off.hosts();
    let parent = Parent::create(one, json!({})).await?;
    let child = parent.child_on("one", one, "worker", &["touch made"]).await?;
    one.asked(&child).await?;
    // The hub can read, and finds that its last commit is lost.
    cut_off.sql("UPDATE plexus.hosts SET last_commit = 'another' WHERE name = 'one'")?;
    assert_eq!(stop(one, "lead").await?.trim(), "stopped lead");
    assert!(processes_of(&child).is_empty());
    assert!(!one.file("made").exists());
    Ok(())
}

#[tokio::test]
async fn a_renamed_session_is_stopped_by_its_name_and_one_below_another_only_by_id() -> anyhow::Result<()> {
    let test = "a_renamed_session_is_stopped_by_its_name_and_one_below_another_only_by_id";
    let Some(cut_off) = CutOff::start(test).await? else { return Ok(()) };
    let (one, two) = cut_off.hosts();
    let parent = Parent::create(one, json!({})).await?;
    let below = parent.child_on("two", one, "worker", &["touch made"]).await?;
    two.asked(&below).await?;
    let session = asks(two, "first").await?;
    two.call("claudecode.rename", json!({"name": "first", "new_name": "second"})).await?;
    cut_off.link.set(State::Cut);
    for unknown in ["worker", "first"] {
        let refused = stop(two, unknown).await.unwrap_err().to_string();
        assert!(refused.contains(&below) && refused.contains("`second`"), "{refused}");
    }
    assert_eq!(stop(two, "second").await?.trim(), "stopped second");
    assert!(processes_of(&session).is_empty() && !processes_of(&below).is_empty());
    assert_eq!(stop(two, &below).await?.trim(), format!("stopped {below}"));
    assert!(processes_of(&below).is_empty());
    Ok(())
}

#[tokio::test]
async fn plexus_down_ends_agents_while_the_database_is_unreachable() -> anyhow::Result<()> {
    let test = "plexus_down_ends_agents_while_the_database_is_unreachable";
    let Some(mut cut_off) = CutOff::start(test).await? else { return Ok(()) };
    let session = asks(cut_off.hosts().1, "worker").await?;
    cut_off.link.set(State::Cut);
    cut_off.fleet.hosts[1].hub.down(LIMIT).await?;
    until("its processes have ended", || processes_of(&session).is_empty()).await?;

    cut_off.link.set(State::Sound);
    cut_off.fleet.hosts[1].hub.restart().await?;
    let poll = cut_off.hosts().1.ended(&session).await?;
    // The agent may have had the time to say that the call was interrupted.
    assert!(events(&poll, "tool_result").iter().all(|result| result["is_error"] == true), "{poll:#}");
    assert!(!cut_off.hosts().1.file("made").exists());
    Ok(())
}

#[tokio::test]
async fn plexus_down_ends_agents_without_a_hub_and_without_the_database() -> anyhow::Result<()> {
    let test = "plexus_down_ends_agents_without_a_hub_and_without_the_database";
    let Some(mut cut_off) = CutOff::start(test).await? else { return Ok(()) };
    let session = asks(cut_off.hosts().1, "worker").await?;
    cut_off.fleet.hosts[1].hub.kill9().await?;
    cut_off.link.set(State::Cut);
    assert!(!processes_of(&session).is_empty());
    cut_off.fleet.hosts[1].hub.down(LIMIT).await?;
    assert!(processes_of(&session).is_empty());

    cut_off.link.set(State::Sound);
    cut_off.fleet.hosts[1].hub.restart().await?;
    let poll = cut_off.hosts().1.ended(&session).await?;
    assert!(events(&poll, "tool_result").iter().all(|result| result["is_error"] == true), "{poll:#}");
    assert!(!cut_off.hosts().1.file("made").exists());
    Ok(())
}
