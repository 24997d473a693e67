//! `plexus NAMESPACE METHOD`: the hub's methods as commands.

use serde_json::{Value, json};

use crate::support::{LIMIT, TestHub, run, text};

#[tokio::test]
async fn methods_are_commands_with_flags_and_help() {
    let hub = TestHub::start().await;
    let work = hub.work();
    let created =
        hub.run(&["claudecode", "create", "--name", "a", "--working-dir", work.to_str().unwrap()]).await;
    assert!(created.status.success(), "{}", text(&created.stderr));
    let result: Value = serde_json::from_slice(&created.stdout).unwrap();
    assert_eq!(result["type"], "created");
    let listed = hub.run(&["claudecode", "list"]).await;
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["sessions"][0]["name"], "a");
    let help = hub.run(&["claudecode", "--help"]).await;
    assert!(help.status.success());
    assert!(text(&help.stdout).contains("chat-async"), "{}", text(&help.stdout));
    let help = hub.run(&["loopback", "respond", "--help"]).await;
    assert!(text(&help.stdout).contains("--approval-id"), "{}", text(&help.stdout));
}

#[tokio::test]
async fn an_approval_is_answered_from_the_command_line() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("a").await;
    let allow = ["loopback", "respond", "--approval-id", &approval, "--approve", "true"];
    let unseen = hub.run(&allow).await;
    assert_eq!(unseen.status.code(), Some(2), "{}", text(&unseen.stderr));
    assert!(
        text(&unseen.stderr).contains("needs the digest of the call you read"),
        "{}",
        text(&unseen.stderr)
    );
    let digest = hub.digest(&approval).await;
    let answered = hub.run(&[&allow[..], &["--digest", &digest]].concat()).await;
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    let done = hub.call("claudecode.poll", json!({"session_id": session, "from_seq": 0})).await.unwrap();
    assert_eq!(done["pending_approvals"], json!([]));
}

#[tokio::test]
async fn an_error_of_the_hub_is_printed_on_stderr() {
    let hub = TestHub::start().await;
    let refused = hub.run(&["claudecode", "get", "--name", "nobody"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stdout.is_empty());
    assert!(text(&refused.stderr).contains("session_not_found"));
    let unknown = hub.run(&["frobnicate", "now"]).await;
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("audit, claudecode"), "{}", text(&unknown.stderr));
}

#[tokio::test]
async fn without_a_hub_the_error_names_the_command_that_starts_one() {
    let folder = tempfile::tempdir().unwrap();
    let alone =
        run(&["claudecode", "list", "--data-dir", folder.path().to_str().unwrap()], folder.path()).await;
    assert_eq!(alone.status.code(), Some(8));
    assert!(text(&alone.stderr).contains("plexus serve"));
}

#[tokio::test]
async fn a_process_of_a_child_cannot_use_the_operators_socket() {
    // Inside the sandbox the socket is not visible.
    let hub = TestHub::with_settings("wall = \"off\"\n").await;
    let plexus = env!("CARGO_BIN_EXE_plexus");
    let dir = hub.process.data_dir().display();
    let list = format!("{plexus} claudecode list --data-dir {dir}");
    // Once with the child's environment, once from a process without it.
    let command =
        format!("{list} >own 2>&1; echo $? >own.code; setsid -w {list} >left 2>&1; echo $? >left.code");
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let create = json!({"name": "a", "working_dir": hub.work(), "prompt": prompt});
    let session = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let approval = hub.first_approval(&session).await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    let done = async {
        loop {
            let seen =
                hub.call("claudecode.poll", json!({"session_id": session, "wait_ms": 500})).await.unwrap();
            if seen["status"] == "complete" {
                return;
            }
        }
    };
    tokio::time::timeout(LIMIT, done).await.expect("the turn ends");
    for name in ["own", "left"] {
        let said = std::fs::read_to_string(hub.work().join(name)).unwrap();
        let code = std::fs::read_to_string(hub.work().join(format!("{name}.code"))).unwrap();
        assert_eq!(code.trim(), "9", "{name}: {said}");
        assert!(said.contains("was lost") && !said.contains("sessions"), "{name}: {said}");
    }
}
