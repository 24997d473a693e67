//! The verbs of a working day: `ls`, `approvals`, `approve`, `deny`, `logs`, `stop`.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::{LIMIT, TestHub, plexus, text};
use crate::transcript;

async fn compare(hub: &TestHub, name: &str, args: &[&str], words: &[(&str, &str)]) -> Output {
    let output = hub.run(args).await;
    let folder = hub.folder.path().to_str().unwrap();
    let words: Vec<(&str, &str)> = words.iter().copied().chain([(folder, "FOLDER")]).collect();
    transcript::matches(name, &args.join(" "), &output, &words);
    output
}

/// Waits until the latest turn of a session is over.
async fn over(hub: &TestHub, session: &str) -> Value {
    let ended = async {
        loop {
            let poll = json!({"session_id": session, "from_seq": 1_000_000, "wait_ms": 1000});
            let seen = hub.call("claudecode.poll", poll).await.unwrap();
            if matches!(seen["status"].as_str(), Some("complete" | "failed" | "interrupted")) {
                return seen["status"].clone();
            }
        }
    };
    tokio::time::timeout(LIMIT, ended).await.expect("the turn ends")
}

#[tokio::test]
async fn a_day_at_the_command_line() {
    let hub = TestHub::start().await;
    compare(&hub, "ls-empty", &["ls"], &[]).await;
    let (session, approval) = hub.asking_session("fixer").await;
    let id = &approval[..8];
    compare(&hub, "ls", &["ls"], &[]).await;
    let open = hub.run(&["approvals"]).await;
    let shown = text(&open.stdout);
    let row = shown.lines().nth(1).unwrap();
    assert!(
        row.starts_with(id) && row.contains("fixer") && row.ends_with("you       Bash  touch made"),
        "{shown}"
    );
    let none = compare(&hub, "approve-unknown", &["approve", "zzz"], &[]).await;
    assert_eq!(none.status.code(), Some(1));
    compare(&hub, "approve", &["approve", &approval[..6]], &[(&approval[..6], "ID")]).await;
    assert_eq!(over(&hub, &session).await, "complete");
    assert!(hub.work().join("made").exists());
    compare(&hub, "logs", &["logs", "fixer"], &[(id, "ID")]).await;
    let late = compare(&hub, "approve-late", &["approve", &approval], &[(&approval, "ID")]).await;
    assert_eq!(late.status.code(), Some(1));
    compare(&hub, "stop", &["stop", "fixer"], &[]).await;
    compare(&hub, "stop-unknown", &["stop", "nobody"], &[]).await;
    compare(&hub, "approvals-empty", &["approvals"], &[]).await;
}

#[tokio::test]
async fn a_denial_reaches_the_agent_with_its_reason() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("a").await;
    compare(&hub, "deny", &["deny", &approval, "-m", "not here"], &[(&approval, "ID")]).await;
    over(&hub, &session).await;
    assert!(!hub.work().join("made").exists(), "a denied call never runs");
    let said = text(&hub.run(&["logs", "a"]).await.stdout);
    assert!(said.contains("= denied by you: not here") && said.contains("  ! "), "{said}");
}

#[tokio::test]
async fn an_edited_input_is_what_runs_and_an_untouched_one_is_a_plain_yes() {
    let hub = TestHub::start().await;
    let data_dir = hub.process.data_dir().to_str().unwrap().to_owned();
    let edit = |id: String, editor: &'static str| {
        let mut command = tokio::process::Command::from(plexus(hub.folder.path()));
        command.args(["approve", &id, "--edit", "--data-dir", &data_dir]).env("EDITOR", editor);
        command.stdin(std::process::Stdio::null());
        async move { tokio::time::timeout(LIMIT, command.output()).await.expect("it ends").unwrap() }
    };
    let (session, approval) = hub.asking_session("a").await;
    let broken = edit(approval.clone(), "sh -c 'echo \"{\" >\"$1\"' x").await;
    assert_eq!(broken.status.code(), Some(1), "{}", text(&broken.stderr));
    assert!(text(&broken.stderr).contains("no JSON object"), "{}", text(&broken.stderr));
    let changed = edit(approval, "sed -i s/made/changed/").await;
    assert!(changed.status.success(), "{}", text(&changed.stderr));
    over(&hub, &session).await;
    assert!(hub.work().join("changed").exists() && !hub.work().join("made").exists());
    let (session, approval) = hub.asking_session("b").await;
    assert!(edit(approval.clone(), "true").await.status.success());
    over(&hub, &session).await;
    assert!(hub.work().join("made").exists());
    let found = hub.call("loopback.get", json!({"approval_id": approval})).await.unwrap();
    assert_eq!(found["approval"]["decision"].get("updated_input"), None, "{found}");
}

