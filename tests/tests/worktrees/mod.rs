//! Sessions with their own git worktree: it is created completely or not at all, shown by `get`, removed at the end if it has no
//! changes and kept if it has some. Tests in which an agent works run on both pinned CLIs.

mod checkout;
mod flood;
mod interrupted_setup;
mod review;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use checkout::{Checkout, delete, pid_in, runs, scripted, straggler, worktree, worktree_of};
use git2::{BranchType, Repository};
use plexus_e2e::{Channel, DoorKind, Setup, World, events, text};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::Door as _;
use serde_json::{Value, json};

async fn an_agent_works_in_its_own_worktree(world: World) -> anyhow::Result<()> {
    let checkout = Checkout::of(&world)?;
    let session = world.create("fix", json!({"isolation": "worktree"})).await?;
    let begun = worktree_of(&world, &session).await?;
    let path = PathBuf::from(text(&begun["path"]));
    let short = &session[..8];
    assert_eq!(path, checkout.worktrees.join("work").join(format!("fix-{short}")));
    assert_eq!(begun["branch"], format!("plexus/fix-{short}"));
    assert_eq!(begun["base"], checkout.repo()?.head()?.peel_to_commit()?.id().to_string());
    assert_eq!(begun["changes"], json!({"files": 0, "insertions": 0, "deletions": 0, "commits": 0}));

    let write = Step::tool("Write", json!({"file_path": path.join("new.txt"), "content": "x\ny\n"}));
    let append = Step::tool(
        "Bash",
        json!({"command": "echo two >> a.txt; pwd > sub/where.log", "description": "a step"}),
    );
    world.model.script("WORK", vec![write, append, Step::text("Done.")]);
    world.chat(&session, "WORK on it").await?;
    for _ in 0..2 {
        let (_, approval) = world.asked(&session).await?;
        world.allow(&approval).await?;
        world.poll_until(&session, |poll| poll["pending_approvals"][0]["id"] != approval["id"]).await?;
    }
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");

    assert_eq!(std::fs::read_to_string(path.join("a.txt"))?, "one\ntwo\n");
    assert_eq!(std::fs::read_to_string(path.join("sub/where.log"))?.trim(), path.display().to_string());
    assert_eq!(std::fs::read_to_string(checkout.root.join("a.txt"))?, "one\n");
    assert!(checkout.repo()?.statuses(None)?.is_empty(), "the checkout is as it was");
    let changes = json!({"files": 2, "insertions": 3, "deletions": 0, "untracked": 1, "commits": 0});
    assert_eq!(worktree_of(&world, &session).await?["changes"], changes);
    let listed = world.call("claudecode.list", json!({})).await?["sessions"][0]["worktree"].clone();
    assert_eq!(listed, json!({"path": begun["path"], "branch": begun["branch"]}));

    // The next process works in the same worktree.
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    let again = Step::tool("Bash", json!({"command": "pwd > again.log", "description": "a step"}));
    world.model.script("AGAIN", vec![again, Step::text("Done.")]);
    world.chat(&session, "AGAIN please").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(std::fs::read_to_string(path.join("again.log"))?.trim(), path.display().to_string());

    let idle = world.create("idle", json!({"isolation": "worktree"})).await?;
    let unchanged = worktree_of(&world, &idle).await?;
    let (path_of, branch_of) = (|w: &Value| w["path"].clone(), |w: &Value| w["branch"].clone());
    let gone = delete(&world, &idle).await?;
    let expected = json!({"path": path_of(&unchanged), "branch": branch_of(&unchanged), "kept": false});
    assert_eq!(gone, json!({"type": "ok", "session_id": idle, "worktree": expected}));
    let kept = delete(&world, &session).await?;
    let would_lose = ["2 files are not committed (a.txt, new.txt)"];
    let expected =
        json!({"path": path_of(&begun), "branch": branch_of(&begun), "kept": true, "would_lose": would_lose});
    assert_eq!(kept, json!({"type": "ok", "session_id": session, "worktree": expected}));
    assert!(path.join("new.txt").exists() && !Path::new(&text(&unchanged["path"])).exists());
    let branches = checkout.repo()?;
    assert!(branches.find_branch(&text(&begun["branch"]), BranchType::Local).is_ok());
    assert!(branches.find_branch(&text(&unchanged["branch"]), BranchType::Local).is_err());
    Ok(())
}

