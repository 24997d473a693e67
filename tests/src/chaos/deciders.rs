//! Clients that answer open approvals concurrently, so that some answers come second, and that sometimes disconnect.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Run;
use super::client::Client;

/// Decides until it is aborted.
pub(super) async fn decide(run: Arc<Run>, mut rng: Rng) {
    let client = Client::new(&run, rng.fork());
    let mut cursor = Value::Null;
    loop {
        let mut wait = json!({"timeout_ms": 500});
        if !cursor.is_null() && rng.bool() {
            wait["cursor"] = cursor.clone();
        }
        // Approvals of children are addressed to their parents, so the operator has to look for them.
        let all = run.hubs.len() > 1 && rng.bool();
        let (method, params) = if all { ("loopback.pending", json!({})) } else { ("loopback.wait", wait) };
        let Ok(open) = client.call(method, params).await else {
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        if !all {
            cursor = open["cursor"].clone();
        }
        for approval in open["approvals"].as_array().into_iter().flatten() {
            // Leaves the approval for other clients, or for later.
            if rng.u8(0..4) == 0 {
                continue;
            }
            let is_budget = approval["kind"] == "budget";
            let (id, approve) = (crate::text(&approval["id"]), is_budget || rng.u8(0..3) > 0);
            run.observations.asked(&id, &crate::text(&approval["tool_use_id"]));
            let mut respond = json!({"approval_id": id, "approve": approve});
            if is_budget {
                respond["updated_input"] = json!({"more": rng.u8(1..5)});
            }
            // After a disconnect or a failed commit, the client does not know the outcome.
            let Ok(answer) = client.call("loopback.respond", respond).await else { continue };
            match answer["type"].as_str() {
                // It belongs to no turn.
                Some("ok") if is_budget => run.observations.granted(&id),
                Some("already_resolved") if is_budget => {}
                Some("ok") => {
                    run.observations.decided(&id, if approve { "allowed" } else { "denied" });
                }
                Some("already_resolved") => {
                    run.observations.already_resolved(&id, &crate::text(&answer["status"]))
                }
                _ => run.observations.fault(format!("an answer that makes no sense: {answer}")),
            }
        }
        if open["approvals"].as_array().is_none_or(Vec::is_empty) {
            sleep(Duration::from_millis(5)).await;
        }
    }
}
