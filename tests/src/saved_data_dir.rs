//! Saved data directories of earlier versions for the tests of later ones: how to create one, and what it contains.
//! `tests/tests/old_data_dirs.rs` opens them. `tests/fixtures/README.md` says when to create another.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use plexus_store::{Durability, SqlStore};
use plexus_testkit::rpc::Rpc;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Setup, World, is_alive, processes_of, script, text, until};

/// The working directory of the agents in a saved directory. It exists on every machine.
const WORKING_DIR: &str = "/usr";

/// What the hub returned for the directory that it left. A later hub must return the same.
#[derive(Debug, Serialize, Deserialize)]
pub struct Expected {
    /// A session with two turns whose process has ended, as `claudecode.get` returns it.
    pub finished: Value,
    /// Its turns, as `claudecode.poll` returns them.
    pub turns: Vec<Value>,
    /// The approvals of its first turn, one allowed and one denied, as `loopback.get` returns them.
    pub resolved: Vec<Value>,
    /// An open approval of a child that the hub did not start.
    pub open: Value,
    /// The permit request of that child. `token` is its token.
    pub asked: Value,
    /// See `asked`.
    pub token: String,
    /// The turn of a session whose hub and process were killed during an open approval, as it was just before.
    pub cut_off: Value,
}

/// Creates a saved directory in `to`, which must not exist: `data/` and `expected.json`.
///
/// # Errors
/// If any step fails.
pub async fn save(to: &Path) -> anyhow::Result<()> {
    ensure!(!to.exists(), "{} already exists; a saved data directory is never changed", to.display());
    let mut world =
        Setup::scripted().world("saved").await?.context("the scripted agent is always available")?;
    let (finished, turns, resolved) = finished(&world).await?;
    let (open, asked, token) = external_request(&world).await?;
    let cut_off = begin(&world, "cut-off", json!([{"tool": "Step", "input": {"number": 3}}])).await?;
    let (cut_off_turn, _) = world.asked(&cut_off).await?;
    world.hub.kill9().await?;
    end_processes(&cut_off).await?;

    // Closing the store merges its log into one file.
    drop(SqlStore::sqlite(&world.hub.data_dir().join("plexus.db"), Durability::Full)?);
    let data = to.join("data");
    copy(world.hub.data_dir(), &data, &|path| is_kept(path))?;
    hide_paths(&data, &world)?;
    let expected = Expected { finished, turns, resolved, open, asked, token, cut_off: cut_off_turn };
    std::fs::write(to.join("expected.json"), serde_json::to_string_pretty(&expected)? + "\n")?;
    Ok(())
}

async fn begin(world: &World, name: &str, steps: Value) -> anyhow::Result<String> {
    world.create(name, json!({"working_dir": WORKING_DIR, "prompt": script(&steps)})).await
}

/// A session with two turns, the first with an allowed and a denied call. Its process is stopped.
async fn finished(world: &World) -> anyhow::Result<(Value, Vec<Value>, Vec<Value>)> {
    let step = |number| json!({"tool": "Step", "input": {"number": number}});
    let session = begin(world, "finished", json!([{"say": "one"}, step(1), step(2)])).await?;
    let mut resolved = Vec::new();
    for answer in [json!({"approve": true}), json!({"approve": false, "message": "not this one"})] {
        let (_, approval) = world.asked(&session).await?;
        world.respond(&approval, answer).await?;
        resolved.push(approval["id"].clone());
    }
    world.ended(&session).await?;
    world.chat(&session, &script(&json!([{"say": "two"}]))).await?;
    world.ended(&session).await?;
    world.call("claudecode.stop", json!({"session_id": session})).await?;

    let mut turns = Vec::new();
    for turn in [1, 2] {
        let all = json!({"session_id": session, "turn": turn, "from_seq": 0});
        turns.push(world.call("claudecode.poll", all).await?);
    }
    for id in &mut resolved {
        *id = world.call("loopback.get", json!({"approval_id": id})).await?["approval"].take();
    }
    let view = world.call("claudecode.get", json!({"session_id": session})).await?["session"].take();
    Ok((view, turns, resolved))
}

/// An open approval of a child that the hub did not start, its request and its token.
async fn external_request(world: &World) -> anyhow::Result<(Value, Value, String)> {
    let session = world.create("elsewhere", json!({"working_dir": WORKING_DIR, "channel": "mcp"})).await?;
    let answer = world.call("loopback.configure", json!({"session_id": session})).await?;
    let server = &answer["mcp_config"]["mcpServers"]["plexus"];
    let token = text(&server["headers"]["Authorization"]).replace("Bearer ", "");
    let asked = json!({"tool_name": "Bash", "input": {"command": "true"}, "tool_use_id": "toolu_elsewhere"});
    let (rpc, question) = (Rpc::new(world.hub.url(), &token), asked.clone());
    tokio::spawn(async move { rpc.call("loopback.permit", question).await });
    let (_, open) = world
        .poll_until(&session, |poll| {
            poll["pending_approvals"].as_array().is_some_and(|open| !open.is_empty())
        })
        .await
        .map(|poll| (poll["turn"].clone(), poll["pending_approvals"][0].clone()))?;
    Ok((open, asked, token))
}

/// Kills the keeper and the agent of a session, as a power failure would.
async fn end_processes(session: &str) -> anyhow::Result<()> {
    let processes = processes_of(session);
    for pid in &processes {
        let pid = pid.to_string();
        // A process that exited with another one is not an error.
        std::process::Command::new("kill").args(["-KILL", &pid]).status()?;
    }
    until("its processes have ended", || !processes.iter().any(|pid| is_alive(*pid))).await
}

/// Whether a file is saved. Files that the next hub creates are omitted, and files that git cannot store.
fn is_kept(path: &Path) -> bool {
    let name = path.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
    let anew =
        ["lock", "port", "hub.json", "hub.sock", "operator.token", "identity.key", "plexus.toml", "wake"];
    !anew.contains(&name) && !name.ends_with("-shm") && !name.ends_with("-wal")
}

/// Copies the files of a directory that `keep` accepts.
///
/// # Errors
/// If a file cannot be read or written.
pub fn copy(from: &Path, to: &Path, keep: &dyn Fn(&Path) -> bool) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().context("a name")?);
        if path.is_dir() {
            copy(&path, &target, keep)?;
        } else if keep(&path) {
            std::fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// Replaces the paths of this machine in the launch files.
fn hide_paths(data: &Path, world: &World) -> anyhow::Result<()> {
    let agent = plexus_testkit::binaries::scripted_agent()?;
    for file in files(data)? {
        if file.file_name() == Some("launch.json".as_ref()) {
            let launch = std::fs::read_to_string(&file)?
                .replace(&world.hub.data_dir().display().to_string(), "/home/you/.local/share/plexus")
                .replace(&agent.display().to_string(), "/usr/bin/claude");
            std::fs::write(&file, launch)?;
        }
    }
    Ok(())
}

fn files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() { all.extend(files(&path)?) } else { all.push(path) }
    }
    Ok(all)
}