#[tokio::test]
async fn an_agent_works_in_its_own_worktree_197() -> anyhow::Result<()> {
    let setup = Setup::cli("2.1.197", Channel::Control, DoorKind::Rpc);
    match setup.world("an_agent_works_in_its_own_worktree_197").await? {
        Some(world) => an_agent_works_in_its_own_worktree(world).await,
        None => Ok(()),
    }
}

#[tokio::test]
async fn an_agent_works_in_its_own_worktree_325() -> anyhow::Result<()> {
    let setup = Setup::cli("2.1.325", Channel::Relay, DoorKind::Mcp);
    match setup.world("an_agent_works_in_its_own_worktree_325").await? {
        Some(world) => an_agent_works_in_its_own_worktree(world).await,
        None => Ok(()),
    }
}

#[tokio::test]
async fn a_worktree_is_ready_when_create_returns() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    std::fs::write(checkout.root.join(".env"), "SECRET=1\n")?;
    std::fs::write(checkout.root.join("local.conf"), "x\n")?;
    let left = world.file("left");
    let setup = format!(
        "set -e; cat ../.env ../local.conf > seen.log; echo \"$GIVEN $PLEXUS_SESSION_ID\" > env.log; \
         test -z \"$PLEXUS_LOG\"; ! read -r nothing; echo made > ../generated.txt; echo loud > /dev/stderr; {} \
         until [ -s {} ]; do sleep 0.05; done",
        straggler(&left),
        left.display()
    );
    let session = world
        .create(
            "ready",
            json!({
                "working_dir": checkout.root.join("sub"), "env": {"GIVEN": "value"},
                "isolation": {"type": "worktree", "setup": setup, "copy": [".env", "local.conf"]},
            }),
        )
        .await?;
    let got = world.call("claudecode.get", json!({"session_id": session})).await?["session"].clone();
    let path = PathBuf::from(text(&got["worktree"]["path"]));
    assert_eq!(got["working_dir"], json!(path.join("sub")));
    assert_eq!(std::fs::read_to_string(path.join("sub/seen.log"))?, "SECRET=1\nx\n");
    assert_eq!(std::fs::read_to_string(path.join("sub/env.log"))?, format!("value {session}\n"));
    assert!(pid_in(&left).is_some() && !runs(&left), "the processes of the setup have ended");
    assert_eq!((got["status"].clone(), got["pid"].clone()), (json!("idle"), Value::Null));
    // Neither copied files nor files of the setup count as changes of the session.
    assert_eq!(got["worktree"]["changes"]["files"], 0, "{got:#}");
    assert_eq!(delete(&world, &session).await?["worktree"]["kept"], false);
    assert!(!path.exists());
    Ok(())
}

#[tokio::test]
async fn a_failed_setup_leaves_nothing_and_gives_the_reason() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let left = world.file("left");
    let setup = format!(
        "{} until [ -s {} ]; do sleep 0.05; done; echo changed > a.txt; echo out; echo err >&2; exit 7",
        straggler(&left),
        left.display()
    );
    let params = json!({"name": "failing", "working_dir": world.work, "isolation": worktree(&setup)});
    let error = world.refused("claudecode.create", params.clone()).await?;
    assert_eq!(
        (error.data["type"].as_str(), &error.data["exit_code"]),
        (Some("setup_failed"), &json!(7)),
        "{error}"
    );
    assert_eq!(error.data["output"], json!(["out", "err"]));
    assert!(pid_in(&left).is_some() && !runs(&left));
    checkout.has_no_remains(&world).await?;
    assert_eq!(world.call("claudecode.list", json!({})).await?["sessions"], json!([]));
    // The name is free again.
    world.create("failing", json!({"isolation": "worktree"})).await?;
    Ok(())
}

