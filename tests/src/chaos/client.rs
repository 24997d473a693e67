//! A client of a chaos run. Now and then it hangs up in the middle of a call, whichever it is, and then knows no more
//! than one whose hub was killed: its call may have counted or not.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use plexus_testkit::rpc::{Rpc, RpcError};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Run;

/// How long a call may take.
const LIMIT: Duration = Duration::from_secs(10);
/// One of so many calls is hung up on, at most so many milliseconds after it was begun.
const HANG_UP_ONE_IN: u8 = 10;
const HANG_UP_WITHIN: u64 = 30;

/// A client that hangs up now and then.
pub(super) struct Client {
    run: Arc<Run>,
    rpc: Rpc,
    rng: Mutex<Rng>,
}

impl Client {
    pub(super) fn new(run: &Arc<Run>, rng: Rng) -> Self {
        let rpc = Rpc::new(&run.url, &run.token).with_limit(LIMIT);
        Self { run: Arc::clone(run), rpc, rng: Mutex::new(rng) }
    }

    /// Calls a method, and stays for the answer or does not.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let patience = {
            let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
            (rng.u8(0..HANG_UP_ONE_IN) == 0).then(|| Duration::from_millis(rng.u64(0..HANG_UP_WITHIN)))
        };
        self.call_within(method, params, patience.unwrap_or(LIMIT)).await
    }

    /// Calls a method and hangs up if there is no answer in this time.
    pub(super) async fn call_within(
        &self,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> Result<Value, RpcError> {
        // Whatever is left of the call is dropped, and its connection with it.
        let answered = timeout(patience, self.rpc.call(method, params)).await;
        let hung_up = || RpcError { code: 0, message: "hung up".to_owned(), data: json!(null) };
        let answer = answered.unwrap_or_else(|_| Err(hung_up()));
        if answer.as_ref().is_err_and(|error| error.data["type"] == "store_unavailable") {
            self.run.refused_calls.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }
}
