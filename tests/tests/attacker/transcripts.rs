//! Transcripts of Claude Code are in the home directory, where every agent can write. Their size does not affect the hub, and a link in
//! their place leaks nothing.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::symlink;

use anyhow::Context as _;
use plexus_e2e::{Setup, World};
use serde_json::json;

/// The size in the bug report.
const HUGE: u64 = 1_500_000_000;
/// The largest memory of the hub in kilobytes. It uses about a tenth of this.
const MAX_KB: u64 = 300_000;

/// The peak memory of a hub in kilobytes.
fn peak_kb(world: &World) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.hub.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

async fn turn(world: &World, session: &str) -> anyhow::Result<()> {
    world.chat(session, r#"{"steps": [{"say": "done"}]}"#).await?;
    let poll = world.ended(session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    Ok(())
}

#[tokio::test]
async fn a_huge_transcript_uses_no_memory_of_the_hub() -> anyhow::Result<()> {
    let world = Setup::scripted()
        .world("a huge transcript")
        .await?
        .context("the scripted agent is always available")?;
    let project = world.home.join(".claude/projects/work");
    std::fs::create_dir_all(&project)?;
    let session = world.create("resumed", json!({})).await?;
    // A sparse file of zeros: one endless line that uses no disk space.
    File::create(project.join(format!("{session}.jsonl")))?.set_len(HUGE)?;
    turn(&world, &session).await?;
    world.call("claudecode.stop", json!({"session_id": session})).await?;

    // The cost after the zeros is still found.
    let other = world.create("ordinary", json!({})).await?;
    let mut transcript = File::create(project.join(format!("{other}.jsonl")))?;
    transcript.seek(SeekFrom::Start(HUGE))?;
    transcript.write_all(b"\n{\"type\":\"cost-state\",\"totalCostUSD\":1.5}\n")?;
    turn(&world, &other).await?;
    let peak = peak_kb(&world)?;
    assert!(peak < MAX_KB, "the hub has used {peak} kB");
    Ok(())
}

#[tokio::test]
async fn a_link_in_place_of_the_transcripts_leaks_nothing_of_the_hub() -> anyhow::Result<()> {
    let world = Setup::scripted()
        .world("linked projects")
        .await?
        .context("the scripted agent is always available")?;
    let session = world.create("linked", json!({})).await?;
    std::fs::create_dir_all(world.home.join(".claude"))?;
    let inside = world.hub.data_dir().join("project");
    std::fs::create_dir(&inside)?;
    let cost = "{\"type\":\"cost-state\",\"totalCostUSD\":4711.5}\n";
    std::fs::write(inside.join(format!("{session}.jsonl")), cost)?;
    symlink(world.hub.data_dir(), world.home.join(".claude/projects"))?;
    turn(&world, &session).await?;
    // If a transcript had been found, it would have been resumed.
    let launch = std::fs::read_to_string(world.run_dir(&session, 1).join("launch.json"))?;
    assert!(launch.contains("--session-id") && !launch.contains("--resume"), "{launch}");
    Ok(())
}
