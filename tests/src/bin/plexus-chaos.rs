//! `cargo xtask chaos`: the long form of the chaos run. It fails when anything was seen that should never happen.
#![expect(clippy::print_stdout, reason = "a command line tool talks to its terminal")]

use std::process::ExitCode;

use clap::Parser;
use plexus_e2e::chaos::{Disk, KILL_POINTS, Kills, Options, Victims, run};

/// Kill a hub at random instants, while agents work and clients hang up, and see whether anything is lost
#[derive(Debug, Parser)]
#[command(name = "cargo xtask chaos")]
struct Args {
    /// How often the hub is killed
    #[arg(long, default_value_t = 200)]
    kills: u32,

    /// Make the choices of an earlier run again
    #[arg(long)]
    seed: Option<u64>,

    /// Kill it once between every two steps of what it does, instead of at random
    #[arg(long, conflicts_with = "kills")]
    points: bool,

    /// Kill agents and keepers as well
    #[arg(long)]
    children: bool,

    /// Have the disk fail under the store for short spans as well: no space, broken writes, broken syncs
    #[arg(long, conflicts_with = "points")]
    faults: bool,

    /// How many scripted agents take part, beside the real ones
    #[arg(long, default_value_t = 20)]
    agents: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let kills = if args.points { Kills::At(KILL_POINTS.to_vec()) } else { Kills::Random(args.kills) };
    println!("seed {seed}, {} scripted agents, 4 real ones", args.agents);
    let versions = plexus_testkit::PINNED.to_vec();
    let victims = if args.children { Victims::Children } else { Victims::Nobody };
    let disk = if args.faults { Disk::Failing } else { Disk::Sound };
    let progress = |so_far: &str| println!("{so_far}");
    let report =
        run(&Options { kills, seed, agents: args.agents, versions, victims, disk, progress }).await?;
    println!("{report}");
    Ok(if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
