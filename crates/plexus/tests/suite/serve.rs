//! `plexus serve` and `plexus down`: the data directory, the address, start and stop.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{LIMIT, TestHub, run, text};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

#[tokio::test]
async fn a_hub_prints_its_address_and_keeps_its_files_private() {
    let hub = TestHub::start().await;
    let dir = hub.process.data_dir();
    let note: Value = serde_json::from_slice(&std::fs::read(dir.join("hub.json")).unwrap()).unwrap();
    assert_eq!(note["url"], hub.process.url());
    assert_eq!(note["pid"], hub.process.pid());
    assert_eq!(note["key"].as_str().unwrap().len(), 130, "{note}");
    assert_eq!(mode(dir), 0o700);
    for name in ["operator.token", "identity.key", "hub.sock", "plexus.db"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
    assert_eq!(hub.process.token().unwrap().len(), 64);
}

#[tokio::test]
async fn a_second_hub_is_rejected_and_names_the_first() {
    let hub = TestHub::start().await;
    let second = hub.run(&["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(second.status.code(), Some(1));
    assert!(second.stdout.is_empty());
    let said = text(&second.stderr);
    assert!(said.contains(&format!("process {}", hub.process.pid())), "{said}");
}

#[tokio::test]
async fn a_port_in_use_and_a_public_address_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let dir = dir.to_str().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = run(&["serve", "--data-dir", dir, "--listen", &address], folder.path()).await;
    assert_eq!(refused.status.code(), Some(5));
    assert!(
        text(&refused.stderr).contains(&format!("another program uses {address}")),
        "{}",
        text(&refused.stderr)
    );
    let refused = run(&["serve", "--data-dir", dir, "--listen", "0.0.0.0:0"], folder.path()).await;
    assert_eq!(refused.status.code(), Some(5));
    assert!(text(&refused.stderr).contains("loopback only"));
}

#[tokio::test]
async fn an_unusable_data_directory_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = run(&["serve", "--data-dir", file.to_str().unwrap()], folder.path()).await;
    assert_eq!(refused.status.code(), Some(4));
    assert!(text(&refused.stderr).contains(file.to_str().unwrap()));
}

#[tokio::test]
async fn unknown_settings_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plexus.toml"), "colour = 1\n").unwrap();
    let refused = run(&["serve", "--data-dir", folder.path().to_str().unwrap()], folder.path()).await;
    assert_eq!(refused.status.code(), Some(3));
    assert!(text(&refused.stderr).contains("colour"));
}

#[tokio::test]
async fn a_restarted_hub_has_the_same_address_and_token() {
    let mut hub = TestHub::start().await;
    let (url, token) = (hub.process.url().to_owned(), hub.process.token().unwrap());
    let status = hub.process.terminate().await.unwrap();
    assert!(status.success());
    assert!(!hub.process.data_dir().join("hub.json").exists());
    hub.process.restart().await.unwrap();
    assert_eq!((hub.process.url(), hub.process.token().unwrap().as_str()), (url.as_str(), token.as_str()));
    hub.process.kill9().await.unwrap();
    hub.process.restart().await.unwrap();
    assert_eq!(hub.process.url(), url);
}

#[tokio::test]
async fn a_signal_leaves_the_children_and_reports_it() {
    let mut hub = TestHub::start().await;
    let (_, approval) = hub.asking_session("a").await;
    hub.process.terminate().await.unwrap();
    let said = hub.process.stderr();
    assert!(said.contains("1 child is paused") && said.contains("plexus down"), "{said}");
    hub.process.restart().await.unwrap();
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    let made = hub.work().join("made");
    let ran = async {
        while !made.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, ran).await.expect("the child still runs");
}

#[tokio::test]
async fn down_stops_hub_and_children() {
    let mut hub = TestHub::start().await;
    let (session, _) = hub.asking_session("a").await;
    let down = hub.run(&["down"]).await;
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert!(text(&down.stderr).contains("stopped the hub and 1 child"), "{}", text(&down.stderr));
    assert!(hub.process.wait().await.unwrap().success());
    assert_eq!(processes_of(&session), Vec::<String>::new());
    let again = hub.run(&["down"]).await;
    assert!(text(&again.stderr).contains("no hub was running"), "{}", text(&again.stderr));
}

#[tokio::test]
async fn down_stops_the_children_of_a_killed_hub() {
    let mut hub = TestHub::start().await;
    let (session, _) = hub.asking_session("a").await;
    hub.process.kill9().await.unwrap();
    assert_ne!(processes_of(&session), Vec::<String>::new(), "the keeper still runs");
    let down = hub.run(&["down"]).await;
    assert!(
        down.status.success()
            && text(&down.stderr).contains("no hub was running")
            && text(&down.stderr).contains("1 child"),
        "{}",
        text(&down.stderr)
    );
    assert_eq!(processes_of(&session), Vec::<String>::new());
}

/// The command lines of all running processes that contain this session id.
fn processes_of(session: &str) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(session)).collect()
}
