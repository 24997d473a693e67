//! An attacker with the rights of an agent swaps directories for links to the data directory while the hub works on them. Nothing
//! leaks from the data directory and nothing in it changes. Without the attacker, the same operation works.

mod evidence;
mod random;
mod swapper;
mod transcripts;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use evidence::{EVIL, Evidence};
use git2::{Repository, Signature};
use plexus_e2e::{Setup, World, text};
use plexus_testkit::skip;
use serde_json::{Value, json};
use swapper::Swapper;

/// The number of attempts. Without the file helper each attack succeeded within a few attempts.
const TRIES: usize = 12;
/// The number of files that keep the hub busy.
const FILES: usize = 150;

struct Ground {
    world: World,
    evidence: Evidence,
    root: PathBuf,
    worktrees: PathBuf,
    test: &'static str,
}

impl Ground {
    /// A repository. Its tracked directory `sub` and its untracked directories `copied` and `same` contain files with the names of the
    /// hub's files. All but `same` also contain this many other files.
    async fn new(test: &'static str, files: usize) -> anyhow::Result<Option<Self>> {
        let world = Setup::scripted().world(test).await?.context("the scripted agent is always available")?;
        let evidence = Evidence::of(&world)?;
        let root = world.work.canonicalize()?;
        let repo = Repository::init(&root)?;
        for dir in ["", "sub", "copied"] {
            fill(&root.join(dir), files)?;
        }
        // Both sides have these names, because a copy that misses a file fails and is undone.
        std::fs::create_dir(root.join("same"))?;
        for name in evidence::many() {
            std::fs::write(root.join("same").join(name), "EVIL\n")?;
        }
        std::fs::write(root.join(".gitignore"), "copied\nsame\n")?;
        commit(&repo)?;
        let worktrees = world.hub.data_dir().with_file_name("data-worktrees");
        std::fs::create_dir_all(worktrees.join("work"))?;
        let ground = Self { world, evidence, root, worktrees, test };
        if ground.is_without_sandbox().await? {
            skip(test, "sandbox");
            return Ok(None);
        }
        Ok(Some(ground))
    }

    async fn is_without_sandbox(&self) -> anyhow::Result<bool> {
        let session = self.world.create("first", json!({})).await?;
        let view = self.world.call("claudecode.get", json!({"session_id": session})).await?;
        Ok(view["session"]["wall"] == "none")
    }

    /// Creates sessions with a worktree and a copied directory during `attack`, until the attack has succeeded or failed often enough.
    async fn create_under(&self, copy: &str, attack: Swapper) -> anyhow::Result<()> {
        let isolation = json!({"type": "worktree", "copy": [copy]});
        for i in 0..TRIES {
            let params = json!({"name": format!("s{i}"), "working_dir": self.root, "isolation": isolation});
            let answer = self.world.door.call("claudecode.create", params).await;
            let answer = answer.map_or_else(|error| error.to_string(), |answer| answer.to_string());
            assert!(!self.evidence.is_in(answer.as_bytes()), "{}: the answer: {answer}", self.test);
            let changed = self.evidence.changed()?;
            assert!(changed.is_empty(), "{}: changed in the data directory: {changed:?}", self.test);
        }
        drop(attack);
        let leaked = self.evidence.leaked_to(&self.worktrees);
        assert!(leaked.is_empty(), "{}: bytes of the data directory in {leaked:?}", self.test);
        Ok(())
    }

    /// Checks that the same operation works without the attacker.
    async fn works(&self) -> anyhow::Result<(String, PathBuf)> {
        let isolation = json!({"type": "worktree", "copy": ["copied"]});
        let session = self.world.create("legitimate", json!({"isolation": isolation})).await?;
        let view = self.world.call("claudecode.get", json!({"session_id": session})).await?;
        let path = PathBuf::from(text(&view["session"]["worktree"]["path"]));
        for file in ["operator.token", "sub/operator.token", "copied/operator.token", "copied/marker.txt"] {
            assert_eq!(std::fs::read_to_string(path.join(file))?, "EVIL\n", "{file}");
        }
        assert_eq!(view["session"]["worktree"]["changes"]["files"], 0, "{view:#}");
        Ok((session, path))
    }
}

