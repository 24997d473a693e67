//! The creation of a worktree is interrupted: the hub is killed or stops, or the caller disconnects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plexus_e2e::{DoorKind, Setup, World, processes_of, until};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use crate::worktrees::checkout::{
    Checkout, creating, pid_in, runs, scripted, straggler, worktree, worktree_of,
};

#[tokio::test]
async fn a_hub_killed_during_setup_leaves_nothing_after_its_restart() -> anyhow::Result<()> {
    let (mut world, checkout) = scripted().await?;
    let [begun, left] = ["begun", "left"].map(|name| world.file(name));
    let setup = format!(
        "echo $PLEXUS_SESSION_ID > {}; {} while :; do sleep 1; done",
        begun.display(),
        straggler(&left)
    );
    std::fs::write(checkout.root.join("local.conf"), "x\n")?;
    let isolation = json!({"type": "worktree", "setup": setup, "copy": ["local.conf"]});
    let call = creating(&world, "cut-off", isolation)?;
    until("setup to run", || pid_in(&left).is_some()).await?;
    let session = std::fs::read_to_string(&begun)?.trim().to_owned();
    assert!(!checkout.remains()?.is_empty() && !processes_of(&session).is_empty());
    world.hub.kill9().await?;
    call.await?;
    world.hub.restart().await?;
    let world = reopened(world)?;
    assert!(processes_of(&session).is_empty() && !runs(&left), "ended before any door opened");
    checkout.has_no_remains(&world).await?;
    assert_eq!(world.call("claudecode.list", json!({})).await?["sessions"], json!([]));
    world.create("cut-off", json!({"isolation": "worktree"})).await?;
    Ok(())
}

/// Kills the hub at `point` while `call` runs, and starts it again.
async fn killed_at(
    mut world: World,
    file: &Path,
    point: &str,
    method: &str,
    params: Value,
) -> anyhow::Result<World> {
    std::fs::write(file, point)?;
    let answer = world.door.call(method, params).await;
    assert!(answer.is_err() && !file.exists(), "it died at {point}: {answer:?}");
    world.hub.wait().await?;
    world.hub.restart().await?;
    reopened(world)
}

#[tokio::test]
async fn a_hub_killed_between_any_two_steps_leaves_a_complete_worktree_or_nothing() -> anyhow::Result<()> {
    let files = tempfile::tempdir()?;
    let file = files.path().join("kill-point");
    let mut setup = Setup::scripted();
    setup.env.push(("PLEXUS_KILL_POINT_FILE".to_owned(), file.display().to_string()));
    let mut world =
        setup.world("killed between steps").await?.context("the scripted agent is always available")?;
    let checkout = Checkout::of(&world)?;
    std::fs::write(checkout.root.join("local.conf"), "x\n")?;
    let isolation = json!({"type": "worktree", "setup": "true", "copy": ["local.conf"]});
    let create = json!({"name": "one", "working_dir": world.work, "isolation": isolation});
    let sessions = |listed: Value| listed["sessions"].as_array().map_or(0, Vec::len);
    for step in ["noted", "made", "set up"] {
        let point = format!("worktree: {step}");
        world = killed_at(world, &file, &point, "claudecode.create", create.clone()).await?;
        checkout.has_no_remains(&world).await.with_context(|| point.clone())?;
        assert_eq!(sessions(world.call("claudecode.list", json!({})).await?), 0, "{point}");
    }
    world = killed_at(world, &file, "worktree: committed", "claudecode.create", create).await?;
    let notes = world.hub.data_dir().join("worktrees");
    until("the note to be removed", || notes.read_dir().is_ok_and(|mut notes| notes.next().is_none()))
        .await?;
    let one = world.call("claudecode.get", json!({"name": "one"})).await?["session"].clone();
    assert_eq!(one["worktree"]["changes"]["files"], 0, "{one}");

    let delete = json!({"name": "one"});
    world = killed_at(world, &file, "delete: noted", "claudecode.delete", delete.clone()).await?;
    until("the note to be removed", || notes.read_dir().is_ok_and(|mut notes| notes.next().is_none()))
        .await?;
    let still = world.call("claudecode.get", delete.clone()).await?["session"].clone();
    assert_eq!(still["worktree"]["changes"]["files"], 0, "{still}");
    for step in ["committed", "removed"] {
        let point = format!("delete: {step}");
        world = killed_at(world, &file, &point, "claudecode.delete", delete.clone()).await?;
        until("all remains to be removed", || checkout.remains().is_ok_and(|remains| remains.is_empty()))
            .await?;
        assert_eq!(sessions(world.call("claudecode.list", json!({})).await?), 0, "{point}");
        world.create("one", json!({"isolation": "worktree"})).await?;
    }
    Ok(())
}

