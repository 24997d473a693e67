//! A launcher with arguments, such as `npx`: it starts Claude Code as a child process and passes its streams on. Turns, approvals,
//! interrupts and stops work as with Claude Code alone, and no process of the launcher outlives its session.

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, Setup, World, is_alive, processes_of, until};
use plexus_testkit::model::Step;
use plexus_testkit::{executable, require_claude};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

/// Checks its own two arguments, then runs the program in the third one as a child.
const FORKS: &str = "#!/bin/sh\n[ \"$1|$2\" = '--x|two words' ] || exit 64\nclaude=$3\nshift 3\n\"$claude\" \"$@\"\ncode=$?\nexit $code\n";

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "a step"}))
}

/// A world whose agents are started by a launcher that forks, and the directory of that launcher.
async fn forking(
    version: &'static str,
    channel: Channel,
    test: &str,
) -> anyhow::Result<Option<(World, TempDir)>> {
    let Some(claude) = require_claude(version, test) else { return Ok(None) };
    let dir = TempDir::new()?;
    let launcher = dir.path().join("launch.sh");
    executable::write(&launcher, FORKS)?;
    let command = json!([launcher, "--x", "two words", claude]).to_string();
    let world = Setup::cli(version, channel, DoorKind::Rpc).start(command.into()).await?;
    Ok(Some((world, dir)))
}

/// The processes of a session whose command line contains the text.
fn with_text(session: &str, text: &str) -> Vec<u32> {
    let holds = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    };
    processes_of(session).into_iter().filter(holds).collect()
}

async fn a_launcher_that_forks(world: &World) -> anyhow::Result<()> {
    world.model.script("ASK", vec![bash("touch allowed"), Step::text("Done.")]);
    let endless = bash("touch running; until [ -e never ]; do sleep 0.1; done");
    world.model.script("ENDLESS", vec![endless.clone(), Step::text("Never.")]);
    world.model.script("AGAIN", vec![bash("touch again"), Step::text("Still here.")]);
    world.model.script("STOPPED", vec![endless, Step::text("Never.")]);
    let session = world.create("launched", json!({})).await?;

    world.chat(&session, "ASK first").await?;
    let (_, approval) = world.asked(&session).await?;
    assert!(!world.file("allowed").exists(), "a held call does not run");
    world.allow(&approval).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert!(world.file("allowed").exists());
    let launcher = with_text(&session, "two words").into_iter().find(|pid| comm(*pid) == "launch.sh");
    let launcher = launcher.context("the launcher waits for Claude Code")?;

    world.chat(&session, "ENDLESS work").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    until("the command", || world.file("running").exists()).await?;
    world.call("claudecode.interrupt", json!({"session_id": session})).await?;
    assert_eq!(world.ended(&session).await?["status"], "interrupted");
    world.chat(&session, "AGAIN").await?;
    let (_, approval) = world.asked(&session).await?;
    world.respond(&approval, json!({"approve": false, "message": "no"})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert!(!world.file("again").exists(), "a denied call never runs");
    assert!(is_alive(launcher), "an interrupt keeps the process");

    std::fs::remove_file(world.file("running"))?;
    world.chat(&session, "STOPPED work").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    until("the command", || world.file("running").exists()).await?;
    let tree = processes_of(&session);
    assert!(tree.len() > 3, "keeper, launcher, claude and shell: {tree:?}");
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    let left: Vec<_> = tree.into_iter().filter(|pid| is_alive(*pid)).collect();
    assert!(left.is_empty() && processes_of(&session).is_empty(), "{left:?}");
    assert_eq!(world.ended(&session).await?["status"], "interrupted");
    Ok(())
}

fn comm(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

#[tokio::test]
async fn a_launcher_that_forks_is_supervised_like_claude_code_197() -> anyhow::Result<()> {
    let test = "launcher::a_launcher_that_forks_is_supervised_like_claude_code_197";
    let Some((world, _dir)) = forking("2.1.197", Channel::Relay, test).await? else { return Ok(()) };
    a_launcher_that_forks(&world).await
}

#[tokio::test]
async fn a_launcher_that_forks_is_supervised_like_claude_code_325() -> anyhow::Result<()> {
    let test = "launcher::a_launcher_that_forks_is_supervised_like_claude_code_325";
    let Some((world, _dir)) = forking("2.1.325", Channel::Control, test).await? else { return Ok(()) };
    a_launcher_that_forks(&world).await
}

#[tokio::test]
async fn a_killed_launcher_leaves_no_agent_behind() -> anyhow::Result<()> {
    let test = "launcher::a_killed_launcher_leaves_no_agent_behind";
    let Some((world, _dir)) = forking("2.1.325", Channel::Control, test).await? else { return Ok(()) };
    world.model.script("ASK", vec![bash("touch allowed"), Step::text("Never.")]);
    world.model.script("NEXT", vec![Step::text("Here again.")]);
    let session = world.create("killed", json!({})).await?;
    world.chat(&session, "ASK").await?;
    let (_, approval) = world.asked(&session).await?;
    let launcher = with_text(&session, "two words").into_iter().find(|pid| comm(*pid) == "launch.sh");
    let launcher = Pid::from_raw(launcher.context("the launcher runs")?.cast_signed()).context("a pid")?;
    kill_process(launcher, Signal::KILL)?;
    assert_eq!(world.ended(&session).await?["status"], "failed");
    until("no process is left", || processes_of(&session).is_empty()).await?;
    let answered = world.respond(&approval, json!({"approve": true})).await?;
    assert_eq!((&answered["type"], &answered["status"]), (&json!("already_resolved"), &json!("withdrawn")));
    assert!(!world.file("allowed").exists());

    world.chat(&session, "NEXT").await?;
    assert_eq!(world.ended(&session).await?["status"], "complete", "the next prompt starts a new process");
    Ok(())
}

async fn env_changes_the_environment(version: &'static str, test: &str) -> anyhow::Result<()> {
    let Some(claude) = require_claude(version, test) else { return Ok(()) };
    let command = json!(["env", "-u", "FOO", "BAR=set by env", claude]).to_string();
    let mut setup = Setup::cli(version, Channel::Control, DoorKind::Rpc);
    setup.env = ["FOO", "BAR"].map(|name| (name.to_owned(), "of the hub".to_owned())).to_vec();
    let world = setup.start(command.into()).await?;
    world.model.script("SHOW", vec![bash("echo \"${FOO-unset}|$BAR\" > shown"), Step::text("Done.")]);
    let session = world.create("shows", json!({"policy": "allow_all"})).await?;
    world.chat(&session, "SHOW").await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(std::fs::read_to_string(world.file("shown"))?, "unset|set by env\n");
    Ok(())
}

#[tokio::test]
async fn env_can_be_the_launcher_197() -> anyhow::Result<()> {
    env_changes_the_environment("2.1.197", "launcher::env_can_be_the_launcher_197").await
}

#[tokio::test]
async fn env_can_be_the_launcher_325() -> anyhow::Result<()> {
    env_changes_the_environment("2.1.325", "launcher::env_can_be_the_launcher_325").await
}
