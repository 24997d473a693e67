//! `cargo xtask`: the development commands of this workspace. Each command is a module with the same name.
//! `workspace` runs cargo for them. `pinned` downloads the real Claude Code programs and `packages` downloads
//! npm packages for the tests, both into a `cache`. `.ci/run` decides whether a change may be merged; it runs
//! `cargo xtask test` as one of its phases.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

mod bench;
mod cache;
mod chaos;
#[cfg(test)]
mod dependencies;
mod explore;
mod flame;
mod fuzz;
mod packages;
mod pinned;
mod python_sdk;
mod save_data_dir;
mod skipped;
mod test;
mod trace;
mod wire;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::{CommandFailed, Workspace};

/// Development commands of the Plexus workspace
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    Test(test::TestArgs),
    Bench(bench::BenchArgs),
    Chaos(chaos::ChaosArgs),
    Explore(explore::ExploreArgs),
    Flame(flame::FlameArgs),
    Fuzz(fuzz::FuzzArgs),
    SaveDataDir(save_data_dir::SaveDataDirArgs),
    Trace(trace::TraceArgs),
    Wire(wire::WireArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = Workspace::find().and_then(|workspace| match cli.chore {
        Chore::Test(args) => test::run(&workspace, &args),
        Chore::Bench(args) => bench::run(&workspace, &args),
        Chore::Chaos(args) => chaos::run(&workspace, &args),
        Chore::Explore(args) => explore::run(&workspace, &args),
        Chore::Flame(args) => flame::run(&workspace, &args),
        Chore::Fuzz(args) => fuzz::run(&workspace, &args),
        Chore::SaveDataDir(args) => save_data_dir::run(&workspace, &args),
        Chore::Trace(args) => trace::run(&workspace, args),
        Chore::Wire(args) => wire::run(&workspace, &args),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            // A script that calls xtask gets the exit code of the command that failed.
            error.downcast_ref::<CommandFailed>().map_or(ExitCode::FAILURE, CommandFailed::exit_code)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn arguments_after_the_dashes_go_to_the_test_programs() {
        let cli = Cli::parse_from(["xtask", "test", "--slow", "--", "a_name", "--nocapture"]);
        let Chore::Test(args) = cli.chore else { panic!("not the test chore: {cli:?}") };
        assert!(args.slow);
        assert_eq!(args.args, ["a_name", "--nocapture"]);
    }

    #[test]
    fn a_benchmark_can_be_repeated() {
        for line in [["bench", "--repeat", "3", "permit"], ["bench", "permit", "--repeat", "3"]] {
            let cli = Cli::parse_from(["xtask"].into_iter().chain(line));
            let Chore::Bench(args) = cli.chore else { panic!("not the bench chore: {cli:?}") };
            assert_eq!((args.name.as_deref(), args.repeat, args.args.len()), (Some("permit"), 3, 0));
        }
    }

    #[test]
    fn arguments_after_the_name_go_to_the_benchmark() {
        let cli = Cli::parse_from(["xtask", "bench", "permit", "--rounds", "10"]);
        let Chore::Bench(args) = cli.chore else { panic!("not the bench chore: {cli:?}") };
        assert_eq!(args.name.as_deref(), Some("permit"));
        assert_eq!(args.args, ["--rounds", "10"]);
    }
}