#[tokio::test]
async fn always_makes_a_rule() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("a").await;
    let allowed = hub.run(&["approve", &approval, "--always"]).await;
    assert!(allowed.status.success(), "{}", text(&allowed.stderr));
    over(&hub, &session).await;
    let rules = hub.call("policy.list", json!({"session_id": session})).await.unwrap();
    assert_eq!(rules["rules"][0]["rule"], "Bash(touch made)");
}

#[tokio::test]
async fn verbs_speak_json_to_programs() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("a").await;
    let json = |output: Output| -> Value { serde_json::from_slice(&output.stdout).unwrap() };
    assert_eq!(json(hub.run(&["ls", "--json"]).await)[0]["id"], session.as_str());
    assert_eq!(json(hub.run(&["approvals", "--json"]).await)[0]["id"], approval.as_str());
    assert_eq!(json(hub.run(&["deny", &approval, "--json"]).await)["type"], "ok");
    let logs = text(&hub.run(&["logs", "a", "--json"]).await.stdout);
    let first: Value = serde_json::from_str(logs.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["turn"], &first["seq"], &first["event"]["type"]),
        (&json!(1), &json!(0), &json!("start"))
    );
}

#[tokio::test]
async fn a_watched_tree_shows_a_session_that_is_new_and_what_becomes_of_it() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let hub = TestHub::start().await;
    let mut command = tokio::process::Command::from(plexus(hub.folder.path()));
    command.args(["ls", "-w", "--json", "--data-dir"]).arg(hub.process.data_dir());
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut watching = command.spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut state = async |wanted: &str| {
        let seen = async {
            loop {
                let line = lines.next_line().await.unwrap().expect("it goes on");
                let sessions: Value = serde_json::from_str(&line).unwrap();
                if sessions[0]["status"].as_str().unwrap_or("none") == wanted {
                    return;
                }
            }
        };
        tokio::time::timeout(LIMIT, seen).await.unwrap_or_else(|_| panic!("{wanted} is never shown"));
    };
    state("none").await;
    let (_, approval) = hub.asking_session("a").await;
    state("awaiting_permission").await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    state("complete").await;
}

#[tokio::test]
async fn a_follower_goes_on_where_it_was_when_the_hub_comes_back() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let mut hub = TestHub::start().await;
    let (_, approval) = hub.asking_session("a").await;
    let mut command = tokio::process::Command::from(plexus(hub.folder.path()));
    command.args(["logs", "a", "-f", "--json", "--data-dir"]).arg(hub.process.data_dir());
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    command.stderr(std::process::Stdio::piped());
    let mut following = command.spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut words = BufReader::new(following.stderr.take().unwrap()).lines();
    let mut seen: Vec<Value> = Vec::new();
    let mut up_to = async |kind: &str| {
        let told = async {
            while seen.last().is_none_or(|last| last["event"]["type"] != kind) {
                let line = lines.next_line().await.unwrap().expect("it goes on");
                seen.push(serde_json::from_str(&line).unwrap());
            }
        };
        tokio::time::timeout(LIMIT, told).await.unwrap_or_else(|_| panic!("no {kind}"));
        seen.clone()
    };
    up_to("approval_requested").await;
    hub.process.kill9().await.unwrap();
    let away = tokio::time::timeout(LIMIT, words.next_line()).await.unwrap().unwrap().unwrap();
    assert!(away.contains("the hub is away"), "{away}");
    hub.process.restart().await.unwrap();
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    let seqs: Vec<u64> = up_to("complete").await.iter().map(|told| told["seq"].as_u64().unwrap()).collect();
    let all: Vec<u64> = (0..seqs.len() as u64).collect();
    assert_eq!(seqs, all, "each event once, and in order");
}
