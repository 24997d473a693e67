//! The short form of `cargo xtask explore`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plexus_explore::{Search, Tried, explore};

fn tried(search: Search) -> Arc<Tried> {
    let tried = Arc::new(Tried::default());
    explore(search, 1, 1_000, &tried);
    tried
}

#[test]
fn whatever_the_order_an_approval_is_decided_once_and_no_waiter_misses_it() {
    for search in [Search::Random, Search::FewChanges] {
        let tried = tried(search);
        assert_eq!(tried.schedules.load(Ordering::Relaxed), 1_000);
        for met in
            [&tried.answered, &tried.expired, &tried.withdrawn, &tried.kills, &tried.cut_off, &tried.failures]
        {
            assert!(met.load(Ordering::Relaxed) > 0, "not everything was met: {tried:?}");
        }
    }
}
