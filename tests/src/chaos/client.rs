//! A client of a chaos run. It calls any of the hubs, and sometimes disconnects during a call. After that, as after a kill of the hub, it does not
//! know whether the call was committed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use plexus_testkit::rpc::{Rpc, RpcError};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Run;

/// The time limit of a call.
const LIMIT: Duration = Duration::from_secs(10);
/// One of this many calls is disconnected, at most this many milliseconds after its start.
const DISCONNECT_ONE_IN: u8 = 10;
const HANG_UP_WITHIN: u64 = 30;

/// A client that sometimes disconnects.
pub(super) struct Client {
    run: Arc<Run>,
    doors: Vec<Rpc>,
    rng: Mutex<Rng>,
}

impl Client {
    pub(super) fn new(run: &Arc<Run>, rng: Rng) -> Self {
        let doors = run.hubs.iter().map(|hub| Rpc::new(&hub.url, &hub.token).with_limit(LIMIT));
        Self { run: Arc::clone(run), doors: doors.collect(), rng: Mutex::new(rng) }
    }

    /// A client with the token of a session.
    pub(super) fn of_session(run: &Arc<Run>, rng: Rng, token: &str) -> Self {
        let doors = run.hubs.iter().map(|hub| Rpc::new(&hub.url, token).with_limit(LIMIT));
        Self { run: Arc::clone(run), doors: doors.collect(), rng: Mutex::new(rng) }
    }

    /// The label of the rule that is in force, if there is one.
    pub(super) fn rule_in_force(&self) -> Option<u64> {
        Some(self.run.rule.load(Ordering::SeqCst)).filter(|rule| *rule > 0)
    }

    /// Calls a method. May disconnect before the result.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let wait = {
            let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
            (rng.u8(0..DISCONNECT_ONE_IN) == 0).then(|| Duration::from_millis(rng.u64(0..HANG_UP_WITHIN)))
        };
        self.call_within(method, params, wait.unwrap_or(LIMIT)).await
    }

    /// Calls a method, and disconnects if there is no result in this time.
    pub(super) async fn call_within(
        &self,
        method: &str,
        params: Value,
        wait: Duration,
    ) -> Result<Value, RpcError> {
        let door = self.rng.lock().unwrap_or_else(PoisonError::into_inner).usize(..self.doors.len());
        // Dropping the call closes its connection.
        let answered = timeout(wait, self.doors[door].call(method, params)).await;
        let hung_up = || RpcError { code: 0, message: "hung up".to_owned(), data: json!(null) };
        let answer = answered.unwrap_or_else(|_| Err(hung_up()));
        if answer.as_ref().is_err_and(|error| error.data["type"] == "store_unavailable") {
            self.run.refused_calls.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }
}
