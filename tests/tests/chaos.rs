//! The short form of the chaos run, see `cargo xtask chaos`: a hub killed with -9 at random instants loses nothing,
//! contradicts nothing, runs nothing twice and leaves nobody waiting.

use plexus_e2e::chaos::{Options, run};
use plexus_testkit::{PINNED, require_claude};

async fn nothing_is_lost(
    seed: u64,
    kills: u32,
    agents: usize,
    versions: Vec<&'static str>,
) -> anyhow::Result<()> {
    let report = run(&Options { kills, seed, agents, versions }).await?;
    assert!(report.faults.is_empty(), "{report}");
    Ok(())
}

#[tokio::test]
async fn nothing_is_lost_with_scripted_agents() -> anyhow::Result<()> {
    nothing_is_lost(fastrand::u64(..), 20, 20, Vec::new()).await
}

#[tokio::test]
async fn nothing_is_lost_with_real_agents() -> anyhow::Result<()> {
    if PINNED.iter().any(|version| require_claude(version, "nothing_is_lost_with_real_agents").is_none()) {
        return Ok(());
    }
    nothing_is_lost(fastrand::u64(..), 8, 4, PINNED.to_vec()).await
}
