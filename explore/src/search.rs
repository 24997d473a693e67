//! How schedules are chosen.

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner};

use crate::{Totals, scenario};

/// How many times a schedule of [`Search::FewChanges`] changes the priorities.
const CHANGES: usize = 4;

/// How schedules are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// Any task may be next.
    Random,
    /// The task with the highest priority runs, and the priorities change a few times. This finds interleavings that random
    /// search is unlikely to find.
    FewChanges,
}

/// The limits of a schedule.
pub fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 0x4_0000;
    config.max_steps = MaxSteps::FailAfter(100_000);
    config
}

/// Runs this many schedules; panics with the first that breaks a rule.
pub fn explore(search: Search, seed: u64, schedules: usize, totals: &Arc<Totals>) {
    let totals = Arc::clone(totals);
    let one = move || shuttle::future::block_on(scenario(&totals));
    match search {
        Search::Random => Runner::new(RandomScheduler::new_from_seed(seed, schedules), config()).run(one),
        Search::FewChanges => {
            Runner::new(PctScheduler::new_from_seed(seed, CHANGES, schedules), config()).run(one)
        }
    };
}
