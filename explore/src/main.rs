//! `plexus-explore`: runs the approval book under hundreds of thousands of schedules. `cargo xtask explore`
//! starts it.
#![expect(clippy::print_stdout, reason = "a command line tool talks to its terminal")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Parser;
use plexus_explore::{Search, Tried, config, explore, scenario};

/// Run randomised interleavings of requests, answers, waits, withdrawals, expiries, failures and kills
#[derive(Debug, Parser)]
struct Args {
    /// The number of schedules
    #[arg(long, default_value_t = 100_000)]
    schedules: usize,
    /// The seed; the same seed repeats the same schedules
    #[arg(long)]
    seed: Option<u64>,
    /// Repeat one schedule: a file with the output of a failure
    #[arg(long)]
    replay: Option<std::path::PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(schedule) = args.replay {
        let schedule = std::fs::read_to_string(schedule)?;
        let tried = Arc::new(Tried::default());
        let scheduler = shuttle::scheduler::ReplayScheduler::new_from_encoded(schedule.trim());
        shuttle::Runner::new(scheduler, config()).run(move || shuttle::future::block_on(scenario(&tried)));
        println!("this schedule violates no rule");
        return Ok(());
    }
    let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!(
        "seed {seed}; {} schedules, half of them at random, half with few changes of priority",
        args.schedules
    );
    let begun = Instant::now();
    let tried = Arc::new(Tried::default());
    let half = args.schedules / 2;
    let searches = [(Search::Random, args.schedules - half), (Search::FewChanges, half)];
    let threads = searches.map(|(search, schedules)| {
        let tried = Arc::clone(&tried);
        std::thread::spawn(move || explore(search, seed, schedules, &tried))
    });
    let mut said = Instant::now();
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        std::thread::sleep(Duration::from_millis(50));
        if said.elapsed() > Duration::from_secs(5) {
            said = Instant::now();
            println!("{:>8} schedules tried", tried.schedules.load(Ordering::Relaxed));
        }
    }
    for thread in threads {
        anyhow::ensure!(
            thread.join().is_ok(),
            "a schedule broke a rule; it is printed above. Save it to a file and run `cargo xtask explore --replay FILE`"
        );
    }
    let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{} schedules in {:.0} s: {} approvals answered, {} expired, {} withdrawn; {} kills, {} calls cut off, {} failures \
         of the store. Every one was decided once, and everyone who waited was told.",
        of(&tried.schedules),
        begun.elapsed().as_secs_f64(),
        of(&tried.answered),
        of(&tried.expired),
        of(&tried.withdrawn),
        of(&tried.kills),
        of(&tried.cut_off),
        of(&tried.failures),
    );
    Ok(())
}
