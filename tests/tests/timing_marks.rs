//! Timing marks, which `cargo xtask trace` reads: they identify a call at every stage, and contain no input.

use anyhow::{Context as _, ensure};
use plexus_agent::{RunDir, TIMING};
use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::rpc::Rpc;
use plexus_testkit::{binaries, clean_env};
use serde_json::{Value, json};

const SECRET: &str = "a-secret-in-an-input";

/// Runs a call that is answered by a client. Returns the hub's log and the keeper's.
async fn logs(levels: &str) -> anyhow::Result<(String, String)> {
    let dir = tempfile::tempdir()?;
    for folder in ["home", "data", "work"] {
        std::fs::create_dir(dir.path().join(folder))?;
    }
    let mut env = clean_env(&dir.path().join("home"), "http://127.0.0.1:1");
    env.push(("PLEXUS_LOG".to_owned(), levels.to_owned()));
    let claude = binaries::scripted_agent()?;
    let options = HubOptions { data_dir: dir.path().join("data"), claude, extra_args: Vec::new(), env };
    let hub = HubProcess::start(options).await?;
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    let mut cursor = rpc.call("loopback.wait", json!({})).await?["cursor"].clone();
    let prompt = json!({"steps": [{"tool": "Step", "id": "toolu_1", "input": {"text": SECRET}}]}).to_string();
    let create = json!({"name": "child", "working_dir": dir.path().join("work"), "prompt": prompt});
    let session = rpc.call("claudecode.create", create).await?;
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let mut finished = Value::Null;
    while is_empty(&finished) {
        let news = rpc.call("loopback.wait", json!({"cursor": cursor, "timeout_ms": 60_000})).await?;
        cursor = news["cursor"].clone();
        for approval in news["approvals"].as_array().into_iter().flatten() {
            let allow = json!({"approval_id": approval["id"], "approve": true});
            rpc.call("loopback.respond", allow).await?;
        }
        finished = news["finished"].clone();
    }
    ensure!(finished[0]["status"] == "complete", "{finished}");
    let id = session["id"].as_str().context("an id")?;
    let run = RunDir::new(hub.data_dir().join("sessions").join(id).join("runs/1"));
    Ok((hub.stderr(), std::fs::read_to_string(run.stderr()).unwrap_or_default()))
}

#[tokio::test(flavor = "multi_thread")]
async fn timing_marks_cover_every_stage_and_show_no_input() -> anyhow::Result<()> {
    let (hub, keeper) = logs(&format!("warn,{TIMING}=trace")).await?;
    let of_hub = [
        "journal_reading",
        "lines_parsed",
        "policy_decided",
        "commit_queued",
        "commit_started",
        "commit_applied",
        "commit_synced",
        "commit_published",
        "commit_returned",
        "respond_received",
        "answer_taken",
        "outbox_written",
    ];
    for (log, marks) in [(&hub, &of_hub[..]), (&keeper, &["journal_writing", "line_sending"])] {
        for mark in marks {
            ensure!(log.contains(&format!("{TIMING}: mark=\"{mark}\"")), "no `{mark}` in:\n{log}");
        }
        ensure!(!log.contains(SECRET), "an input is in the log:\n{log}");
    }
    ensure!(hub.contains("mark=\"policy_decided\" id=\"toolu_1\""), "the call is not named in:\n{hub}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn timing_marks_are_off_unless_they_are_named() -> anyhow::Result<()> {
    let (hub, keeper) = logs("plexus=debug,info").await?;
    ensure!(!hub.contains(TIMING) && !keeper.contains(TIMING), "{hub}{keeper}");
    Ok(())
}
