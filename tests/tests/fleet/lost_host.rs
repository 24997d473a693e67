//! A host that was declared lost: nothing of it goes on, and if its machine comes back, its agents are ended.

use anyhow::Context as _;
use plexus_e2e::{LIMIT, World, events, processes_of, script, text, until};
use serde_json::json;

use super::Fleet;

fn touches(file: &str) -> String {
    script(&json!([{"tool": "Bash", "input": {"command": format!("touch {file}")}}, {"say": "done"}]))
}

/// Waits until a host has this state.
pub(super) async fn host_is(world: &World, host: &str, state: &str) -> anyhow::Result<()> {
    let reached = async {
        loop {
            let hosts = world.call("host.list", json!({})).await?["hosts"].clone();
            let mut all = hosts.as_array().into_iter().flatten();
            if all.any(|row| row["name"] == host && row["state"] == state) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(LIMIT, reached).await.with_context(|| format!("{host} is {state}"))?
}

async fn audited(world: &World, status: &str) -> anyhow::Result<bool> {
    let listed = world.call("audit.list", json!({"kind": "host"})).await?;
    Ok(listed["rows"].as_array().into_iter().flatten().any(|row| row["entry"]["status"] == status))
}

#[tokio::test]
async fn a_lost_host_that_comes_back_ends_its_agents_and_takes_part_again() -> anyhow::Result<()> {
    let test = "a_lost_host_that_comes_back_ends_its_agents_and_takes_part_again";
    let Some(mut fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, two] = &mut fleet.hosts[..] else { unreachable!() };
    let session = two.create("worker", json!({"prompt": touches("made")})).await?;
    let (_, approval) = one.asked(&session).await?;
    let connected = one.refused("host.lose", json!({"host": "two"})).await?;
    assert!(connected.to_string().contains("is connected"), "{connected}");

    two.hub.kill9().await?;
    host_is(one, "two", "unreachable").await?;
    assert!(!processes_of(&session).is_empty(), "its agent waits at the gate");
    one.call("host.lose", json!({"host": "two"})).await?;
    let poll = one.ended(&session).await?;
    assert_eq!(poll["status"], "failed", "{poll:#}");
    assert_eq!(events(&poll, "error")[0]["reason"], "host_lost", "{poll:#}");
    let answered = one.respond(&approval, json!({"approve": true})).await?;
    assert_eq!(answered["type"], "already_resolved", "{answered}");

    // The machine is back.
    two.hub.restart().await?;
    until("the agent ends", || processes_of(&session).is_empty()).await?;
    assert!(!two.file("made").exists());
    assert!(audited(one, "lost").await? && audited(one, "rejoined").await?);
    one.chat(&session, &touches("again")).await?;
    let (_, approval) = one.asked(&session).await?;
    one.allow(&approval).await?;
    assert_eq!(one.ended(&session).await?["status"], "complete");
    assert!(two.file("again").exists());
    assert_eq!(text(&one.call("audit.verify", json!({})).await?["type"]), "ok");
    Ok(())
}

#[tokio::test]
async fn a_running_hub_whose_host_is_declared_lost_ends_its_agents_and_stops() -> anyhow::Result<()> {
    let test = "a_running_hub_whose_host_is_declared_lost_ends_its_agents_and_stops";
    let Some(mut fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, two] = &mut fleet.hosts[..] else { unreachable!() };
    let session = two.create("worker", json!({"prompt": touches("made")})).await?;
    one.asked(&session).await?;
    one.call("host.lose", json!({"host": "two", "force": true})).await?;
    let ended = tokio::time::timeout(LIMIT, two.hub.wait()).await.context("the hub stops")??;
    assert_eq!(ended.code(), Some(12), "{}", two.hub.stderr());
    assert!(two.hub.stderr().contains("declared lost"), "{}", two.hub.stderr());
    assert!(processes_of(&session).is_empty() && !two.file("made").exists());

    // Its sessions are deleted on another host.
    one.call("claudecode.delete", json!({"session_id": session})).await?;
    assert_eq!(one.call("claudecode.list", json!({})).await?["sessions"], json!([]));
    one.call("host.remove", json!({"host": "two"})).await?;
    let hosts = one.call("host.list", json!({})).await?;
    assert_eq!(hosts["hosts"].as_array().map(Vec::len), Some(1), "{hosts}");
    Ok(())
}

#[tokio::test]
async fn a_draining_host_gets_no_new_sessions() -> anyhow::Result<()> {
    let Some(fleet) = Fleet::start("a_draining_host_gets_no_new_sessions", &["one", "two"]).await? else {
        return Ok(());
    };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    let kept = two.create("kept", json!({"prompt": touches("made")})).await?;
    one.call("host.drain", json!({"host": "two"})).await?;
    for world in [one, two] {
        let params = json!({"name": "new", "working_dir": two.work, "host": "two"});
        let refused = world.refused("claudecode.create", params).await?;
        assert!(refused.to_string().contains("draining"), "{refused}");
    }
    // What it has goes on.
    let (_, approval) = one.asked(&kept).await?;
    one.allow(&approval).await?;
    assert_eq!(one.ended(&kept).await?["status"], "complete");
    let in_use = one.refused("host.remove", json!({"host": "two"})).await?;
    assert!(in_use.to_string().contains("has sessions"), "{in_use}");
    one.call("host.undrain", json!({"host": "two"})).await?;
    two.create("new", json!({})).await?;
    Ok(())
}
