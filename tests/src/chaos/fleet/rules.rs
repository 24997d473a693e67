//! Creates and revokes permission rules while agents on all hosts call the tools that they allow. Each rule allows a tool of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::time::sleep;

use crate::chaos::Run;
use crate::chaos::agents::rule_text;
use crate::chaos::checker::Revoked;
use crate::chaos::client::Client;

const TRY_AGAIN: Duration = Duration::from_millis(50);

/// Creates and revokes rules until the run is over. Returns the acknowledged revocations.
pub(super) async fn change_rules(run: Arc<Run>, mut rng: Rng) -> Vec<Revoked> {
    let client = Client::new(&run, rng.fork());
    let mut revoked = Vec::new();
    for label in 1.. {
        if run.over.load(Ordering::SeqCst) {
            break;
        }
        let add = json!({"rules": [{"rule": rule_text(label), "effect": "allow"}]});
        // A rule that may have been created is not used.
        let Ok(added) = client.call("policy.add", add).await else {
            sleep(TRY_AGAIN).await;
            continue;
        };
        run.rule.store(label, Ordering::SeqCst);
        sleep(Duration::from_millis(rng.u64(0..1500))).await;
        revoke(&run, &client, &added["rules"][0]["number"]).await;
        revoked.push(Revoked { rule: label, at_ns: monotonic_ns() });
        sleep(Duration::from_millis(rng.u64(0..300))).await;
    }
    revoked
}

/// Revokes a rule on any hub, with as many calls as necessary.
async fn revoke(run: &Run, client: &Client, number: &serde_json::Value) {
    let mut is_first = true;
    loop {
        match client.call("policy.revoke", json!({"number": number})).await {
            Ok(_) => return,
            Err(error) if error.data["type"] == "rule_not_found" => {
                if is_first {
                    run.observations.fault(format!("a hub does not know rule {number}, which was created"));
                }
                return;
            }
            Err(_) => sleep(TRY_AGAIN).await,
        }
        is_first = false;
    }
}

/// The clock that agents write to their logs.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
