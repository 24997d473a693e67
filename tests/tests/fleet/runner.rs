//! A host with a role of its own, from `plexus host add`: its hub runs agents, and is answered, stopped and admitted again on the hub of the owner.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, ensure};
use plexus_e2e::{LIMIT, Setup, World, processes_of, script, text};
use plexus_testkit::binaries;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::Fleet;
use super::trees::Parent;

fn touches(file: &str) -> String {
    script(&json!([{"tool": "Bash", "input": {"command": format!("touch {file}")}}, {"say": "done"}]))
}

/// Runs `plexus host` on the hub of this host.
async fn host_command(world: &World, args: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(binaries::plexus()?);
    command.arg("host").args(args).arg("--data-dir").arg(world.hub.data_dir());
    let run = command.env_clear().env("HOME", &world.home).output().await?;
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    ensure!(run.status.success(), "plexus host {args:?}: {said}");
    Ok(String::from_utf8_lossy(&run.stdout).into_owned() + &said)
}

/// Adds a host on the hub of the owner, and returns what its `plexus.toml` contains.
async fn add(owner: &World, dir: &TempDir, args: &[&str]) -> anyhow::Result<String> {
    let out = dir.path().join(args.join("-"));
    let args = [&["add"], args, &["--out", out.to_str().context("its path")?]].concat();
    let said = host_command(owner, &args).await?;
    let password = out.join("store-password");
    let mode = password.metadata()?.permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let secret = std::fs::read_to_string(&password)?;
    assert!(secret.trim().len() >= 32 && !said.contains(secret.trim()));
    for log in [owner.hub.stderr(), owner.call("audit.list", json!({})).await?.to_string()] {
        assert!(!log.contains(secret.trim()), "the password is in a log");
    }
    Ok(std::fs::read_to_string(out.join("plexus.toml"))?)
}

/// The owner's host `one` and the runner `two`.
async fn start(test: &str, dir: &TempDir) -> anyhow::Result<Option<(World, World)>> {
    let Some(mut fleet) = Fleet::start(test, &["one"]).await? else { return Ok(None) };
    let one = fleet.hosts.pop().context("the owner")?;
    let settings = add(&one, dir, &["two"]).await?;
    let two = Setup::scripted().with_config(&settings).world(test).await?.context("the scripted agent")?;
    Ok(Some((one, two)))
}

async fn create_on_two(one: &World, two: &World, name: &str, prompt: String) -> anyhow::Result<String> {
    let params = json!({"name": name, "working_dir": two.work, "host": "two", "prompt": prompt});
    Ok(text(&one.call("claudecode.create", params).await?["id"]))
}

