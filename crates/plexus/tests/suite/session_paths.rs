//! Two parents that each have a session `worker`: the operator sees and uses the paths of these sessions everywhere.

use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use crate::support::{LIMIT, TestHub, plexus, text};
use crate::terminal::Terminal;

/// Creates `lead/worker` or `other/worker`, with an open approval. Returns its id.
async fn worker_of(hub: &TestHub, lead: &str) -> String {
    let create = json!({"name": lead, "working_dir": hub.work(), "hub_tools": true});
    let lead = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let as_lead = Rpc::new(hub.process.url(), &hub.token_of_outside_run(&lead).await);
    let prompt = json!([{"tool": "Bash", "input": {"command": "touch made"}}]).to_string();
    let create = json!({"name": "worker", "working_dir": hub.work(), "prompt": prompt});
    let worker = as_lead.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    hub.first_approval(&worker).await;
    worker
}

async fn two_workers() -> (TestHub, [String; 2]) {
    let hub = TestHub::start().await;
    let workers = [worker_of(&hub, "lead").await, worker_of(&hub, "other").await];
    (hub, workers)
}

async fn succeeds(hub: &TestHub, args: &[&str]) -> String {
    let output = hub.run(args).await;
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[tokio::test]
async fn the_operator_sees_paths() {
    let (hub, _) = two_workers().await;
    let paths = |found: &Value, list: &str| -> Vec<String> {
        let listed = found[list].as_array().unwrap().iter();
        listed.map(|one| one["session_path"].as_str().unwrap().to_owned()).collect()
    };
    let pending = hub.call("loopback.pending", json!({})).await.unwrap();
    assert_eq!(paths(&pending, "approvals"), ["lead/worker", "other/worker"]);
    let streams = hub.call("claudecode.streams", json!({})).await.unwrap();
    assert_eq!(paths(&streams, "streams"), ["lead/worker", "other/worker"]);
    let waited = hub.call("loopback.wait", json!({})).await.unwrap();
    assert_eq!(paths(&waited, "approvals"), ["lead/worker", "other/worker"]);

    let ls = succeeds(&hub, &["ls"]).await;
    let names: Vec<&str> = ls.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["NAME", "lead", "lead/worker", "other", "other/worker"], "{ls}");
    let approvals = succeeds(&hub, &["approvals"]).await;
    assert!(approvals.contains("lead/worker wants to use Bash"), "{approvals}");
    let audit = succeeds(&hub, &["audit", "--kind", "session"]).await;
    assert!(audit.contains(" lead/worker ") && audit.contains(" other/worker "), "{audit}");
    let refused = hub.run(&["logs", "worker"]).await;
    let refused = text(&refused.stderr);
    assert!(refused.contains("`lead/worker`") && refused.contains("`other/worker`"), "{refused}");
}

#[tokio::test]
async fn an_agent_sees_the_path_below_itself_and_no_ancestor() {
    let hub = TestHub::start().await;
    let create = json!({"name": "top", "working_dir": hub.work(), "hub_tools": true});
    let top = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let top = Rpc::new(hub.process.url(), &hub.token_of_outside_run(&top).await);
    let create = json!({"name": "lead", "working_dir": hub.work(), "hub_tools": true});
    let lead = top.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let lead = Rpc::new(hub.process.url(), &hub.token_of_outside_run(&lead).await);
    let prompt = json!([{"tool": "Bash", "input": {"command": "touch made"}}]).to_string();
    let create = json!({"name": "worker", "working_dir": hub.work(), "prompt": prompt});
    let worker = lead.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let approval = hub.first_approval(&worker).await;
    let get = json!({"approval_id": approval});
    for (caller, expected) in [(&lead, "lead/worker"), (&top, "top/lead/worker")] {
        let seen = caller.call("loopback.get", get.clone()).await.unwrap();
        assert_eq!(seen["approval"]["session_path"], expected);
        let poll = caller.call("claudecode.poll", json!({"session_id": worker})).await.unwrap();
        assert_eq!(poll["pending_approvals"][0]["session_path"], expected);
    }
}

#[tokio::test]
async fn watch_shows_and_filters_by_paths() {
    let (hub, _) = two_workers().await;
    let mut command = plexus(hub.folder.path());
    command.args(["watch", "--data-dir"]).arg(hub.process.data_dir()).env("TERM", "xterm");
    let mut terminal = Terminal::start(command);
    terminal.shows("lead/worker: Bash touch made").await;
    terminal.shows("other/worker: Bash touch made").await;
    terminal.types("/other\r");
    terminal
        .until("only one of them is listed", |screen| {
            screen.contains("other/worker: Bash") && !screen.contains("lead/worker: Bash")
        })
        .await;
    terminal.types("q");
    assert!(terminal.gives_back().await.success());
}

#[tokio::test]
async fn every_verb_accepts_a_path() {
    let (hub, [worker, _]) = two_workers().await;
    let approval = hub.first_approval(&worker).await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    let ended = json!({"session_id": worker, "from_seq": 1_000_000, "wait_ms": 20_000});
    let poll = tokio::time::timeout(LIMIT, hub.call("claudecode.poll", ended)).await.unwrap().unwrap();
    assert_eq!(poll["status"], "complete");
    let path = "lead/worker";
    for args in [
        &["logs", path][..],
        &["logs", path, "--raw"],
        &["logs", path, "--stderr"],
        &["transcript", path],
        &["attach", path],
        &["allow", "Read", "--session", path],
        &["rules", "--session", path],
        &["audit", "--session", path],
        &["fork", path, "copy"],
        &["send", path, r#"[{"say": "again"}]"#],
        &["interrupt", path],
        &["stop", path],
    ] {
        succeeds(&hub, args).await;
    }
    let diff = text(&hub.run(&["diff", path]).await.stderr);
    assert!(diff.contains("has no worktree of its own"), "{diff}");
    succeeds(&hub, &["rename", path, "helper"]).await;
    let removed = succeeds(&hub, &["rm", "lead/helper", "--yes"]).await;
    assert!(removed.starts_with("deleted lead/helper"), "{removed}");
    let left = succeeds(&hub, &["ls"]).await;
    assert!(left.contains("other/worker") && !left.contains("helper"), "{left}");
}
