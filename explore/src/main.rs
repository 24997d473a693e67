//! `plexus-explore`: runs the approval book under hundreds of thousands of schedules. `cargo xtask explore`
//! starts it.
#![expect(clippy::print_stdout, reason = "a command line tool talks to its terminal")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Parser;
use plexus_explore::{Search, Totals, config, explore, scenario};

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
        let totals = Arc::new(Totals::default());
        let scheduler = shuttle::scheduler::ReplayScheduler::new_from_encoded(schedule.trim());
        shuttle::Runner::new(scheduler, config()).run(move || shuttle::future::block_on(scenario(&totals)));
        println!("this schedule violates no rule");
        return Ok(());
    }
    let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!(
        "seed {seed}; {} schedules, half of them at random, half with few changes of priority",
        args.schedules
    );
    let started = Instant::now();
    let totals = Arc::new(Totals::default());
    let half = args.schedules / 2;
    let searches = [(Search::Random, args.schedules - half), (Search::FewChanges, half)];
    let threads = searches.map(|(search, schedules)| {
        let totals = Arc::clone(&totals);
        std::thread::spawn(move || explore(search, seed, schedules, &totals))
    });
    let mut reported_at = Instant::now();
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        std::thread::sleep(Duration::from_millis(50));
        if reported_at.elapsed() > Duration::from_secs(5) {
            reported_at = Instant::now();
            println!("{:>8} schedules tried", totals.schedules.load(Ordering::Relaxed));
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
        of(&totals.schedules),
        started.elapsed().as_secs_f64(),
        of(&totals.answered),
        of(&totals.expired),
        of(&totals.withdrawn),
        of(&totals.kills),
        of(&totals.cancelled_calls),
        of(&totals.failures),
    );
    Ok(())
}
