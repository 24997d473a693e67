//! A line that is half typed when an approval request appears.

use plexus_testkit::pty::{CTRL_D, Pty};
use serde_json::json;

use super::{at_terminal, events, touch};
use crate::support::TestHub;

/// Attaches to a session that waits for the file `go` and then requests approval.
async fn waiting_session(hub: &TestHub) -> Pty {
    let wait = json!({"tool": "Bash", "input": {"command": "until [ -e ../go ]; do sleep 0.05; done"}});
    let asks = json!({"tool": "Edit", "input": {"file_path": "x", "old_string": "a", "new_string": "b"}});
    let rules = json!([{"rule": "Bash", "effect": "allow"}]);
    let create = json!({"name": "a", "working_dir": hub.work(), "prompt": json!([wait, asks]).to_string(), "rules": rules});
    hub.call("claudecode.create", create).await.unwrap();
    let mut attached = at_terminal(hub, &["attach", "a"], "true");
    attached.expect("] Bash until").await.unwrap();
    attached
}

fn go(hub: &TestHub) {
    std::fs::write(hub.folder.path().join("go"), "").unwrap();
}

#[tokio::test]
async fn a_half_typed_line_is_back_after_the_answer() {
    let hub = TestHub::start().await;
    let mut attached = waiting_session(&hub).await;
    attached.press("use the othe").unwrap();
    attached.expect("a> use the othe").await.unwrap();
    go(&hub);
    attached.expect("plexus: your line is kept").await.unwrap();
    attached.expect("a> use the othe").await.unwrap();
    attached.press("\t").unwrap();
    attached.expect("Allow it? y,").await.unwrap();
    attached.press("n\n").unwrap();
    attached.expect("Denied: Edit").await.unwrap();
    attached.expect("* complete").await.unwrap();
    attached.expect("a> use the othe").await.unwrap();
    attached.press("\u{7f}er\u{15}[{\"say\":\"done\"}]\n").unwrap();
    attached.expect("│").await.unwrap();
    attached.expect(" done").await.unwrap();
    attached.expect("a> ").await.unwrap();
    attached.press(CTRL_D).unwrap();
    assert_eq!(attached.end().await.unwrap(), 0, "{}", attached.shown());
}

#[tokio::test]
async fn keys_of_a_half_typed_line_never_answer_an_approval() {
    let hub = TestHub::start().await;
    let mut attached = waiting_session(&hub).await;
    attached.press("wh").unwrap();
    attached.expect("a> wh").await.unwrap();
    go(&hub);
    attached.expect("plexus: your line is kept").await.unwrap();
    // The rest of the line would allow the call.
    attached.press("\u{15}y\n").unwrap();
    attached.expect("Allow it? y,").await.unwrap();
    let events = events(&hub, "a").await;
    assert!(events.contains("\"subtype\":\"sent\"") && !events.contains("approval_resolved"), "{events}");
    attached.press("n\n").unwrap();
    attached.expect("Denied: Edit").await.unwrap();
    attached.press(CTRL_D).unwrap();
    attached.end().await.unwrap();
}

#[tokio::test]
async fn run_keeps_a_half_typed_line_and_says_that_it_takes_no_messages() {
    let hub = TestHub::start().await;
    let wait = json!({"tool": "Bash", "input": {"command": "until [ -e ../go ]; do sleep 0.05; done"}});
    let prompt = json!([wait, {"tool": "Bash", "input": {"command": "touch made"}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("Allow it? y,").await.unwrap();
    run.press("y\n").unwrap();
    run.expect("] Bash until").await.unwrap();
    run.press("y").unwrap();
    run.expect("not sent> y").await.unwrap();
    go(&hub);
    run.expect("Enter discards it").await.unwrap();
    run.press("\n").unwrap();
    run.expect("run takes no messages").await.unwrap();
    run.expect("Allow it? y,").await.unwrap();
    assert!(!hub.work().join("made").exists());
    run.press("n\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
}

#[tokio::test]
async fn the_terminal_is_usable_after_a_session() {
    let hub = TestHub::start().await;
    let env = [
        ("HOME", hub.folder.path().to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm".to_owned()),
        ("PROMPT", touch(&["made"])),
        ("PLEXUS", env!("CARGO_BIN_EXE_plexus").to_owned()),
        ("PLEXUS_DATA_DIR", hub.process.data_dir().to_str().unwrap().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let script = "stty -a >before; \"$PLEXUS\" run --name a \"$PROMPT\"; stty -a >after; cmp before after && echo the same mode";
    let mut shell = Pty::start("/bin/sh".as_ref(), &["-c", script], &hub.work(), &env).unwrap();
    shell.expect("Allow it?").await.unwrap();
    shell.press(CTRL_D).unwrap();
    shell.expect("the same mode").await.unwrap();
    shell.end().await.unwrap();
}

#[tokio::test]
async fn keys_answer_again_after_ctrl_z() {
    let hub = TestHub::start().await;
    hub.asking_session("a").await;
    let env = [
        ("HOME", hub.folder.path().to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm".to_owned()),
        ("PS1", "shell> ".to_owned()),
        ("PLEXUS", env!("CARGO_BIN_EXE_plexus").to_owned()),
        ("PLEXUS_DATA_DIR", hub.process.data_dir().to_str().unwrap().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let mut shell =
        Pty::start("/bin/bash".as_ref(), &["--norc", "--noprofile", "-i"], &hub.work(), &env).unwrap();
    shell.expect("shell> ").await.unwrap();
    shell.press("\"$PLEXUS\" attach a\n").unwrap();
    shell.expect("Allow it? y,").await.unwrap();
    shell.press("\u{1a}").unwrap();
    shell.expect("Stopped").await.unwrap();
    shell.expect("shell> ").await.unwrap();
    shell.press("fg\n").unwrap();
    shell.expect("Allow it? y,").await.unwrap();
    shell.press("n\n").unwrap();
    shell.expect("Denied: Bash").await.unwrap();
    shell.expect("a> ").await.unwrap();
    shell.press(CTRL_D).unwrap();
    shell.expect("shell> ").await.unwrap();
    shell.press("exit\n").unwrap();
    shell.end().await.unwrap();
}
