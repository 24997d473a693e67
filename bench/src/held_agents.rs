//! Scripted agents that the hub started, each held at an approval: a keeper, an agent process and an open approval per session.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::{Listener, Rpc};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::hub_client::requested_approval;
use crate::report::progress;

/// Agents that start at the same time. More would only wait for a core.
const AT_ONCE: usize = 8;
/// The time limit for `plexus down` to stop the agents.
pub(crate) const DOWN_LIMIT: Duration = Duration::from_secs(180);

/// Settings under which a hub accepts this many agents.
pub(crate) fn config(agents: usize) -> String {
    format!("limits.sessions = {}\nlimits.open_approvals = {}\n", agents + 100, agents + 100)
}

/// Starts this many agents and waits until each has requested its approval. Their names start with `name`.
pub(crate) async fn start(hub: &HubProcess, dir: &Path, name: &str, agents: usize) -> anyhow::Result<()> {
    let mut listener = Listener::open(hub.url(), "/events", &hub.token()?, None).await?;
    let rpc = Arc::new(Rpc::new(hub.url(), &hub.token()?));
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut creations = JoinSet::new();
    for agent in 0..agents {
        let (rpc, places) = (Arc::clone(&rpc), Arc::clone(&places));
        let prompt = json!({"steps": [{"tool": "Step", "input": {"number": agent}}]}).to_string();
        let create =
            json!({"name": format!("{name}-{agent}"), "working_dir": dir.join("work"), "prompt": prompt});
        creations.spawn(async move {
            let _place = places.acquire().await?;
            rpc.call("claudecode.create", create).await?;
            anyhow::Ok(())
        });
    }
    let mut held = HashSet::new();
    while held.len() < agents {
        tokio::select! {
            Some(created) = creations.join_next() => created??,
            event = listener.next() => {
                let event = event?.context("the stream of events ended")?;
                if let Some(approval) = requested_approval(&event.data) {
                    held.insert(approval["id"].as_str().context("an id")?.to_owned());
                    if held.len().is_multiple_of(100) {
                        progress(&format!("{} of {agents} agents are held at an approval", held.len()));
                    }
                }
            }
        }
    }
    Ok(())
}