/// Creates files with the names of the hub's files, and others that keep the hub busy.
fn fill(dir: &Path, others: usize) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir)?;
    let others = (0..others).map(|i| format!("{EVIL}{i}"));
    for name in ["operator.token", "marker.txt"].map(str::to_owned).into_iter().chain(others) {
        std::fs::write(dir.join(name), "EVIL\n")?;
    }
    Ok(())
}

fn commit(repo: &Repository) -> anyhow::Result<()> {
    let mut index = repo.index()?;
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None)?;
    index.write()?;
    let tree = repo.find_tree(index.write_tree()?)?;
    let me = Signature::now("a tester", "tester@localhost")?;
    repo.commit(Some("HEAD"), &me, &me, "first", &tree, &[])?;
    Ok(())
}

#[tokio::test]
async fn a_swapped_source_of_a_copy_leaks_nothing() -> anyhow::Result<()> {
    let Some(ground) = Ground::new("a_swapped_source_of_a_copy_leaks_nothing", 3).await? else {
        return Ok(());
    };
    let marked = ground.world.hub.data_dir().join("marked");
    let attack = Swapper::between(ground.root.join("same"), ground.root.join("!link"), &marked)?;
    ground.create_under("same", attack).await?;
    ground.works().await?;
    Ok(())
}

#[tokio::test]
async fn a_swapped_destination_of_a_copy_changes_no_file_of_the_hub() -> anyhow::Result<()> {
    let Some(ground) =
        Ground::new("a_swapped_destination_of_a_copy_changes_no_file_of_the_hub", FILES).await?
    else {
        return Ok(());
    };
    let data = ground.world.hub.data_dir().to_owned();
    ground
        .create_under("copied", Swapper::in_new_worktrees(ground.worktrees.join("work"), "copied", data))
        .await?;
    ground.works().await?;
    Ok(())
}

#[tokio::test]
async fn a_worktree_swapped_during_checkout_changes_no_file_of_the_hub() -> anyhow::Result<()> {
    let Some(ground) =
        Ground::new("a_worktree_swapped_during_checkout_changes_no_file_of_the_hub", FILES).await?
    else {
        return Ok(());
    };
    let data = ground.world.hub.data_dir().to_owned();
    ground.create_under("copied", Swapper::in_new_worktrees(ground.worktrees.join("work"), "", data)).await?;
    ground.works().await?;
    Ok(())
}

#[tokio::test]
async fn a_swapped_directory_leaks_nothing_in_a_diff() -> anyhow::Result<()> {
    let Some(ground) = Ground::new("a_swapped_directory_leaks_nothing_in_a_diff", FILES).await? else {
        return Ok(());
    };
    let (session, path) = ground.works().await?;
    for i in 0..FILES {
        std::fs::write(path.join(format!("sub/{EVIL}{i}")), "changed\n")?;
    }
    std::fs::write(path.join("sub/operator.token"), "changed\n")?;
    std::fs::write(path.join("sub/marker.txt"), "changed\n")?;
    let diff = async || -> anyhow::Result<Value> {
        Ok(ground
            .world
            .door
            .call("claudecode.diff", json!({"session_id": session}))
            .await
            .unwrap_or_default())
    };
    let undisturbed = diff().await?;
    assert_eq!(undisturbed["files"].as_array().map(Vec::len), Some(FILES + 2), "{undisturbed}");
    let attack =
        Swapper::between(path.join("sub"), ground.worktrees.join("!link"), ground.world.hub.data_dir())?;
    for _ in 0..TRIES {
        let answer = diff().await?.to_string();
        assert!(!ground.evidence.is_in(answer.as_bytes()), "{answer}");
        let view = ground.world.call("claudecode.get", json!({"session_id": session})).await?.to_string();
        assert!(!ground.evidence.is_in(view.as_bytes()), "{view}");
    }
    drop(attack);
    if path.join("sub").is_symlink() {
        swapper::exchange(&path.join("sub"), &ground.worktrees.join("!link"));
    }
    assert_eq!(diff().await?["files"], undisturbed["files"]);
    Ok(())
}