/// The world with a client of the restarted hub.
fn reopened(mut world: World) -> anyhow::Result<World> {
    world.door = Box::new(Rpc::new(world.hub.url(), &world.hub.token()?));
    Ok(world)
}

#[tokio::test]
async fn recovery_removes_no_worktree_with_changes_or_with_a_session() -> anyhow::Result<()> {
    let (mut world, checkout) = scripted().await?;
    let owned = world.create("owned", json!({"isolation": "worktree"})).await?;
    let begun = world.file("begun");
    let setup = format!("echo mine > unknown.txt; pwd > {}; while :; do sleep 1; done", begun.display());
    let call = creating(&world, "cut-off", worktree(&setup))?;
    until("setup to run", || {
        begun.exists() && std::fs::read_to_string(&begun).is_ok_and(|t| t.ends_with('\n'))
    })
    .await?;
    let path = PathBuf::from(std::fs::read_to_string(&begun)?.trim());
    world.hub.kill9().await?;
    call.await?;
    world.hub.restart().await?;
    let world = reopened(world)?;
    let notes = world.hub.data_dir().join("worktrees");
    until("the notes to be handled", || notes.read_dir().is_ok_and(|mut notes| notes.next().is_none()))
        .await?;
    assert_eq!(std::fs::read_to_string(path.join("unknown.txt"))?, "mine\n");
    let named = path.display().to_string();
    until("the log to name what is left", || world.hub.stderr().contains(&named)).await?;
    let owned = worktree_of(&world, &owned).await?;
    assert_eq!(owned["changes"]["files"], 0, "{owned}");
    assert_eq!(checkout.repo()?.worktrees()?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_caller_that_disconnects_leaves_no_incomplete_worktree() -> anyhow::Result<()> {
    for door in [DoorKind::Rpc, DoorKind::Mcp] {
        let world = Setup { door, ..Setup::scripted() }
            .world("hang up")
            .await?
            .context("the scripted agent is always available")?;
        let checkout = Checkout::of(&world)?;
        let begun = world.file("begun");
        let setup = format!("touch {}; while :; do sleep 1; done", begun.display());
        let params = json!({"name": "left", "working_dir": world.work, "isolation": worktree(&setup)});
        tokio::select! {
            answer = world.door.call("claudecode.create", params) => anyhow::bail!("it is not over: {answer:?}"),
            begun = until("setup to run", || begun.exists()) => begun?,
        }
        checkout.has_no_remains(&world).await?;
        assert_eq!(world.call("claudecode.list", json!({})).await?["sessions"], json!([]));
    }
    Ok(())
}

#[tokio::test]
async fn a_hub_that_stops_during_setup_removes_the_worktree_first() -> anyhow::Result<()> {
    let (mut world, checkout) = scripted().await?;
    let begun = world.file("begun");
    let setup = format!("touch {}; while :; do sleep 1; done", begun.display());
    let call = creating(&world, "cut-off", worktree(&setup))?;
    until("setup to run", || begun.exists()).await?;
    world.hub.terminate().await?;
    call.await?;
    assert_eq!(checkout.remains()?, BTreeSet::new(), "{}", world.hub.stderr());
    assert!(!world.hub.stderr().contains("paused"), "{}", world.hub.stderr());
    Ok(())
}