#[tokio::test]
async fn a_setup_over_its_time_limit_is_ended_with_all_its_processes() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let left = world.file("left");
    let setup = format!("{} echo waiting; while :; do sleep 1; done", straggler(&left));
    let isolation = json!({"type": "worktree", "setup": setup, "setup_timeout_secs": 2});
    let params = json!({"name": "slow", "working_dir": world.work, "isolation": isolation});
    let error = world.refused("claudecode.create", params).await?;
    assert_eq!(error.data["type"], "setup_failed", "{error}");
    assert!(
        error.message.contains("longer than 2 s") && error.data["output"] == json!(["waiting"]),
        "{error}"
    );
    assert!(pid_in(&left).is_some() && !runs(&left));
    checkout.has_no_remains(&world).await
}

#[tokio::test]
async fn a_session_may_isolate_its_children_but_not_run_setup() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let prompt = json!({"steps": [{"tool": "Bash", "input": {"command": "true"}}]}).to_string();
    let boss =
        world.create("boss", json!({"hub_tools": true, "approve_scope": ["*"], "prompt": prompt})).await?;
    world.asked(&boss).await?;
    let door = world.door_of(&boss).await?;
    let mark = world.file("mark");
    let create = |name: &str, isolation: Value| json!({"name": name, "working_dir": world.work, "isolation": isolation});
    let setup = worktree(&format!("touch {}", mark.display()));
    let error = door.call("claudecode.create", create("sneak", setup)).await.err().context("refused")?;
    assert_eq!((&error.data["type"], &error.data["field"]), (&json!("forbidden"), &json!("isolation.setup")));
    assert!(!mark.exists());
    assert_eq!(checkout.remains()?, BTreeSet::new());
    let child = door.call("claudecode.create", create("child", json!("worktree"))).await?;
    let path = text(&worktree_of(&world, &text(&child["id"])).await?["path"]);
    std::fs::write(Path::new(&path).join("new.txt"), "x\n")?;
    // `delete` also reports the worktrees of descendants.
    let deleted = delete(&world, &boss).await?;
    assert_eq!(deleted["below"][0]["session_name"], "child", "{deleted}");
    assert_eq!(deleted["below"][0]["worktree"]["path"], path.as_str());
    assert_eq!(deleted["below"][0]["worktree"]["kept"], true);
    Ok(())
}

