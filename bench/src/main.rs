//! Benchmarks. Each prints what it measured beside a baseline from the same run on the same disk, and fails when it is
//! too far from it: a number alone says nothing on another machine. `cargo xtask bench NAME` builds all it needs.

mod arbor;
mod figures;
mod listeners;
mod permit;
mod place;
mod policy;
mod retention;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measure Plexus beside the machine it runs on
#[derive(Parser)]
#[command(name = "plexus-bench")]
struct Args {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Reading a conversation of 100,000 nodes, beside one of 10,000
    Arbor(arbor::ArborArgs),
    /// How long a child takes to write its events, with a crowd of listeners beside none
    Listeners(listeners::ListenersArgs),
    /// From `respond` to the tool released in the child, beside a bare fdatasync
    Permit(permit::PermitArgs),
    /// What 100 rules say about a call, beside one parse of its JSON
    Policy(policy::PolicyArgs),
    /// The same as `permit` while the hub removes tens of thousands of old events, beside one that keeps them
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
