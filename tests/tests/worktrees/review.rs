//! A worktree from its changes to the merged branch, through the hub: commit, merge, conflicts, the audit log, and a hub
//! that is killed between the steps.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use plexus_e2e::{Setup, World, text, until};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use crate::worktrees::checkout::{Checkout, delete, scripted, worktree_of};

/// Output of the installed git; `None` if there is none.
fn git(dir: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_sound_and_clean(root: &Path) {
    if let Some(status) = git(root, &["status", "--porcelain"]) {
        assert_eq!(status, "");
        assert_eq!(git(root, &["fsck", "--strict", "--no-dangling"]).as_deref(), Some(""));
    }
}

async fn diff(world: &World, session: &str) -> anyhow::Result<Value> {
    world.call("claudecode.diff", json!({"session_id": session})).await
}

/// Commits everything that the diff shows, and returns the new head.
async fn commit(world: &World, session: &str) -> anyhow::Result<String> {
    let digest = diff(world, session).await?["digest"].clone();
    let params = json!({"session_id": session, "digest": digest, "message": "Do it"});
    Ok(text(&world.call("claudecode.commit", params).await?["head"]))
}

/// The audit entries about commits, merges and branches, as their status and detail.
async fn audited(world: &World) -> anyhow::Result<Vec<(String, Value)>> {
    let rows = world.call("audit.list", json!({"kind": "session", "limit": 1000})).await?["rows"].clone();
    let rows = rows.as_array().context("rows")?.iter();
    let ours = |status: &str| ["commit", "merge", "branch"].iter().any(|act| status.starts_with(act));
    let entries = rows.map(|row| (text(&row["entry"]["status"]), row["entry"]["detail"].clone()));
    Ok(entries.filter(|(status, _)| ours(status)).collect())
}

#[tokio::test]
async fn a_worktree_is_reviewed_committed_and_merged() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let main = checkout.repo()?.head()?.shorthand()?.to_owned();
    let session = world.create("fix", json!({"isolation": "worktree"})).await?;
    let path = PathBuf::from(text(&worktree_of(&world, &session).await?["path"]));
    let prompt = json!({"steps": [{"say": "All done."}]}).to_string();
    world.chat(&session, &prompt).await?;
    world.ended(&session).await?;
    std::fs::write(path.join("a.txt"), "one\ntwo\n")?;
    std::fs::write(path.join("new.txt"), "x\n")?;

    let review = diff(&world, &session).await?;
    assert_eq!(review["base_branch"], main);
    assert_eq!(review["state"], json!({"uncommitted": 2, "ahead": 0, "behind": 0, "merged": false}));
    assert_eq!(review["proposal"]["author"], json!({"name": "a tester", "email": "tester@localhost"}));
    assert_eq!(review["proposal"]["author_from"], "base_commit");
    assert!(text(&review["proposal"]["message"]).contains("All done."), "{review:#}");
    let one = world.call("claudecode.diff", json!({"session_id": session, "path": "a.txt"})).await?;
    assert_eq!(one["digest"], review["digest"], "the digest is about the whole worktree");

    let commit =
        |message: &str| json!({"session_id": session, "digest": review["digest"], "message": message});
    let refused = world.refused("claudecode.commit", commit(" ")).await?;
    assert_eq!(refused.data["field"], "message");
    std::fs::write(path.join("new.txt"), "sneaked in\n")?;
    let refused = world.refused("claudecode.commit", commit("Do it")).await?;
    assert_eq!(refused.kind.as_deref(), Some("review_outdated"), "{refused}");
    assert!(refused.message.contains("The worktree changed since you reviewed it"), "{refused}");
    std::fs::write(path.join("new.txt"), "x\n")?;
    assert_eq!(audited(&world).await?, [], "nothing was done so far");
    let committed = world.call("claudecode.commit", commit("Do it")).await?;
    let head = text(&committed["head"]);
    assert_eq!((&committed["files"], &committed["parent"]), (&json!(2), &review["base"]));
    is_sound_and_clean(&path);
    let state = worktree_of(&world, &session).await?["state"].clone();
    assert_eq!(state, json!({"uncommitted": 0, "ahead": 1, "behind": 0, "merged": false}));

    std::fs::write(checkout.root.join("sub/b.txt"), "my own work\n")?;
    let merge = json!({"session_id": session, "head": head, "how": "merge"});
    let refused = world.refused("claudecode.merge", merge.clone()).await?;
    assert_eq!(refused.kind.as_deref(), Some("repository_refused"), "{refused}");
    assert!(refused.message.contains("uncommitted changes (`sub/b.txt`)"), "{refused}");
    std::fs::write(checkout.root.join("sub/b.txt"), "b\n")?;
    let merged = world.call("claudecode.merge", merge).await?;
    let expected = json!({"type": "ok", "into": main, "before": review["base"], "after": merged["after"],
        "checkout": checkout.root});
    assert_eq!(merged, expected);
    assert_eq!(std::fs::read_to_string(checkout.root.join("a.txt"))?, "one\ntwo\n");
    is_sound_and_clean(&checkout.root);
    assert_eq!(worktree_of(&world, &session).await?["state"]["merged"], true);

    let entries = audited(&world).await?;
    let [(first, commit_detail), (second, merge_detail)] = entries.as_slice() else { panic!("{entries:#?}") };
    assert_eq!((&**first, &**second), ("commit", "merge"));
    assert_eq!((&commit_detail["after"], &commit_detail["digest"]), (&json!(head), &review["digest"]));
    assert_eq!((&merge_detail["after"], &merge_detail["head"]), (&merged["after"], &json!(head)));
    assert_eq!(delete(&world, &session).await?["worktree"]["kept"], false, "everything is merged");
    Ok(())
}