#[tokio::test]
async fn an_invalid_isolation_is_refused_by_field_name() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let elsewhere = |name: &str| -> anyhow::Result<PathBuf> {
        let dir = world.home.with_file_name(name);
        std::fs::create_dir(&dir)?;
        Ok(dir)
    };
    let [plain, bare, empty] = [elsewhere("plain")?, elsewhere("bare")?, elsewhere("empty")?];
    Repository::init_bare(&bare)?;
    Repository::init(&empty)?;
    let with = |more: Value| {
        let mut isolation = json!({"type": "worktree"});
        for (field, value) in more.as_object().into_iter().flatten() {
            isolation[field] = value.clone();
        }
        isolation
    };
    for (dir, isolation, kind, field, says) in [
        (&plain, json!("worktree"), "bad_working_dir", "working_dir", "not in a git repository"),
        (&bare, json!("worktree"), "bad_working_dir", "working_dir", "bare"),
        (&empty, json!("worktree"), "bad_working_dir", "working_dir", "no commits"),
        (&world.work, with(json!({"base": "nowhere"})), "invalid_params", "isolation.base", "nowhere"),
        (&world.work, with(json!({"copy": ["nothing"]})), "invalid_params", "isolation.copy", "nothing"),
        (&world.work, with(json!({"copy": ["../home"]})), "invalid_params", "isolation.copy", "../home"),
        (&world.work, with(json!({"copy": [".git"]})), "invalid_params", "isolation.copy", ".git"),
        (&world.work, with(json!({"setup": " "})), "invalid_params", "isolation.setup", "empty"),
        (
            &world.work,
            with(json!({"setup": "true", "setup_timeout_secs": 0})),
            "invalid_params",
            "isolation.setup_timeout_secs",
            "at least 1",
        ),
    ] {
        let params = json!({"name": "no", "working_dir": dir, "isolation": isolation});
        let error = world.refused("claudecode.create", params).await?;
        assert_eq!((&error.data["type"], &error.data["field"]), (&json!(kind), &json!(field)), "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    assert_eq!(checkout.repo()?.worktrees()?.len(), 0);
    world.create("taken", json!({})).await?;
    let mark = world.file("mark");
    let setup = worktree(&format!("touch {}", mark.display()));
    let taken = json!({"name": "taken", "working_dir": world.work, "isolation": setup});
    assert_eq!(world.refused("claudecode.create", taken).await?.data["type"], "name_taken");
    assert!(!mark.exists());
    Ok(())
}

#[tokio::test]
async fn a_missing_worktree_fails_the_turn_and_an_unreadable_one_is_kept() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let session = world.create("lost", json!({"isolation": "worktree"})).await?;
    let path = PathBuf::from(text(&worktree_of(&world, &session).await?["path"]));
    std::fs::rename(&path, path.with_file_name("aside"))?;
    let shown = worktree_of(&world, &session).await?;
    assert!(shown["changes"].is_null() && shown["error"].is_string(), "{shown}");
    world.chat(&session, r#"{"steps": [{"say": "never"}]}"#).await?;
    let poll = world.ended(&session).await?;
    let end = events(&poll, "error").pop().context("an end")?;
    assert_eq!((&poll["status"], &end["reason"]), (&json!("failed"), &json!("cannot_start")), "{poll:#}");
    assert!(text(&end["message"]).contains(&path.display().to_string()), "{end}");
    std::fs::rename(path.with_file_name("aside"), &path)?;
    world.chat(&session, r#"{"steps": [{"say": "here"}]}"#).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");

    std::fs::rename(checkout.root.join(".git"), checkout.root.join("git"))?;
    let shown = worktree_of(&world, &session).await?;
    assert!(shown["changes"].is_null() && shown["error"].is_string(), "{shown}");
    let deleted = delete(&world, &session).await?;
    assert_eq!(deleted["worktree"]["kept"], true, "{deleted}");
    assert!(deleted["worktree"]["error"].is_string() && path.join("a.txt").exists(), "{deleted}");
    Ok(())
}

#[tokio::test]
async fn the_hub_runs_no_program_that_the_repository_configures() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let mark = world.home.join("mark");
    let trap = format!("sh -c 'touch {}'", mark.display());
    let mut config = checkout.repo()?.config()?;
    for key in ["core.fsmonitor", "diff.external", "filter.t.smudge", "filter.t.clean", "filter.t.process"] {
        config.set_str(key, &trap)?;
    }
    std::fs::write(checkout.root.join(".git/info/attributes"), "* filter=t diff=t\n")?;
    let hook = checkout.root.join(".git/hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().context("hooks")?)?;
    std::fs::write(&hook, format!("#!/bin/sh\n{trap}\n"))?;
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    for changed in [true, false] {
        let session = world.create("wary", json!({"isolation": "worktree"})).await?;
        let path = PathBuf::from(text(&worktree_of(&world, &session).await?["path"]));
        if changed {
            std::fs::write(path.join("a.txt"), "ONE\n")?;
        }
        let shown = worktree_of(&world, &session).await?;
        assert_eq!(shown["changes"]["files"], u64::from(changed), "{shown}");
        assert_eq!(delete(&world, &session).await?["worktree"]["kept"], changed);
    }
    assert!(!mark.exists());
    Ok(())
}

#[tokio::test]
async fn the_changes_in_a_worktree_are_shown_as_a_diff() -> anyhow::Result<()> {
    let (world, _checkout) = scripted().await?;
    let session = world.create("fix", json!({"isolation": "worktree"})).await?;
    let begun = worktree_of(&world, &session).await?;
    let path = PathBuf::from(text(&begun["path"]));
    std::fs::write(path.join("a.txt"), "one\ntwo\n")?;
    std::fs::write(path.join("new.txt"), "x\n")?;
    let diff = world.call("claudecode.diff", json!({"session_id": session})).await?;
    let file = |path: &str, status: &str, patch: &str| json!({"path": path, "status": status, "insertions": 1, "deletions": 0, "binary": false, "patch": patch});
    let a = file("a.txt", "modified", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+two\n");
    let new = file("new.txt", "untracked", "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n");
    assert_eq!((&diff["base"], &diff["branch"]), (&begun["base"], &begun["branch"]));
    let without_versions = |diff: &Value| {
        let mut files = diff["files"].as_array().cloned().unwrap_or_default();
        for file in &mut files {
            assert!(file.as_object_mut().and_then(|file| file.remove("version")).is_some(), "{file}");
        }
        files
    };
    assert_eq!(without_versions(&diff), [a, new.clone()]);
    let one = world.call("claudecode.diff", json!({"name": "fix", "path": "new.txt"})).await?;
    assert_eq!(without_versions(&one), [new]);
    assert_eq!(one["files"][0]["version"], diff["files"][1]["version"]);
    world.create("plain", json!({})).await?;
    let refused = world.refused("claudecode.diff", json!({"name": "plain"})).await?;
    assert_eq!(refused.kind.as_deref(), Some("no_worktree"));
    assert!(refused.message.contains("no worktree of its own"), "{refused}");
    std::fs::remove_dir_all(&path)?;
    let refused = world.refused("claudecode.diff", json!({"session_id": session})).await?;
    assert_eq!(refused.kind.as_deref(), Some("worktree_failed"), "{refused}");
    Ok(())
}

/// Any command of any session can replace `~/.gitconfig` with a FIFO, which blocks its readers.
#[tokio::test]
async fn the_users_git_configuration_does_not_block_worktrees() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let home = &world.home;
    let fifo = home.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR)?;
    let ignored = home.join("ignored");
    std::fs::write(&ignored, "work.txt\n")?;
    let include = format!("[include]\n\tpath = {}\n", fifo.display());
    let exclude = format!("[core]\n\texcludesFile = {}\n", ignored.display());
    for config in [include, exclude] {
        std::fs::write(home.join(".gitconfig"), config)?;
        let session = world.create("fix", json!({"isolation": "worktree"})).await?;
        let path = PathBuf::from(text(&worktree_of(&world, &session).await?["path"]));
        std::fs::write(path.join("work.txt"), "done\n")?;
        assert_eq!(worktree_of(&world, &session).await?["changes"]["files"], 1, "changes are still counted");
        let diff = world.call("claudecode.diff", json!({"session_id": session})).await?;
        assert_eq!(diff["files"][0]["path"], "work.txt", "{diff:#}");
        std::fs::remove_file(path.join("work.txt"))?;
        assert_eq!(delete(&world, &session).await?["worktree"]["kept"], false);
    }
    // The repository's own configuration applies.
    checkout
        .repo()?
        .config()?
        .open_level(git2::ConfigLevel::Local)?
        .set_str("core.excludesFile", "~/ignored")?;
    let session = world.create("fix", json!({"isolation": "worktree"})).await?;
    let path = PathBuf::from(text(&worktree_of(&world, &session).await?["path"]));
    for file in ["work.txt", "other.txt"] {
        std::fs::write(path.join(file), "done\n")?;
    }
    assert_eq!(worktree_of(&world, &session).await?["changes"]["files"], 1);
    Ok(())
}
