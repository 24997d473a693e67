//! Benchmarks. Most measure a baseline in the same run, because a number alone says nothing on another machine. A benchmark fails if it
//! misses a goal. `cargo xtask bench NAME` builds everything that it needs.

mod agree;
mod arbor;
mod bench_dir;
mod console;
mod decisions;
mod events;
mod fan_out;
mod figures;
mod fleet;
mod held_agents;
mod history;
mod hub_client;
mod kept_connection;
mod machine;
mod memory;
mod noise;
mod outside_agent;
mod parent_cost;
mod peers;
mod permit;
mod plot;
mod policy;
mod processor_time;
mod profiler;
mod report;
mod retention;
mod scale;
mod start;
mod stored_history;
mod table;
mod tool_call;
mod trace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measure Plexus relative to the machine it runs on
#[derive(Parser)]
#[command(name = "plexus-bench")]
struct Args {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Compare several runs: whether their results differ by no more than the noise between rounds
    Agree(agree::AgreeArgs),
    /// Appending to and reading a conversation of 100,000 nodes, compared with one of 10,000
    Arbor(arbor::ArborArgs),
    /// Loading the web console with many open approvals and events
    Console(console::ConsoleArgs),
    /// Decisions per second with many clients, in the process and over HTTP
    Decisions(decisions::DecisionsArgs),
    /// The delay of an event with one and with many listeners, and whether many listeners delay the child
    FanOut(fan_out::FanOutArgs),
    /// Several hubs on one PostgreSQL: an answer on another host, decisions per second, and one hub compared with SQLite
    Fleet(fleet::FleetArgs),
    /// Decisions and reads on a hub with a large stored history, compared with one turn
    History(history::HistoryArgs),
    /// Events per second from one child to one reader, compared with the Claude Agent SDKs
    Events(events::EventsArgs),
    /// What a parent agent reads to supervise a child, compared with the child's output
    ParentCost(parent_cost::ParentCostArgs),
    /// The time from `respond` to the start of the tool, with a bare fdatasync beside it
    Permit(permit::PermitArgs),
    /// Evaluating a call with 100 rules, compared with one parse of its JSON
    Policy(policy::PolicyArgs),
    /// The same as `permit` while the hub removes tens of thousands of old events, compared with a hub that keeps them
    Retention(retention::RetentionArgs),
    /// Memory and delays with thousands of open permits, and with many sessions with a running agent
    Scale(scale::ScaleArgs),
    /// From the start of the process to ready: empty, with history, and with agents to recover; idle memory and size
    Start(start::StartArgs),
    /// Write the results of all benchmarks into docs/benchmarks.md
    Table,
    /// The time of a tool call of a real Claude Code: ungated, under an instant host, under the Claude Agent SDKs, and under Plexus
    ToolCall(tool_call::ToolCallArgs),
    /// The stages of a tool call that a rule allows, and of one that a client answers
    Trace(trace::TraceArgs),
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let done = match Args::parse().benchmark {
        Benchmark::Agree(args) => agree::run(&args),
        Benchmark::Arbor(args) => arbor::run(&args).await,
        Benchmark::Console(args) => console::run(&args).await,
        Benchmark::Decisions(args) => decisions::run(&args).await,
        Benchmark::FanOut(args) => fan_out::run(&args).await,
        Benchmark::Fleet(args) => fleet::run(&args).await,
        Benchmark::History(args) => history::run(&args).await,
        Benchmark::Events(args) => events::run(&args).await,
        Benchmark::ParentCost(args) => parent_cost::run(&args).await,
        Benchmark::Permit(args) => permit::run(&args).await,
        Benchmark::Policy(args) => policy::run(&args),
        Benchmark::Retention(args) => retention::run(&args).await,
        Benchmark::Scale(args) => scale::run(&args).await,
        Benchmark::Start(args) => start::run(&args).await,
        Benchmark::Table => table::run(),
        Benchmark::ToolCall(args) => tool_call::run(&args).await,
        Benchmark::Trace(args) => trace::run(&args).await,
    };
    profiler::finish()?;
    done
}