#[tokio::test]
async fn conflicts_and_a_branch_to_push_change_nothing() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let repo = checkout.repo()?;
    repo.remote("origin", "https://me:secret@example.org/app.git")?;
    let session = world.create("fix", json!({"isolation": "worktree"})).await?;
    let path = PathBuf::from(text(&worktree_of(&world, &session).await?["path"]));
    std::fs::write(path.join("a.txt"), "theirs\n")?;
    let head = commit(&world, &session).await?;
    std::fs::write(checkout.root.join("a.txt"), "ours\n")?;
    let mut index = repo.index()?;
    index.add_path("a.txt".as_ref())?;
    index.write()?;
    let tree = repo.find_tree(index.write_tree()?)?;
    let me = git2::Signature::now("a tester", "tester@localhost")?;
    let parent = repo.head()?.peel_to_commit()?;
    let main = repo.commit(Some("HEAD"), &me, &me, "ours", &tree, &[&parent])?;
    for how in ["merge", "rebase", "squash"] {
        let params = json!({"session_id": session, "head": head, "how": how});
        let result = world.call("claudecode.merge", params).await?;
        assert_eq!((&result["type"], &result["before"]), (&json!("conflicts"), &json!(main.to_string())));
        let shown = text(&result["files"][0]["text"]);
        assert!(
            shown.contains("<<<<<<<") && shown.contains("ours\n") && shown.contains("theirs\n"),
            "{shown}"
        );
    }
    for (field, value) in
        [("into", json!("../../x")), ("into", json!("-f")), ("author", json!({"name": "", "email": ""}))]
    {
        let mut params = json!({"session_id": session, "head": head, "how": "merge"});
        params[field] = value;
        assert_eq!(world.refused("claudecode.merge", params).await?.data["field"], field);
    }
    let outdated = json!({"session_id": session, "head": head, "how": "merge", "onto": head});
    assert_eq!(world.refused("claudecode.merge", outdated).await?.kind.as_deref(), Some("review_outdated"));
    let kept = world
        .call("claudecode.keep_branch", json!({"session_id": session, "remote_branch": "feature/fix"}))
        .await?;
    let branch = text(&kept["branch"]);
    assert_eq!((&kept["head"], &kept["uncommitted"]), (&json!(head), &json!(0)));
    assert_eq!(kept["pushes"][0]["url"], "https://example.org/app.git", "{kept:#}");
    let command = text(&kept["pushes"][0]["command"]);
    assert!(
        command.ends_with(&format!(" push origin refs/heads/{branch}:refs/heads/feature/fix")),
        "{command}"
    );
    let bad = json!({"session_id": session, "remote_branch": "x;reboot"});
    assert_eq!(world.refused("claudecode.keep_branch", bad).await?.data["field"], "remote_branch");
    assert_eq!(repo.head()?.target(), Some(main));
    is_sound_and_clean(&checkout.root);
    is_sound_and_clean(&path);
    let entries = audited(&world).await?;
    assert_eq!(entries.iter().map(|(status, _)| &**status).collect::<Vec<_>>(), ["commit", "branch_kept"]);
    Ok(())
}