/// Waits for a budget approval.
async fn budget_approval(world: &World) -> anyhow::Result<Value> {
    let asked = async {
        loop {
            let open = world.call("loopback.pending", json!({})).await?["approvals"].clone();
            if let Some(found) = open.as_array().into_iter().flatten().find(|row| row["kind"] == "budget") {
                return anyhow::Ok(found.clone());
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, asked).await.context("a budget approval")?
}

#[tokio::test]
async fn an_approval_of_a_runner_is_answered_on_the_hub_of_the_owner() -> anyhow::Result<()> {
    let (test, dir) = ("an_approval_of_a_runner_is_answered_on_the_hub_of_the_owner", TempDir::new()?);
    let Some((one, mut two)) = start(test, &dir).await? else { return Ok(()) };
    let session = create_on_two(&one, &two, "worker", touches("allowed")).await?;
    let (_, approval) = one.asked(&session).await?;
    assert_eq!(approval["host"], "two", "{approval:#}");
    one.allow(&approval).await?;
    let poll = one.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}\n{}", two.hub.stderr());
    assert!(two.file("allowed").exists());

    // The next hub of the runner continues with an agent that waits.
    one.chat(&session, &touches("denied")).await?;
    let (_, approval) = one.asked(&session).await?;
    two.hub.kill9().await?;
    two.hub.restart().await?;
    one.respond(&approval, json!({"approve": false})).await?;
    assert_eq!(one.ended(&session).await?["status"], "complete", "{}", two.hub.stderr());
    assert!(!two.file("denied").exists());

    let log = two.hub.stderr();
    assert!(!log.contains("42501"), "the database has refused something that the hub needs: {log}");

    // The operator of the runner decides for its own sessions only.
    let local = two.create("local", json!({"prompt": touches("local")})).await?;
    let (_, approval) = two.asked(&local).await?;
    two.allow(&approval).await?;
    assert_eq!(two.ended(&local).await?["status"], "complete", "{}", two.hub.stderr());
    let other = one.create("other", json!({"prompt": touches("other")})).await?;
    let (_, approval) = one.asked(&other).await?;
    assert_eq!(two.call("loopback.pending", json!({})).await?["approvals"], json!([]));
    let answer = json!({"approval_id": approval["id"], "approve": true});
    two.refused("loopback.respond", answer).await?;
    two.refused("claudecode.stop", json!({"session_id": other})).await?;
    let rule = json!({"rules": [{"rule": "Bash(touch *)", "effect": "allow"}]});
    two.refused("policy.add", rule).await?;
    two.refused("host.add", json!({"host": "three"})).await?;
    two.refused("host.lose", json!({"host": "one", "force": true})).await?;
    one.allow(&approval).await?;
    assert_eq!(one.ended(&other).await?["status"], "complete", "{}", one.hub.stderr());
    let verified = one.call("audit.verify", json!({})).await?;
    assert_eq!(verified["type"], "ok", "{verified}");

    // A host that has never joined is removed as well.
    let printed = host_command(&one, &["add", "three"]).await?;
    assert!(
        printed.contains("[store]\nurl = \"postgres://") && printed.contains("host = \"three\""),
        "{printed}"
    );
    let again = host_command(&one, &["add", "three"]).await.err().context("it was added")?;
    assert!(again.to_string().contains("use --renew"), "{again}");
    host_command(&one, &["rm", "three", "--yes"]).await?;
    host_command(&one, &["add", "three"]).await?;
    one.call("claudecode.delete", json!({"session_id": session})).await?;
    Ok(())
}

#[tokio::test]
async fn a_parent_of_the_owner_decides_for_its_child_on_a_runner_within_its_budget() -> anyhow::Result<()> {
    let test = "a_parent_of_the_owner_decides_for_its_child_on_a_runner_within_its_budget";
    let dir = TempDir::new()?;
    let Some((one, two)) = start(test, &dir).await? else { return Ok(()) };
    let scope = json!({"approve_scope": ["Bash(touch:*)"], "budget": {"tool_calls": 1}});
    let parent = Parent::create(&one, scope).await?;
    let cursor = parent.rpc.call("loopback.wait", json!({})).await?["cursor"].clone();
    let child = parent.child_on("two", &one, "worker", &["touch first", "touch second"]).await?;
    let approval = parent.asked(cursor).await.with_context(|| two.hub.stderr())?;
    assert_eq!(approval["session_id"], json!(child), "{approval:#}");
    parent.rpc.call("loopback.respond", json!({"approval_id": approval["id"], "approve": true})).await?;

    // The second call needs more budget, which the operator grants to the parent.
    let budget = budget_approval(&one).await.with_context(|| two.hub.stderr())?;
    assert_eq!((&budget["kind"], &budget["session_id"]), (&json!("budget"), &json!(parent.id)), "{budget:#}");
    one.allow(&budget).await?;
    let (_, approval) = one.asked(&child).await.with_context(|| two.hub.stderr())?;
    one.allow(&approval).await?;
    let poll = one.ended(&child).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}\n{}", two.hub.stderr());
    assert!(one.file("first").exists() && one.file("second").exists());
    let session: Value = one.call("claudecode.get", json!({"session_id": parent.id})).await?;
    assert_eq!(session["session"]["budget"]["tool_calls"]["used"], 2, "{session:#}");

    let log = two.hub.stderr();
    assert!(!log.contains("42501"), "the database has refused something that the hub needs: {log}");

    one.call("claudecode.stop", json!({"session_id": parent.id})).await?;
    one.call("claudecode.delete", json!({"session_id": parent.id})).await?;
    assert!(processes_of(&child).is_empty());
    Ok(())
}

#[tokio::test]
async fn a_runner_that_was_declared_lost_stops_and_returns_only_if_it_is_admitted_again() -> anyhow::Result<()>
{
    let test = "a_runner_that_was_declared_lost_stops_and_returns_only_if_it_is_admitted_again";
    let dir = TempDir::new()?;
    let Some((one, mut two)) = start(test, &dir).await? else { return Ok(()) };
    let session = create_on_two(&one, &two, "worker", touches("made")).await?;
    one.asked(&session).await?;
    host_command(&one, &["lost", "two", "--force", "--yes"]).await?;
    let ended = tokio::time::timeout(LIMIT, two.hub.wait()).await.context("the hub stops")??;
    assert_eq!(ended.code(), Some(12), "{}", two.hub.stderr());
    assert!(processes_of(&session).is_empty() && !two.file("made").exists());
    let refused = two.hub.restart().await.err().context("it was stopped")?;
    assert!(refused.to_string().contains("host add --renew two"), "{refused}");

    add(&one, &dir, &["--renew", "two"]).await?;
    two.hub.restart().await?;
    let again = create_on_two(&one, &two, "again", touches("again")).await?;
    let (_, approval) = one.asked(&again).await?;
    one.allow(&approval).await?;
    assert_eq!(one.ended(&again).await?["status"], "complete", "{}", two.hub.stderr());
    let log = one.call("audit.list", json!({"kind": "host"})).await?.to_string();
    for status in ["added", "lost", "renewed", "rejoined"] {
        assert!(log.contains(&format!("\"status\":\"{status}\"")), "{status}: {log}");
    }
    assert_eq!(text(&one.call("audit.verify", json!({})).await?["type"]), "ok");
    Ok(())
}
