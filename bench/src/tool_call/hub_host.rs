//! Children under a hub, whose rule allows every call.

use std::collections::HashSet;
use std::fmt;

use anyhow::{Context as _, ensure};
use plexus_store::Durability;
use plexus_testkit::clean_env;
use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::rpc::Rpc;
use serde_json::json;

use super::Work;
use super::call_model::prompt;
use crate::bench_dir::setting;
use crate::profiler;

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
    std::fs::write(
        data_dir.join("plexus.toml"),
        format!("durability = \"{}\"\n{}\n", setting(durability), work.config),
    )?;
    let env = clean_env(&work.dir.join("home"), &work.model_url);
    let claude = work.claude.clone();
    let hub = HubProcess::start(HubOptions { data_dir, claude, extra_args: Vec::new(), env }).await?;
    profiler::attach(&hub)?;
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    rpc.call("policy.add", json!({"rules": [{"rule": "Bash(touch:*)", "effect": "allow"}]})).await?;
    let mut cursor = rpc.call("loopback.wait", json!({})).await?["cursor"].clone();
    let mut working = HashSet::new();
    for child in work.children.clone() {
        let create = json!({
            "name": format!("child-{child}"), "working_dir": work.dir.join("work"), "channel": channel.to_string(),
            "prompt": prompt(child),
        });
        let created = rpc.call("claudecode.create", create).await?;
        working.insert(created["id"].as_str().context("a session has an id")?.to_owned());
    }
    // The end of a turn is the only thing that this waits for, so that the hub does no work for it meanwhile.
    while !working.is_empty() {
        let news = rpc.call("loopback.wait", json!({"cursor": cursor, "timeout_ms": 60_000})).await?;
        cursor = news["cursor"].clone();
        for finished in news["finished"].as_array().into_iter().flatten() {
            ensure!(finished["status"] == "complete", "a turn did not complete: {finished}");
            working.remove(finished["session_id"].as_str().unwrap_or_default());
        }
    }
    Ok(())
}
