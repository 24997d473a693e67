//! Short chaos runs, see `cargo xtask chaos`: after kills of the hub at random instants no decision is lost or contradicted, no
//! call runs twice, and no agent waits forever.

use plexus_e2e::chaos::fleet::{self, Faults, FleetOptions, plan};
use plexus_e2e::chaos::{Disk, KILL_POINTS, Kills, Options, Victims, run};
use plexus_testkit::{PINNED, require_claude, skip};

async fn nothing_is_lost(kills: Kills, agents: usize, versions: Vec<&'static str>) -> anyhow::Result<()> {
    go(Options { agents, versions, ..chaos_options(kills) }).await
}

/// Options for scripted agents on a chaos_options disk. Only the hub is killed.
fn chaos_options(kills: Kills) -> Options {
    let (seed, victims, disk) = (fastrand::u64(..), Victims::Nobody, Disk::Sound);
    Options { kills, seed, agents: 20, versions: Vec::new(), victims, disk, progress: |_| {} }
}

async fn go(options: Options) -> anyhow::Result<()> {
    let report = run(&options).await?;
    assert!(report.faults.is_empty(), "{report}");
    Ok(())
}

/// Both pinned CLIs, if they are installed.
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
async fn nothing_is_lost_when_agents_are_killed_too() -> anyhow::Result<()> {
    go(Options { victims: Victims::Children, ..chaos_options(Kills::Random(15)) }).await
}

#[tokio::test]
async fn nothing_is_lost_while_the_disk_fails_and_agents_are_killed() -> anyhow::Result<()> {
    let (victims, disk) = (Victims::Children, Disk::Failing);
    go(Options { victims, disk, ..chaos_options(Kills::Random(10)) }).await
}

#[tokio::test]
async fn nothing_is_lost_between_any_two_steps() -> anyhow::Result<()> {
    match pinned("nothing_is_lost_between_any_two_steps") {
        Some(versions) => nothing_is_lost(Kills::At(KILL_POINTS.to_vec()), 6, versions).await,
        None => Ok(()),
    }
}

#[tokio::test]
async fn nothing_is_lost_while_hubs_links_and_the_database_fail() -> anyhow::Result<()> {
    let (seed, faults) = (fastrand::u64(..), Faults::EachOnce);
    let options = FleetOptions { hubs: 3, faults, seed, agents: 6, progress: |_| {} };
    match fleet::run(&options).await? {
        Some(report) => assert!(report.faults.is_empty(), "{report}"),
        None => skip("nothing_is_lost_while_hubs_links_and_the_database_fail", "PostgreSQL"),
    }
    Ok(())
}

#[test]
fn a_seed_repeats_the_order_of_the_faults() {
    let faults = |seed| plan(seed, Faults::Random(100), 3);
    assert_eq!(faults(7), faults(7));
    assert_ne!(faults(7), faults(8));
    assert_eq!(faults(7).concat().len(), 100);
}
