//! Children under a hub, whose rule allows every call.

use std::fmt;

use anyhow::ensure;
use plexus_store::Durability;
use plexus_testkit::clean_env;
use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::rpc::Rpc;
use serde_json::json;
use tokio::task::JoinSet;

use super::Work;
use super::call_model::prompt;
use crate::bench_dir::setting;

/// How a child requests permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Channel {
    Control,
    Mcp,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control => "control",
            Self::Mcp => "mcp",
        })
    }
}

pub(super) async fn run(work: &Work, channel: Channel, durability: Durability) -> anyhow::Result<()> {
    let data_dir = work.dir.join("data");
    std::fs::write(data_dir.join("plexus.toml"), format!("durability = \"{}\"\n", setting(durability)))?;
    let env = clean_env(&work.dir.join("home"), &work.model_url);
    let claude = work.claude.clone();
    let hub = HubProcess::start(HubOptions { data_dir, claude, extra_args: Vec::new(), env }).await?;
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    rpc.call("policy.add", json!({"rules": [{"rule": "Bash(touch:*)", "effect": "allow"}]})).await?;
    let mut turns = JoinSet::new();
    for child in work.children.clone() {
        let rpc = Rpc::new(hub.url(), &hub.token()?);
        let create = json!({
            "name": format!("child-{child}"), "working_dir": work.dir.join("work"), "channel": channel.to_string(),
            "prompt": prompt(child),
        });
        turns.spawn(turn(rpc, create));
    }
    while let Some(ended) = turns.join_next().await {
        ended??;
    }
    Ok(())
}

/// Creates a child and waits for the end of its turn, without reading its events.
async fn turn(rpc: Rpc, create: serde_json::Value) -> anyhow::Result<()> {
    let session = rpc.call("claudecode.create", create).await?["id"].clone();
    loop {
        let wait = json!({"session_id": session, "wait_ms": 60_000, "limit": 1, "from_seq": 1_000_000_000});
        let poll = rpc.call("claudecode.poll", wait).await?;
        match poll["status"].as_str() {
            Some("complete") => return Ok(()),
            Some("running") => {}
            _ => ensure!(false, "the turn did not complete: {poll}"),
        }
    }
}