#[tokio::test]
async fn the_author_of_the_settings_is_proposed_and_used() -> anyhow::Result<()> {
    let mut setup = Setup::scripted();
    setup.config += "\n[git]\nname = \"Olga Operator\"\nemail = \"olga@example.org\"\n";
    let world = setup.world("author").await?.context("the scripted agent is always available")?;
    let checkout = Checkout::of(&world)?;
    let session = world.create("fix", json!({"isolation": "worktree"})).await?;
    let path = PathBuf::from(text(&worktree_of(&world, &session).await?["path"]));
    std::fs::write(path.join("a.txt"), "two\n")?;
    let proposal = diff(&world, &session).await?["proposal"].clone();
    assert_eq!(
        (&proposal["author"]["name"], &proposal["author_from"]),
        (&json!("Olga Operator"), &json!("settings"))
    );
    let head = commit(&world, &session).await?;
    let repo = checkout.repo()?;
    let made = repo.find_commit(head.parse()?)?;
    assert_eq!((made.author().email()?, made.committer().name()?), ("olga@example.org", "Olga Operator"));
    Ok(())
}

#[tokio::test]
async fn a_hub_killed_between_any_two_steps_completes_or_drops_the_merge() -> anyhow::Result<()> {
    let files = tempfile::tempdir()?;
    let file = files.path().join("kill-point");
    let mut setup = Setup::scripted();
    setup.env.push(("PLEXUS_KILL_POINT_FILE".to_owned(), file.display().to_string()));
    let mut world = setup.world("killed merge").await?.context("the scripted agent is always available")?;
    let checkout = Checkout::of(&world)?;
    for (step, done) in [("noted", false), ("audited", false), ("updated", true)] {
        let session = world.create(&format!("fix-{step}"), json!({"isolation": "worktree"})).await?;
        let path = PathBuf::from(text(&worktree_of(&world, &session).await?["path"]));
        std::fs::write(path.join("a.txt"), format!("{step}\n"))?;
        let head = commit(&world, &session).await?;
        let before = checkout.repo()?.head()?.target().context("a commit")?.to_string();
        std::fs::write(&file, format!("review: {step}"))?;
        let params = json!({"session_id": session, "head": head, "how": "squash", "message": "Squashed"});
        let answer = world.door.call("claudecode.merge", params.clone()).await;
        assert!(answer.is_err() && !file.exists(), "it died at {step}: {answer:?}");
        world.hub.wait().await?;
        is_sound_and_clean(&checkout.root);
        world.hub.restart().await?;
        world.door = Box::new(Rpc::new(world.hub.url(), &world.hub.token()?));
        let notes = world.hub.data_dir().join("updates");
        until("the note to be handled", || notes.read_dir().is_ok_and(|mut notes| notes.next().is_none()))
            .await?;
        let (status, detail) = audited(&world).await?.pop().context("an entry")?;
        let outcome = if done { "completed" } else { "not_done" };
        assert_eq!((&*status, &detail["outcome"]), ("merge_recovered", &json!(outcome)), "{step}");
        assert_eq!(
            checkout.repo()?.head()?.target().context("a commit")?.to_string() != before,
            done,
            "{step}"
        );
        if !done {
            world.call("claudecode.merge", params).await?;
        }
        is_sound_and_clean(&checkout.root);
        assert_eq!(std::fs::read_to_string(checkout.root.join("a.txt"))?, format!("{step}\n"));
        assert_eq!(worktree_of(&world, &session).await?["state"]["merged"], true);
    }
    assert_eq!(world.call("audit.verify", json!({})).await?["type"], "ok");
    Ok(())
}

