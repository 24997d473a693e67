//! `cargo xtask chaos`: the long chaos run, with one hub or several. It fails if any promise was violated.
#![expect(clippy::print_stdout, reason = "a command line tool talks to its terminal")]

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use plexus_e2e::chaos::fleet::{self, Faults, FleetOptions};
use plexus_e2e::chaos::{Disk, KILL_POINTS, Kills, Options, Report, Victims, run};

/// Kill a hub at random instants while agents work and clients disconnect, and check that nothing is lost
#[derive(Debug, Parser)]
#[command(name = "cargo xtask chaos")]
struct Args {
    /// How often to kill the hub; with several hubs, the number of faults of hubs, links and the database
    #[arg(long, default_value_t = 200)]
    kills: u32,

    /// The number of hubs. Several share one PostgreSQL database, and their links to it and the database itself fail too
    #[arg(long, default_value_t = 1, conflicts_with_all = ["points", "children", "faults"])]
    hubs: usize,

    /// Repeat the random choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,

    /// Kill the hub once at every kill point instead of at random instants
    #[arg(long, conflicts_with = "kills")]
    points: bool,

    /// Also kill agents and keepers
    #[arg(long)]
    children: bool,

    /// Also make the disk fail for short periods: no space, failed writes, failed syncs
    #[arg(long, conflicts_with = "points")]
    faults: bool,

    /// The number of scripted agents besides the real ones
    #[arg(long, default_value_t = 20)]
    agents: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    if args.hubs > 1 {
        return several_hubs(&args, seed).await;
    }
    let kills = if args.points { Kills::At(KILL_POINTS.to_vec()) } else { Kills::Random(args.kills) };
    println!("seed {seed}, {} scripted agents, 4 real ones", args.agents);
    let versions = plexus_testkit::PINNED.to_vec();
    let victims = if args.children { Victims::Children } else { Victims::Nobody };
    let disk = if args.faults { Disk::Failing } else { Disk::Sound };
    let report =
        run(&Options { kills, seed, agents: args.agents, versions, victims, disk, progress }).await?;
    Ok(result(&report))
}

async fn several_hubs(args: &Args, seed: u64) -> anyhow::Result<ExitCode> {
    let Args { hubs, agents, kills, .. } = *args;
    println!("seed {seed}, {hubs} hubs, {agents} scripted agents");
    let options = FleetOptions { hubs, faults: Faults::Random(kills), seed, agents, progress };
    let report = fleet::run(&options).await?.context("PostgreSQL is not installed")?;
    Ok(result(&report))
}

fn progress(so_far: &str) {
    println!("{so_far}");
}

fn result(report: &Report) -> ExitCode {
    println!("{report}");
    if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
