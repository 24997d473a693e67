//! A keeper and its child without their run directory, and without a hub.

mod common;

use std::time::Duration;

use common::{Run, gone, within};
use plexus_agent::ProcessIdentity;

/// A child that ignores SIGINT and SIGTERM, and a background process of it.
const UNRESPONSIVE: &str = "trap '' INT TERM; (setsid sh -c 'trap \"\" INT TERM HUP; echo $$; while :; do sleep 300; done' &); \
                    echo $$; while :; do sleep 300; done";

async fn started(run: &mut Run) -> Vec<ProcessIdentity> {
    vec![run.process().await, run.process().await, run.keeper.identity().clone()]
}

async fn all_end(processes: &[ProcessIdentity]) {
    for process in processes {
        gone(process).await;
    }
}

#[tokio::test]
async fn a_keeper_whose_directory_is_deleted_ends_its_child_and_itself() {
    let mut run = Run::start(UNRESPONSIVE);
    let processes = started(&mut run).await;
    std::fs::remove_dir_all(run.home.path().join("data")).unwrap();
    all_end(&processes).await;
    assert!(!run.home.path().join("data").exists(), "the deleted directory reappeared");
}

#[tokio::test]
async fn a_keeper_whose_directory_is_deleted_ends_its_sandboxed_child_without_a_hub() {
    let mut run = Run::start_sandboxed(UNRESPONSIVE, &[], None);
    let processes = started(&mut run).await;
    run.close_hub();
    std::fs::remove_dir_all(run.home.path().join("data")).unwrap();
    all_end(&processes).await;
}

#[tokio::test]
async fn a_renamed_directory_counts_as_deleted() {
    for renamed in ["data", "data/runs", "data/runs/1"] {
        let mut run = Run::start(UNRESPONSIVE);
        let processes = started(&mut run).await;
        std::fs::rename(run.home.path().join(renamed), run.home.path().join("moved")).unwrap();
        all_end(&processes).await;
    }
}

#[tokio::test]
async fn another_directory_in_its_place_is_not_changed() {
    let mut run = Run::start(UNRESPONSIVE);
    let processes = started(&mut run).await;
    std::fs::rename(run.home.path().join("data"), run.home.path().join("moved")).unwrap();
    std::fs::create_dir_all(run.dir.path()).unwrap();
    all_end(&processes).await;
    let left: Vec<_> = std::fs::read_dir(run.dir.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_keeper_that_waits_for_its_release_exits_without_its_directory() {
    let run = Run::prepare("touch ../started");
    // The keeper may still write its first files.
    while let Err(error) = std::fs::remove_dir_all(run.home.path().join("data")) {
        assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty);
    }
    within("the keeper to end", run.keeper.ended()).await;
    assert!(!run.home.path().join("started").exists());
}

#[tokio::test]
async fn changes_to_other_directories_have_no_effect() {
    let mut run = Run::start("echo started; exec cat");
    assert_eq!(run.line().await, "started", "the keeper has started");
    let beside = |path: &str| run.home.path().join(path);
    for other in ["data/runs/2", "data/other", "other"] {
        std::fs::create_dir_all(beside(other)).unwrap();
        std::fs::write(beside(other).join("file"), "").unwrap();
        std::fs::rename(beside(other), beside("moved")).unwrap();
        std::fs::remove_dir_all(beside("moved")).unwrap();
    }
    std::fs::remove_file(run.dir.launch()).unwrap();
    run.outbox.append(r#"{"type":"after"}"#).unwrap();
    assert_eq!(run.line().await, r#"{"type":"after"}"#);
}

const RESULT: &str = r#"{"type":"result","subtype":"success"}"#;

#[tokio::test]
async fn an_idle_child_is_ended_when_no_hub_connects() {
    // A child without a prompt, and a child after its turn.
    for first in ["", r#"{"type":"user","message":"work"}"#] {
        let script = format!("echo ready; while read -r line; do echo '{RESULT}'; done");
        let mut run = Run::start_with_limit(&script, Duration::ZERO);
        assert_eq!(run.line().await, "ready");
        if !first.is_empty() {
            run.outbox.append(first).unwrap();
            assert_eq!(run.line().await, RESULT);
        }
        run.close_hub();
        let exit = run.exit().await;
        assert_eq!(exit.error, None, "{exit:?}");
    }
}

#[tokio::test]
async fn a_child_with_a_turn_is_ended_when_the_turn_is_over_and_not_before() {
    for at_work in [r#"{"type":"control_request","request_id":"1"}"#, r#"{"type":"assistant"}"#, ""] {
        let script = format!(
            "read -r prompt; echo '{at_work}'; until [ -e go ]; do sleep 0.05; done; echo still here; echo '{RESULT}'; \
             while :; do sleep 300; done"
        );
        let mut run = Run::start_with_limit(&script, Duration::ZERO);
        run.outbox.append(r#"{"type":"user","message":"work"}"#).unwrap();
        assert_eq!(run.line().await, at_work);
        run.close_hub();
        std::fs::write(run.home.path().join("go"), "").unwrap();
        assert_eq!(run.line().await, "still here", "{at_work}");
        assert_eq!(run.line().await, RESULT);
        run.exit().await;
    }
}

#[tokio::test]
async fn a_hub_that_connects_in_time_finds_its_child() {
    let mut run =
        Run::start_with_limit("while read -r line; do echo \"$line\"; done", Duration::from_secs(3600));
    for line in [r#"{"type":"a"}"#, r#"{"type":"b"}"#, r#"{"type":"c"}"#] {
        run.outbox.append(line).unwrap();
        assert_eq!(run.line().await, line);
        run.close_hub();
        run.open_hub();
    }
}

#[tokio::test]
async fn a_silent_connected_hub_keeps_its_child() {
    // With a limit of zero, only a connected hub keeps the child. A stopped hub still has its files open.
    let mut run = Run::start_with_limit("while read -r line; do echo \"$line\"; done", Duration::ZERO);
    for line in [r#"{"type":"a"}"#, r#"{"type":"result"}"#, r#"{"type":"b"}"#] {
        run.outbox.append(line).unwrap();
        assert_eq!(run.line().await, line);
    }
    assert!(run.keeper.identity().is_alive());
}
