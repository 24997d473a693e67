//! Clients that follow the operator's feed on changing hubs, from its first entry to its last.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::chaos::Run;
use crate::chaos::checker::Finished;
use crate::chaos::client::Client;
use crate::text;

const TRY_AGAIN: Duration = Duration::from_millis(20);
/// The time limit for the last entries after the end of the run.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(60);

/// Follows the feed until it has received `expected` finished turns, or the time limit passes. Returns the finished turns in order.
pub(super) async fn follow(
    run: Arc<Run>,
    mut rng: Rng,
    expected: Arc<std::sync::OnceLock<usize>>,
) -> Vec<Finished> {
    let client = Client::new(&run, rng.fork());
    let (mut cursor, mut told, mut since) = (json!(0), Vec::new(), None);
    loop {
        if run.over.load(Ordering::SeqCst) {
            let is_complete = expected.get().is_some_and(|expected| told.len() >= *expected);
            let since = *since.get_or_insert_with(Instant::now);
            // The time starts when it is known how many there are.
            if is_complete || (expected.get().is_some() && since.elapsed() > CATCH_UP_WITHIN) {
                return told;
            }
        }
        let wait = json!({"cursor": cursor, "timeout_ms": rng.u64(0..1000)});
        let Ok(mut news) = client.call("loopback.wait", wait).await else {
            sleep(TRY_AGAIN).await;
            continue;
        };
        let finished = news["finished"].as_array().into_iter().flatten();
        told.extend(finished.map(end_of_turn));
        cursor = news["cursor"].take();
    }
}

fn end_of_turn(finished: &Value) -> Finished {
    Finished { session: text(&finished["session_id"]), turn: finished["turn"].as_u64().unwrap_or_default() }
}
