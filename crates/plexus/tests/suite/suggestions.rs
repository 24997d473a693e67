//! Errors that help: suggestions for misspelt words, and explanations before anything is started.

use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::rpc::Rpc;
use serde_json::json;

use crate::support::{TestHub, plexus, run, scripted_claude, text};

#[tokio::test]
async fn a_misspelt_verb_gets_a_suggestion_with_and_without_a_hub() {
    let hub = TestHub::start().await;
    let alone = tempfile::tempdir().unwrap();
    let none = alone.path().join("none").display().to_string();
    for (typed, meant) in [("lss", "ls"), ("aprove", "approve"), ("claudcode", "claudecode")] {
        let with = hub.run(&[typed]).await;
        let without = run(&[typed, "--data-dir", &none], alone.path()).await;
        for said in [with, without] {
            let message = text(&said.stderr);
            assert_eq!(said.status.code(), Some(2), "{message}");
            assert!(message.contains(&format!("did you mean `plexus {meant}`?")), "{message}");
        }
    }
    let flag = hub.run(&["claudecode", "create", "--workng-dir", "/"]).await;
    assert!(text(&flag.stderr).contains("'--working-dir'"), "{}", text(&flag.stderr));
    let help = run(&["claudecode", "--help", "--data-dir", &none], alone.path()).await;
    assert!(help.status.success() && text(&help.stdout).contains("chat-async"), "{}", text(&help.stderr));
}

#[tokio::test]
async fn a_misspelt_session_gets_a_suggestion() {
    let hub = TestHub::start().await;
    hub.asking_session("worker").await;
    for args in [&["stop", "wroker"][..], &["logs", "wroker"], &["claudecode", "get", "--name", "wroker"]] {
        let refused = hub.run(args).await;
        assert_eq!(refused.status.code(), Some(1));
        let said = text(&refused.stderr);
        assert_eq!(said, "plexus: no session `wroker`; did you mean `worker`?\n", "{args:?}");
    }
    let unlike = text(&hub.run(&["stop", "nobody"]).await.stderr);
    assert!(unlike.contains("`plexus ls` lists the sessions"), "{unlike}");
}

#[tokio::test]
async fn a_misspelt_part_of_a_path_gets_a_suggestion() {
    let hub = TestHub::start().await;
    let create = json!({"name": "lead", "working_dir": hub.work(), "hub_tools": true});
    let lead = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let as_lead = Rpc::new(hub.process.url(), &hub.token_of_outside_run(&lead).await);
    let create = json!({"name": "worker", "working_dir": hub.work()});
    as_lead.call("claudecode.create", create).await.unwrap();
    for typed in ["lead/workr", "laed/worker"] {
        let said = text(&hub.run(&["stop", typed]).await.stderr);
        assert_eq!(said, format!("plexus: no session `{typed}`; did you mean `lead/worker`?\n"));
    }
}

#[tokio::test]
async fn an_invalid_mode_or_policy_starts_no_hub() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let dir = dir.to_str().unwrap();
    for (flag, typed, hint) in [
        ("--mode", "plann", "did you mean `plan`?"),
        ("--mode", "bypassPermissions", "`allow_all`"),
        ("--policy", "askall", "did you mean `ask_all`?"),
    ] {
        let refused = run(&["run", flag, typed, "x", "--data-dir", dir], folder.path()).await;
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(hint), "{said}");
    }
    assert!(!folder.path().join("data").exists());
}

#[tokio::test]
async fn a_taken_port_is_explained_with_its_user_and_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data").display().to_string();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = run(&["serve", "--listen", &address, "--data-dir", &dir], folder.path()).await;
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(5), "{said}");
    for part in [
        &format!("another program uses {address}: process {}", std::process::id()),
        "--listen 127.0.0.1:0",
        "plexus.toml",
    ] {
        assert!(said.contains(part), "{said}");
    }

    let hub = TestHub::start().await;
    let refused = run(&["up", "--listen", hub.authority(), "--data-dir", &dir], folder.path()).await;
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(5), "{said}");
    assert!(said.contains(": a Plexus hub (version "), "{said}");
    let start = format!("plexus: the hub did not start: another program uses {}", hub.authority());
    assert!(said.starts_with(&start), "{said}");
}

#[tokio::test]
async fn a_taken_port_names_the_default_hub_with_its_directory() {
    let folder = tempfile::tempdir().unwrap();
    let claude = scripted_claude(folder.path());
    let data_dir = folder.path().join(".local/share/plexus");
    std::fs::create_dir_all(&data_dir).unwrap();
    let options = HubOptions { claude, data_dir: data_dir.clone(), extra_args: vec![], env: vec![] };
    let hub = HubProcess::start(options).await.unwrap();
    let address = hub.url().strip_prefix("http://").unwrap();
    let dir = folder.path().join("other").display().to_string();
    let refused = run(&["serve", "--listen", address, "--data-dir", &dir], folder.path()).await;
    let said = text(&refused.stderr);
    assert!(said.contains(&format!(": the hub in {}", data_dir.display())), "{said}");
    assert!(said.contains(&format!("`plexus down --data-dir {}` stops it", data_dir.display())), "{said}");
}

#[tokio::test]
async fn a_reader_that_closes_the_pipe_causes_no_error_message() {
    let hub = TestHub::start().await;
    hub.asking_session("a").await;
    for args in [
        &["completions", "bash"][..],
        &["ls"],
        &["ls", "-w"],
        &["logs", "a", "-f"],
        &["transcript", "a"],
        &["audit", "export"],
        &["claudecode", "list"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = plexus(hub.folder.path());
        command.args(args).env("PLEXUS_DATA_DIR", hub.process.data_dir()).stdout(writer);
        command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        // `output` would replace stdout.
        let child = command.kill_on_drop(true).spawn().unwrap();
        let ended = tokio::time::timeout(crate::support::LIMIT, child.wait_with_output()).await;
        let ended = ended.expect("it ends").unwrap();
        assert_eq!(text(&ended.stderr), "", "{args:?}");
        if args != ["--help"] {
            assert_eq!(ended.status.code(), Some(141), "{args:?}");
        }
    }
}
