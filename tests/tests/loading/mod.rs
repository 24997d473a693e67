//! What a child loads besides Claude Code: only the servers, settings and project files that it was given, unchanged, and never
//! past the gate.

use plexus_e2e::World;
use plexus_testkit::binaries;
use plexus_testkit::model::Step;
use serde_json::{Value, json};

mod import;
mod project;
mod servers;
mod user;

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "a step"}))
}

/// The config of a server that logs its requests to `log` in the working directory.
fn tool_server(world: &World, log: &str) -> anyhow::Result<Value> {
    let look = world.hub.data_dir().join("operator.token");
    let env = json!({"TOOL_SERVER_LOG": world.file(log), "TOOL_SERVER_LOOK": look, "KEY": "THE-SECRET-KEY"});
    Ok(json!({"type": "stdio", "command": binaries::tool_server()?, "args": ["--quiet"], "env": env}))
}

/// The requests in the log of such a server.
fn noted(world: &World, log: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(world.file(log)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The texts of the calls that reached such a server.
fn calls(world: &World, log: &str) -> Vec<Value> {
    noted(world, log)
        .iter()
        .filter(|note| !note["called"].is_null())
        .map(|note| note["arguments"]["text"].clone())
        .collect()
}

async fn get(world: &World, session: &str) -> anyhow::Result<Value> {
    Ok(world.call("claudecode.get", json!({"session_id": session})).await?["session"].take())
}
