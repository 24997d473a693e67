//! The short form of the chaos run, see `cargo xtask chaos`: a hub killed with -9 at random instants loses nothing,
//! contradicts nothing, runs nothing twice and leaves nobody waiting.

use plexus_e2e::chaos::{KILL_POINTS, Kills, Options, Victims, run};
use plexus_testkit::{PINNED, require_claude};

async fn nothing_is_lost(kills: Kills, agents: usize, versions: Vec<&'static str>) -> anyhow::Result<()> {
    go(Options { kills, seed: fastrand::u64(..), agents, versions, victims: Victims::Nobody }).await
}

async fn go(options: Options) -> anyhow::Result<()> {
    let report = run(&options).await?;
    assert!(report.faults.is_empty(), "{report}");
    Ok(())
}

/// Both pinned CLIs, if they are at hand.
fn pinned(test: &str) -> Option<Vec<&'static str>> {
    let here = PINNED.iter().filter(|version| require_claude(version, test).is_some()).count();
    (here == PINNED.len()).then(|| PINNED.to_vec())
}

#[tokio::test]
async fn nothing_is_lost_with_scripted_agents() -> anyhow::Result<()> {
    nothing_is_lost(Kills::Random(20), 20, Vec::new()).await
}

#[tokio::test]
async fn nothing_is_lost_with_real_agents() -> anyhow::Result<()> {
    match pinned("nothing_is_lost_with_real_agents") {
        Some(versions) => nothing_is_lost(Kills::Random(8), 4, versions).await,
        None => Ok(()),
    }
}

#[tokio::test]
async fn nothing_is_lost_when_agents_are_killed_as_well() -> anyhow::Result<()> {
    let (kills, seed, victims) = (Kills::Random(15), fastrand::u64(..), Victims::Children);
    go(Options { kills, seed, agents: 20, versions: Vec::new(), victims }).await
}

#[tokio::test]
async fn nothing_is_lost_between_any_two_steps() -> anyhow::Result<()> {
    match pinned("nothing_is_lost_between_any_two_steps") {
        Some(versions) => nothing_is_lost(Kills::At(KILL_POINTS.to_vec()), 6, versions).await,
        None => Ok(()),
    }
}
