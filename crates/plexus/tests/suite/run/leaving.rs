//! Interrupting a turn, leaving a session, coming back, and exit codes.

use plexus_testkit::pty::{CTRL_C, CTRL_D};
use serde_json::{Value, json};

use super::{at_terminal, touch};
use crate::support::{TestHub, text};

#[tokio::test]
async fn ctrl_c_interrupts_the_turn() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], "true");
    run.expect("Allow it?").await.unwrap();
    run.press(CTRL_C).unwrap();
    run.expect("interrupting the turn").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 130, "{}", run.shown());
    let session = hub.call("claudecode.get", json!({"name": "a"})).await.unwrap();
    assert_eq!(session["session"]["status"], "interrupted");
    assert!(!hub.work().join("made").exists());
}

#[tokio::test]
async fn attach_answers_and_sends_the_next_prompt() {
    let hub = TestHub::start().await;
    let (_, _) = hub.asking_session("a").await;
    let mut attached = at_terminal(&hub, &["attach", "a"], "true");
    attached.expect("touch made").await.unwrap();
    attached.expect("Allow it?").await.unwrap();
    attached.press("y\n").unwrap();
    attached.expect("* complete").await.unwrap();
    attached.expect("a> ").await.unwrap();
    attached.press("[{\"say\":\"hello again\"}]\n").unwrap();
    attached.expect("hello again").await.unwrap();
    attached.expect("* complete").await.unwrap();
    attached.expect("a> ").await.unwrap();
    attached.press(CTRL_D).unwrap();
    assert_eq!(attached.end().await.unwrap(), 0, "{}", attached.shown());
}

#[tokio::test]
async fn prompts_are_shown_once_and_also_those_of_others() {
    let hub = TestHub::start().await;
    let (id, _) = hub.asking_session("a").await;
    let mut attached = at_terminal(&hub, &["attach", "a"], "true");
    attached.expect("» [{").await.unwrap();
    attached.expect("Allow it?").await.unwrap();
    attached.press("s\n").unwrap();
    attached.expect("plexus approve ").await.unwrap();
    hub.call("claudecode.send", json!({"session_id": id, "prompt": "from \u{1b}elsewhere"})).await.unwrap();
    attached.expect("» from \\u{1b}elsewhere").await.unwrap();
    attached.press("from here\n").unwrap();
    attached.expect("a> from here").await.unwrap();
    let sent = async {
        while !super::events(&hub, "a").await.contains("from here") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::support::LIMIT, sent).await.unwrap();
    attached.press(CTRL_D).unwrap();
    attached.end().await.unwrap();
    assert!(!attached.shown().contains("» from here"), "{}", attached.shown());
    let logs = text(&hub.run(&["logs", "a"]).await.stdout);
    for prompt in ["-- turn 1\n» [{", "\n» from \\u{1b}elsewhere\n", "\n» from here\n"] {
        assert!(logs.contains(prompt), "{prompt:?}: {logs}");
    }
}

#[tokio::test]
async fn the_exit_code_is_the_outcome_of_the_turn() {
    let hub = TestHub::start().await;
    let failed = hub.run(&["run", "[{\"result_error\":\"the model is away\"}]"]).await;
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    let json = hub.run(&["run", "--name", "b", "--json", "[{\"say\":\"hi\"}]"]).await;
    assert_eq!(json.status.code(), Some(0));
    let lines: Vec<Value> =
        text(&json.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event"]["type"], "start");
    assert_eq!(lines.last().unwrap()["status"], "complete");
    let usage = hub.run(&["run", "--env", "NOT_SET", "x"]).await;
    assert_eq!(usage.status.code(), Some(2), "{}", text(&usage.stderr));
    let taken = hub.run(&["run", "--name", "b", "x"]).await;
    assert_eq!(taken.status.code(), Some(1), "{}", text(&taken.stderr));
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_the_session_running() {
    use rustix::process::{Pid, Signal, kill_process};
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], "true");
    run.expect("Allow it?").await.unwrap();
    // The hub does not respond, so the interrupt stays pending.
    let pid = Pid::from_raw(hub.process.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    run.press(CTRL_C).unwrap();
    run.expect("interrupting the turn").await.unwrap();
    run.press(CTRL_C).unwrap();
    run.expect("detached; a keeps running").await.unwrap();
    let code = run.end().await;
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(code.unwrap(), 130);
}

#[tokio::test]
async fn a_verb_reports_a_frozen_hub_and_exits() {
    use rustix::process::{Pid, Signal, kill_process};
    let hub = TestHub::start().await;
    let pid = Pid::from_raw(hub.process.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let met = hub.run(&["ls"]).await;
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(met.status.code(), Some(1), "{met:?}");
    let said = text(&met.stderr);
    assert!(
        said.contains("has not responded") && said.contains(&format!("kill -CONT {}", hub.process.pid())),
        "{said}"
    );
    assert_eq!(hub.run(&["ls"]).await.status.code(), Some(0));
}

#[tokio::test]
async fn a_frozen_hub_is_shown_as_disconnected_and_takes_no_answers() {
    use rustix::process::{Pid, Signal, kill_process};
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], "true");
    run.expect("Allow it? y,").await.unwrap();
    let pid = Pid::from_raw(hub.process.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let disconnected = run.expect("Disconnected").await;
    run.press("y\n").unwrap();
    let prompts = run.shown().matches("Allow it?").count();
    kill_process(pid, Signal::CONT).unwrap();
    disconnected.unwrap();
    run.expect("Reconnected.").await.unwrap();
    run.expect("touch made").await.unwrap();
    run.expect("Allow it? y,").await.unwrap();
    assert_eq!((prompts, hub.work().join("made").exists()), (1, false), "input typed meanwhile is ignored");
    run.press("y\n").unwrap();
    run.expect("Allowed: Bash touch made (a)").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("made").exists());
}

#[tokio::test]
async fn ctrl_d_leaves_the_session_running() {
    let hub = TestHub::start().await;
    let wait = json!([{"tool": "Bash", "input": {"command": "until [ -e ../go ]; do sleep 0.05; done"}}])
        .to_string();
    // At a prompt, and while the agent works.
    let mut asked = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], "true");
    asked.expect("Allow it?").await.unwrap();
    asked.press(CTRL_D).unwrap();
    asked.expect("detached; a keeps running, and `plexus attach a` shows it again").await.unwrap();
    assert_eq!(asked.end().await.unwrap(), 130, "{}", asked.shown());
    let mut working = at_terminal(&hub, &["run", "--name", "b", "--policy", "allow_all", &wait], "true");
    working.expect("] Bash until").await.unwrap();
    working.press(CTRL_D).unwrap();
    working.expect("detached; b keeps running, and `plexus attach b` shows it again").await.unwrap();
    assert_eq!(working.end().await.unwrap(), 130, "{}", working.shown());
    for name in ["a", "b"] {
        let session = hub.call("claudecode.get", json!({"name": name})).await.unwrap();
        assert!(session["session"]["status"] != "interrupted", "{session}");
    }
    std::fs::write(hub.folder.path().join("go"), "").unwrap();
}