#[tokio::test]
async fn nothing_that_the_repository_names_runs_during_a_review() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let canary = world.home.join("canary");
    let trap = format!("sh -c 'touch {}'", canary.display());
    let mut config = checkout.repo()?.config()?;
    for key in ["core.fsmonitor", "diff.external", "merge.t.driver", "diff.t.textconv", "gpg.program"] {
        config.set_str(key, &trap)?;
    }
    config.set_bool("commit.gpgsign", true)?;
    std::fs::write(checkout.root.join(".git/info/attributes"), "* diff=t merge=t\n")?;
    let hooks = checkout.root.join(".git/hooks");
    std::fs::create_dir_all(&hooks)?;
    for hook in
        ["pre-commit", "post-commit", "post-merge", "post-checkout", "reference-transaction", "pre-push"]
    {
        std::fs::write(hooks.join(hook), format!("#!/bin/sh\n{trap}\n"))?;
        std::fs::set_permissions(hooks.join(hook), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    let session = world.create("wary", json!({"isolation": "worktree"})).await?;
    let path = PathBuf::from(text(&worktree_of(&world, &session).await?["path"]));
    std::fs::write(path.join("a.txt"), "ONE\n")?;
    let head = commit(&world, &session).await?;
    world.call("claudecode.keep_branch", json!({"session_id": session})).await?;
    world
        .call("claudecode.merge", json!({"session_id": session, "head": head, "how": "fast_forward"}))
        .await?;
    assert_eq!(std::fs::read_to_string(checkout.root.join("a.txt"))?, "ONE\n");
    assert!(!canary.exists());
    Ok(())
}

/// A FIFO in the repository's own configuration blocks git's readers, and so the helper, until the hub kills it.
#[tokio::test]
#[ignore = "slow: waits for the time limit of three file helpers"]
async fn a_fifo_in_the_configuration_refuses_the_call_and_changes_nothing() -> anyhow::Result<()> {
    let (world, checkout) = scripted().await?;
    let session = world.create("fix", json!({"isolation": "worktree"})).await?;
    let path = PathBuf::from(text(&worktree_of(&world, &session).await?["path"]));
    std::fs::write(path.join("a.txt"), "two\n")?;
    let head = commit(&world, &session).await?;
    let before = checkout.repo()?.head()?.target();
    let config = checkout.root.join(".git/config");
    let (plain, fifo) = (std::fs::read_to_string(&config)?, checkout.root.join(".git/fifo"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR)?;
    std::fs::write(&config, format!("{plain}[include]\n\tpath = {}\n", fifo.display()))?;
    for (method, params) in [
        ("claudecode.commit", json!({"session_id": session, "digest": "0", "message": "Do it"})),
        ("claudecode.merge", json!({"session_id": session, "head": head, "how": "merge"})),
        ("claudecode.keep_branch", json!({"session_id": session})),
    ] {
        let refused = world.refused(method, params).await?;
        assert_eq!(refused.kind.as_deref(), Some("worktree_failed"), "{refused}");
        assert!(refused.message.contains("took too long"), "{refused}");
    }
    std::fs::write(&config, plain)?;
    assert_eq!(checkout.repo()?.head()?.target(), before);
    is_sound_and_clean(&checkout.root);
    world.call("claudecode.merge", json!({"session_id": session, "head": head, "how": "merge"})).await?;
    Ok(())
}
