//! The processes of a run when it ends, however it ends.

mod common;

use common::{Run, gone};
use plexus_agent::{read_exit, sweep};

/// A shell that leaves the process group and the process session of the child, writes its pid and keeps running.
const STRAGGLER: &str = "(setsid sh -c 'trap \"\" TERM HUP; echo $$; while :; do sleep 300; done' &)";

#[tokio::test]
async fn processes_outside_the_process_group_end_with_the_child() {
    let mut run = Run::start(&format!("{STRAGGLER}; read -r line; exit 3"));
    let straggler = run.process().await;
    run.outbox.append(r#"{"type":"end"}"#).unwrap();
    assert_eq!(run.exit().await.code, Some(3));
    assert!(!straggler.is_alive());
    assert_eq!(sweep(&run.session).unwrap(), 0);
}

#[tokio::test]
async fn a_child_dies_with_its_keeper_and_a_sweep_finds_its_processes() {
    // The child does not read, so that the end of its stdin does not end it.
    let mut run = Run::start(&format!("echo $$; {STRAGGLER}; while :; do sleep 300; done"));
    let child = run.process().await;
    let straggler = run.process().await;
    run.keeper.kill().unwrap();
    gone(run.keeper.identity()).await;
    gone(&child).await;
    assert!(straggler.is_alive(), "no signal was sent yet");
    assert!(sweep(&run.session).unwrap() >= 1);
    gone(&straggler).await;
    assert_eq!(read_exit(&run.dir), None, "no process was left to store the exit");
}

#[tokio::test]
async fn stop_ends_a_child_that_ignores_signals() {
    let mut run =
        Run::start(&format!("trap '' TERM HUP INT; echo $$; {STRAGGLER}; while :; do sleep 300; done"));
    let child = run.process().await;
    let straggler = run.process().await;
    std::fs::write(run.dir.mcp_config(), "{}").unwrap();
    run.keeper.stop(&run.dir, &run.session).await;
    assert!(!run.keeper.identity().is_alive());
    assert!(!child.is_alive());
    assert!(!straggler.is_alive());
    assert_eq!(sweep(&run.session).unwrap(), 0);
    assert_eq!(read_exit(&run.dir).unwrap().signal, Some(9));
    assert!(!run.dir.mcp_config().exists(), "the run's token is gone with it");
}

#[tokio::test]
async fn stop_lets_a_responsive_child_exit_cleanly() {
    let mut run =
        Run::start("trap '' INT; trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done");
    assert_eq!(run.line().await, "ready");
    run.keeper.stop(&run.dir, &run.session).await;
    assert_eq!(run.line().await, "bye");
    assert_eq!(run.exit().await.code, Some(5));
}

#[tokio::test]
async fn stop_sends_sigint_then_sigterm_then_sigkill_to_the_whole_tree() {
    // Each process reports the signals that it gets. A background process of a shell ignores SIGINT.
    let straggler =
        "(setsid sh -c 'trap \"echo straggler; exit\" TERM; echo up; while :; do sleep 0.01; done' &)";
    let child =
        "trap 'echo asked' INT; trap 'echo told' TERM; trap '' HUP; echo up; while :; do sleep 0.01; done";
    let mut run = Run::start(&format!("{straggler}; {child}"));
    for _ in 0..2 {
        assert_eq!(run.line().await, "up");
    }
    run.keeper.stop(&run.dir, &run.session).await;
    assert_eq!(run.line().await, "asked");
    let mut told = [run.line().await, run.line().await];
    told.sort();
    assert_eq!(told, ["straggler", "told"]);
    assert_eq!(run.exit().await.signal, Some(9), "and then killed");
    assert_eq!(sweep(&run.session).unwrap(), 0);
}

#[tokio::test]
async fn stopping_an_ended_run_is_not_an_error() {
    let run = Run::start("exit 0");
    assert_eq!(run.exit().await.code, Some(0));
    run.keeper.stop(&run.dir, &run.session).await;
}

#[tokio::test]
async fn orphans_are_reaped_while_the_child_runs() {
    let mut run = Run::start("for n in 1 2 3 4 5; do (sh -c 'echo $$' &); done; exec cat");
    for _ in 0..5 {
        let pid = run.line().await;
        // A reaped process is not in /proc. A zombie would be.
        common::within("an orphan to be reaped", async {
            while std::path::Path::new(&format!("/proc/{pid}")).exists() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}
