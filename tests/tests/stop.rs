//! `stop` ends every process of a session, including processes that left the process group, and no other process.

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, Setup, World, is_alive, outside, processes_of, until};
use plexus_testkit::model::Step;
use serde_json::json;

/// Starts a process in a session of its own, without the agent's environment, that ignores every signal it can ignore.
/// Then continues in the foreground.
const LEAVES_A_STRAGGLER: &str = "env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" HUP INT TERM; echo $$ > straggler; \
                                  while :; do sleep 1; done' & touch begun; until [ -e never ]; do sleep 0.1; done";

/// One round: a turn whose command starts a straggler, and a stop during that turn.
async fn stop_leaves_no_process(world: &World, session: &str) -> anyhow::Result<()> {
    for name in ["straggler", "begun"] {
        let _ = std::fs::remove_file(world.file(name));
    }
    world.chat(session, "LEAVE something behind").await?;
    let pid = || std::fs::read_to_string(world.file("straggler")).ok()?.trim().parse::<u32>().ok();
    until("the straggler", || pid().is_some() && world.file("begun").exists()).await?;
    let straggler = outside(session, pid().context("its pid")?).context("it runs")?;
    let mut tree = processes_of(session);
    tree.push(straggler);
    // Other commands of the shell may start and exit at any time.
    assert!(tree.len() > 3 && is_alive(straggler), "keeper, claude, shell and straggler: {tree:?}");

    world.call("claudecode.stop", json!({"session_id": session})).await?;
    let stat = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let left: Vec<_> = tree.into_iter().filter(|pid| is_alive(*pid)).map(stat).collect();
    assert!(left.is_empty() && processes_of(session).is_empty(), "{left:?}");
    let poll = world.ended(session).await?;
    assert_eq!(poll["status"], "interrupted", "{poll:#}");
    Ok(())
}

async fn rounds(version: &'static str, channel: Channel, rounds: usize, test: &str) -> anyhow::Result<()> {
    let setup = Setup::cli(version, channel, DoorKind::Rpc);
    let Some(world) = setup.world(test).await? else { return Ok(()) };
    let bash = |command: &str| Step::tool("Bash", json!({"command": command, "description": "a step"}));
    world.model.script("LEAVE", vec![bash(LEAVES_A_STRAGGLER), Step::text("never")]);
    let session = world.create("messy", json!({"policy": "allow_all"})).await?;
    // This process does not belong to the session. It must survive every stop.
    let mut stranger = std::process::Command::new("sleep").arg("1000").env_clear().spawn()?;
    for round in 0..rounds {
        stop_leaves_no_process(&world, &session).await.with_context(|| format!("round {round}"))?;
    }
    assert!(is_alive(stranger.id()), "another process was ended");
    stranger.kill()?;
    stranger.wait()?;
    Ok(())
}

#[tokio::test]
async fn stop_ends_processes_outside_the_process_group_197() -> anyhow::Result<()> {
    rounds("2.1.197", Channel::Control, 3, "stop_ends_processes_outside_the_process_group_197").await
}

#[tokio::test]
async fn stop_ends_processes_outside_the_process_group_325() -> anyhow::Result<()> {
    rounds("2.1.325", Channel::Relay, 3, "stop_ends_processes_outside_the_process_group_325").await
}

#[tokio::test]
#[ignore = "slow: fifty stops"]
async fn stop_ends_processes_outside_the_process_group_fifty_times_197() -> anyhow::Result<()> {
    rounds("2.1.197", Channel::Relay, 50, "stop_ends_processes_outside_the_process_group_fifty_times_197")
        .await
}

#[tokio::test]
#[ignore = "slow: fifty stops"]
async fn stop_ends_processes_outside_the_process_group_fifty_times_325() -> anyhow::Result<()> {
    rounds("2.1.325", Channel::Control, 50, "stop_ends_processes_outside_the_process_group_fifty_times_325")
        .await
}

#[tokio::test]
async fn a_stopped_session_continues_with_the_next_prompt() -> anyhow::Result<()> {
    let setup = Setup::cli("2.1.325", Channel::Control, DoorKind::Rpc);
    let Some(world) = setup.world("a_stopped_session_continues_with_the_next_prompt").await? else {
        return Ok(());
    };
    world.model.script("FIRST", vec![Step::tool("Bash", json!({"command": "touch a"})), Step::text("never")]);
    world.model.script("SECOND", vec![Step::text("Here again.")]);
    let session = world.create("stopped", json!({})).await?;
    world.chat(&session, "FIRST").await?;
    world.asked(&session).await?;
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    let poll = world.ended(&session).await?;
    let end = poll["events"].as_array().and_then(|events| events.last()).context("an end")?;
    assert_eq!(end["event"]["message"], "the session was stopped", "{poll:#}");
    assert_eq!(poll["pending_approvals"], json!([]));

    world.chat(&session, "SECOND").await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    let asked = world.model.requests_for("SECOND").pop().unwrap_or_default();
    assert!(
        asked["messages"].to_string().contains("FIRST"),
        "the conversation contains the earlier turn: {asked}"
    );
    assert!(!world.file("a").exists());
    Ok(())
}
