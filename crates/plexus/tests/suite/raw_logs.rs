//! `plexus logs --raw` and `--stderr`: the output of a session's process as it was written.

use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use crate::support::{LIMIT, TestHub, text};

/// A session whose process wrote a line to stderr that moves the cursor, and whose turn is over.
async fn finished(hub: &TestHub) -> String {
    let prompt = json!([{"stderr": "warning: \u{1b}[2J\n"}, {"say": "hello"}]).to_string();
    let create = json!({"name": "fixer", "working_dir": hub.work(), "prompt": prompt});
    let id = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let ended = async {
        loop {
            let poll = json!({"session_id": id, "from_seq": 1_000_000, "wait_ms": 500});
            if hub.call("claudecode.poll", poll).await.unwrap()["status"] == "complete" {
                return;
            }
        }
    };
    tokio::time::timeout(LIMIT, ended).await.expect("the turn ends");
    id
}

#[tokio::test]
async fn raw_lines_and_stderr_are_printed_unchanged_into_a_pipe() {
    let hub = TestHub::start().await;
    let id = finished(&hub).await;
    let journal = hub.process.data_dir().join("sessions").join(&id).join("runs/1/journal.jsonl");
    let raw = hub.run(&["logs", "fixer", "--raw"]).await;
    assert!(raw.status.success(), "{}", text(&raw.stderr));
    assert_eq!(text(&raw.stdout), std::fs::read_to_string(journal).unwrap());
    let stderr = hub.run(&["logs", "fixer", "--stderr", "--run", "1"]).await;
    assert_eq!(text(&stderr.stdout), "warning: \u{1b}[2J\n");
    let json = hub.run(&["logs", "fixer", "--stderr", "--json"]).await;
    let line: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&line["run"], &line["line"]["from"]), (&json!(1), &json!(0)), "{line}");
}

#[tokio::test]
async fn a_run_without_output_says_why() {
    let hub = TestHub::start().await;
    let id = finished(&hub).await;
    let message = |output: std::process::Output| (output.status.code(), text(&output.stderr));
    let (code, unknown) = message(hub.run(&["logs", "fixer", "--raw", "--run", "9"]).await);
    assert!(code == Some(1) && unknown.contains("run 9 does not exist; the latest is 1"), "{unknown}");
    hub.call("claudecode.stop", json!({"session_id": id})).await.unwrap();
    std::fs::remove_dir_all(hub.process.data_dir().join("sessions").join(&id).join("runs/1")).unwrap();
    let (_, gone) = message(hub.run(&["logs", "fixer", "--raw"]).await);
    assert!(gone.contains("the files of run 1 were deleted") && gone.contains("run_files_days"), "{gone}");
    let create = json!({"name": "new", "working_dir": hub.work()});
    hub.call("claudecode.create", create).await.unwrap();
    let (_, none) = message(hub.run(&["logs", "new", "--stderr"]).await);
    assert!(none.contains("session `new` has had no process yet"), "{none}");
    let (code, alone) = message(hub.run(&["logs", "fixer", "--run", "1"]).await);
    assert!(code == Some(2) && alone.contains("--raw|--stderr"), "{alone}");
}

#[tokio::test]
async fn only_the_operator_reads_raw_output() {
    let hub = TestHub::start().await;
    finished(&hub).await;
    let made = hub.call("token.new", json!({"name": "reader", "right": "read"})).await.unwrap();
    let reader = Rpc::new(hub.process.url(), made["token"].as_str().unwrap());
    let params = json!({"name": "fixer"});
    reader.call("claudecode.poll", params.clone()).await.expect("it may read the events");
    let refused = reader.call("claudecode.output", params).await.unwrap_err();
    assert_eq!(refused.data["type"], "forbidden", "{refused:?}");
}
