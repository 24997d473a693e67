//! The data that the console shows: a session with a long turn, and sessions whose calls all wait for approval. Scripted agents produce both
//! through the hub, because a hub withdraws the approvals of processes that do not exist.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use crate::hub_client;

/// Open approvals of one session.
const CALLS: usize = 50;
/// The last text of the long turn.
pub(super) const LAST_TEXT: &str = "This is the last event of the turn.";
/// The time limit for the agents.
const LIMIT: Duration = Duration::from_secs(120);

/// Creates the data. Returns the id of the session with the long turn.
pub(super) async fn create(
    hub: &HubProcess,
    dir: &Path,
    approvals: usize,
    events: usize,
) -> anyhow::Result<String> {
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    let flood = json!([{"flood": {"events": events, "bytes": 80}}, {"say": LAST_TEXT}]);
    let session = start(&rpc, dir, "talker", &flood).await?;
    let created = async {
        hub_client::until_complete(&rpc, ("session_id", &session)).await?;
        for number in 0..approvals.div_ceil(CALLS) {
            let calls = (number * CALLS..approvals.min((number + 1) * CALLS))
                .map(|call| json!({"tool": "Bash", "input": {"command": format!("npm test part-{call}")}}));
            let tools = json!([{"tools": calls.collect::<Vec<_>>(), "parallel": true}]);
            start(&rpc, dir, &format!("worker-{number}"), &tools).await?;
        }
        loop {
            let pending = rpc.call("loopback.pending", json!({})).await?;
            if pending["approvals"].as_array().map(Vec::len) == Some(approvals) {
                return Ok(session);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(LIMIT, created).await.context("the agents did not produce the data in time")?
}

async fn start(rpc: &Rpc, dir: &Path, name: &str, steps: &Value) -> anyhow::Result<String> {
    let prompt = json!({"steps": steps}).to_string();
    let create = json!({"name": name, "working_dir": dir.join("work"), "prompt": prompt});
    hub_client::create(rpc, create).await
}
