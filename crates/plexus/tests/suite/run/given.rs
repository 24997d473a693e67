//! What `run` passes to the session: prompt, variables, budget, servers and an earlier session.

use serde_json::json;

use super::{at_terminal, touch};
use crate::support::{TestHub, scripted_claude, text};

#[tokio::test]
async fn an_agent_inherits_only_named_variables() {
    let hub = TestHub::start().await;
    let prompt = json!([{"tool": "Bash", "input": {"command": "env >seen"}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", "--env", "WANTED", &prompt], "true");
    run.expect("Allow it?").await.unwrap();
    run.press("y\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    let seen = std::fs::read_to_string(hub.work().join("seen")).unwrap();
    assert!(seen.contains("WANTED=w4nted") && !seen.contains("s3cret"), "{seen}");
}

#[tokio::test]
async fn a_prompt_comes_from_a_file_or_stdin_and_a_detached_run_prints_its_name() {
    let hub = TestHub::start().await;
    std::fs::write(hub.work().join("task.json"), "[{\"say\": \"from a file\"}]").unwrap();
    let file = hub.run(&["run", "@task.json"]).await;
    assert!(file.status.success() && text(&file.stdout).contains("from a file"), "{}", text(&file.stderr));
    let none = hub.run(&["run", "@missing"]).await;
    assert_eq!(none.status.code(), Some(2), "{}", text(&none.stderr));
    // The stdin of `hub.run` is empty.
    let empty = hub.run(&["run", "-"]).await;
    assert!(text(&empty.stderr).contains("the prompt is empty"), "{}", text(&empty.stderr));
    assert_eq!(empty.status.code(), Some(2));
    let mut command = crate::support::plexus(hub.folder.path());
    let stdin = std::fs::File::open(hub.work().join("task.json")).unwrap();
    command.args(["run", "-", "--data-dir"]).arg(hub.process.data_dir()).current_dir(hub.work()).stdin(stdin);
    let piped = tokio::process::Command::from(command).output().await.unwrap();
    assert!(piped.status.success() && text(&piped.stdout).contains("from a file"), "{}", text(&piped.stderr));
    let detached = hub.run(&["run", "--detach", "--name", "d", &touch(&["made"])]).await;
    assert_eq!((detached.status.code(), text(&detached.stdout).as_str()), (Some(0), "d\n"));
    assert!(text(&detached.stderr).contains("`plexus attach d` follows it"), "{}", text(&detached.stderr));
    let session = hub.call("claudecode.get", json!({"name": "d"})).await.unwrap();
    hub.first_approval(session["session"]["id"].as_str().unwrap()).await;
}

#[tokio::test]
async fn the_budget_trust_and_servers_reach_the_session() {
    let hub = TestHub::start().await;
    let servers = json!({"mcpServers": {"files": {"command": "true"}}}).to_string();
    std::fs::write(hub.work().join("mcp.json"), servers).unwrap();
    let args =
        ["run", "--name", "a", "--budget", "2.5", "--trust", "--mcp", "mcp.json", "[{\"say\": \"hi\"}]"];
    let ran = hub.run(&args).await;
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let session = hub.call("claudecode.get", json!({"name": "a"})).await.unwrap()["session"].take();
    assert_eq!(session["budget"]["cost_usd"]["limit"], 2.5);
    assert_eq!(session["loads"]["mcp_servers"], json!(["files"]));
    assert!(session["loads"]["project"]["trusted_at"].is_number(), "{session}");
    for invalid in [["--budget", "none"], ["--mode", "bypassPermissions"], ["--mcp", "missing.json"]] {
        let refused = hub.run(&[&["run"], &invalid[..], &["x"]].concat()).await;
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    }
}

#[tokio::test]
async fn resume_without_an_id_lists_the_sessions_of_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    let claude = scripted_claude(folder.path());
    let home = folder.path().to_str().unwrap().to_owned();
    let hub = TestHub::with(folder, "", claude, vec![("HOME".to_owned(), home)]).await;
    let work = hub.work().canonicalize().unwrap();
    let name = work.to_str().unwrap().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let project = hub.folder.path().join(".claude/projects").join(name);
    std::fs::create_dir_all(&project).unwrap();
    let id = "4b983b28-9d18-41fa-9871-3489783bd38c";
    let line = json!({"type": "user", "uuid": "u", "cwd": work, "message": {"content": "Fix the test"}});
    std::fs::write(project.join(format!("{id}.jsonl")), format!("{line}\n")).unwrap();
    for args in [&["run", "--resume"][..], &["run", "--resume", "Go on"], &["run", "Go on", "--resume"]] {
        let mut run = at_terminal(&hub, args, "true");
        run.expect(id).await.unwrap();
        run.expect("Fix the test").await.unwrap();
        assert_eq!(run.end().await.unwrap(), 2, "{}", run.shown());
    }
    let prompt = json!([{"say": "done"}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", "--resume", id, &prompt], "true");
    run.expect("* complete").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    let session = hub.call("claudecode.get", json!({"name": "a"})).await.unwrap();
    assert_eq!(session["session"]["resumed_from"], id);
}
