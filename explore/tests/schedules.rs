//! The short form of `cargo xtask explore`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plexus_explore::{Search, Totals, explore};

fn totals(search: Search) -> Arc<Totals> {
    let totals = Arc::new(Totals::default());
    explore(search, 1, 1_000, &totals);
    totals
}

#[test]
fn in_every_interleaving_an_approval_is_decided_once_and_no_waiter_misses_it() {
    for search in [Search::Random, Search::FewChanges] {
        let totals = totals(search);
        assert_eq!(totals.schedules.load(Ordering::Relaxed), 1_000);
        for counter in [
            &totals.answered,
            &totals.expired,
            &totals.withdrawn,
            &totals.kills,
            &totals.cancelled_calls,
            &totals.failures,
        ] {
            assert!(counter.load(Ordering::Relaxed) > 0, "not everything was met: {totals:?}");
        }
    }
}
