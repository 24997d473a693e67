//! Benchmarks. Each prints its result next to a baseline from the same run on the same disk, and fails if the
//! result is too far from it, because results of different machines cannot be compared. `cargo xtask bench
//! NAME` builds everything that is needed.

mod arbor;
mod figures;
mod listeners;
mod permit;
mod place;
mod policy;
mod retention;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measure Plexus against a baseline on the same machine
#[derive(Parser)]
#[command(name = "plexus-bench")]
struct Args {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// A conversation of 100,000 nodes, against one of 10,000
    Arbor(arbor::ArborArgs),
    /// The time an agent takes to write its events with many listeners, against none
    Listeners(listeners::ListenersArgs),
    /// The time from `respond` until the tool runs, against a bare fdatasync
    Permit(permit::PermitArgs),
    /// The evaluation of a call under 100 rules, against one parse of its JSON
    Policy(policy::PolicyArgs),
    /// The same as `permit` while the hub deletes tens of thousands of old events, against a hub that keeps
    /// them
    Retention(retention::RetentionArgs),
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    match Args::parse().benchmark {
        Benchmark::Arbor(args) => arbor::run(&args).await,
        Benchmark::Listeners(args) => listeners::run(&args).await,
        Benchmark::Permit(args) => permit::run(&args).await,
        Benchmark::Policy(args) => policy::run(&args),
        Benchmark::Retention(args) => retention::run(&args).await,
    }
}
