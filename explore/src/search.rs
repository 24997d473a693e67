//! How schedules are chosen.

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner};

use crate::{Totals, scenario};

/// How many times a schedule of [`Search::FewChanges`] changes who comes first.
const CHANGES: usize = 4;

/// How schedules are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// Any task may be next.
    Random,
    /// The most urgent task goes on, and who that is changes a few times: finds what random search is unlikely to.
    FewChanges,
}

/// What a schedule may need.
pub fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 0x4_0000;
    config.max_steps = MaxSteps::FailAfter(100_000);
    config
}

/// Tries so many schedules; panics with the first that breaks a rule.
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
