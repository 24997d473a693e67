//! Sessions with the hub's tools make as many of the hub's file helpers hang as they can. The operator's calls are still served.

use git2::{Repository, Signature};
use plexus_e2e::{World, text, until};
use plexus_testkit::rpc::Rpc;
use serde_json::json;

use crate::worktrees::checkout::{scripted, worktree_of};

/// The number of helpers that may work for sessions at a time.
const SHARED: usize = 4;

/// The number of running file helpers of a hub.
fn helpers(hub: u32) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_helper = |process: &std::path::Path| {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        command.starts_with(b"plexus\0files") && status.contains(&format!("\nPPid:\t{hub}\n"))
    };
    processes.filter(|process| is_helper(&process.path())).count()
}

fn hostile_repository(world: &World) -> anyhow::Result<Repository> {
    let repo = Repository::init(world.home.join("hostile"))?;
    let me = Signature::now("a tester", "tester@localhost")?;
    let tree = repo.index()?.write_tree()?;
    repo.commit(Some("HEAD"), &me, &me, "first", &repo.find_tree(tree)?, &[])?;
    Ok(repo)
}

/// Makes every reader of the repository's configuration block on a FIFO.
fn block(world: &World, repo: &Repository) -> anyhow::Result<()> {
    let fifo = world.home.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR)?;
    let config = repo.path().join("config");
    let include = format!("{}[include]\n\tpath = {}\n", std::fs::read_to_string(&config)?, fifo.display());
    Ok(std::fs::write(&config, include)?)
}

#[tokio::test]
async fn a_blocked_repository_occupies_one_file_helper_of_the_operator() -> anyhow::Result<()> {
    let (world, _checkout) = scripted().await?;
    let mine = world.create("mine", json!({"isolation": "worktree"})).await?;
    let repo = hostile_repository(&world)?;
    let params = json!({"working_dir": world.home.join("hostile"), "isolation": "worktree"});
    let blocked = world.create("blocked", params).await?;
    block(&world, &repo)?;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..4 * SHARED {
        let (rpc, params) = (Rpc::new(world.hub.url(), &world.hub.token()?), json!({"session_id": blocked}));
        calls.spawn(async move { rpc.call("claudecode.diff", params).await });
    }
    let hub = world.hub.pid();
    until("a helper to hang", || helpers(hub) > 0).await?;
    for _ in 0..3 {
        assert_eq!(worktree_of(&world, &mine).await?["changes"]["files"], 0);
        assert_eq!(helpers(hub), 1, "the calls for one session take turns");
        assert!(calls.try_join_next().is_none(), "the repository still blocks");
    }
    Ok(())
}

#[tokio::test]
async fn a_flood_of_hanging_diffs_leaves_the_operator_a_file_helper() -> anyhow::Result<()> {
    let (world, _checkout) = scripted().await?;
    let mine = world.create("mine", json!({"isolation": "worktree"})).await?;
    let repo = hostile_repository(&world)?;
    let hostile = world.home.join("hostile");
    let mut doors = Vec::new();
    for i in 0..=SHARED {
        let params = json!({"hub_tools": true, "working_dir": hostile, "isolation": "worktree"});
        let session = world.create(&format!("flood-{i}"), params).await?;
        let given = world.call("loopback.configure", json!({"session_id": session})).await?;
        let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
        let token = header.trim_start_matches("Bearer ").to_owned();
        let door = Rpc::new(world.hub.url(), &token);
        let compared = door.call("claudecode.diff", json!({"session_id": session})).await?;
        assert_eq!(compared["files"], json!([]), "a session may compare its own worktree");
        doors.push((session, token));
    }
    block(&world, &repo)?;
    let mut flood = tokio::task::JoinSet::new();
    for (session, token) in doors.iter().cycle().take(doors.len() * 3) {
        let (rpc, params) = (Rpc::new(world.hub.url(), token), json!({"session_id": session}));
        flood.spawn(async move { rpc.call("claudecode.diff", params).await });
    }
    let hub = world.hub.pid();
    until("all shared helpers to hang", || helpers(hub) >= SHARED).await?;
    for _ in 0..3 {
        assert_eq!(worktree_of(&world, &mine).await?["changes"]["files"], 0);
        assert!(flood.try_join_next().is_none(), "the flood still occupies its helpers");
    }
    Ok(())
}
