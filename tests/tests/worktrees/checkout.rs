//! A repository for the tests, and a search for remains of worktrees.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use git2::{BranchType, Repository, Signature};
use plexus_e2e::{Setup, World, until};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

/// A command that starts a background process without its parent's environment, which ignores every signal that it can ignore.
/// It writes its pid to the file.
pub fn straggler(pid_file: &Path) -> String {
    format!(
        "env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" HUP INT TERM; echo $$ > {}; while :; do sleep 1; done' &",
        pid_file.display()
    )
}

pub fn pid_in(file: &Path) -> Option<u32> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Whether that process still runs. Its pid belongs to another namespace, so it is identified by its command.
pub fn runs(pid_file: &Path) -> bool {
    let file = pid_file.as_os_str().as_encoded_bytes();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let commands = all.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    commands.into_iter().any(|command| command.windows(file.len()).any(|part| part == file))
}

/// The working directory of a world as a repository with one commit.
pub struct Checkout {
    pub root: PathBuf,
    pub worktrees: PathBuf,
}

impl Checkout {
    pub fn of(world: &World) -> anyhow::Result<Self> {
        let root = world.work.canonicalize()?;
        let repo = Repository::init(&root)?;
        std::fs::create_dir(root.join("sub"))?;
        std::fs::write(root.join("a.txt"), "one\n")?;
        std::fs::write(root.join("sub/b.txt"), "b\n")?;
        std::fs::write(root.join(".gitignore"), ".env\n*.log\n")?;
        let mut index = repo.index()?;
        index.add_all(["*"], git2::IndexAddOption::DEFAULT, None)?;
        index.write()?;
        let tree = repo.find_tree(index.write_tree()?)?;
        let me = Signature::now("a tester", "tester@localhost")?;
        repo.commit(Some("HEAD"), &me, &me, "first", &tree, &[])?;
        let worktrees = world.hub.data_dir().with_file_name("data-worktrees");
        Ok(Self { root, worktrees })
    }

    pub fn repo(&self) -> anyhow::Result<Repository> {
        Ok(Repository::open(&self.root)?)
    }

    /// Everything that can remain: files in the directory of worktrees, and branches.
    pub fn remains(&self) -> anyhow::Result<BTreeSet<String>> {
        let mut remains = BTreeSet::new();
        for branch in self.repo()?.branches(Some(BranchType::Local))? {
            remains.extend(branch?.0.name()?.filter(|name| name.starts_with("plexus/")).map(str::to_owned));
        }
        remains.extend(self.repo()?.worktrees()?.iter().flatten().map(|name| format!("admin {name:?}")));
        let mut waiting = vec![self.worktrees.clone()];
        while let Some(dir) = waiting.pop() {
            for entry in dir.read_dir().into_iter().flatten() {
                let entry = entry?;
                remains.insert(entry.path().display().to_string());
                if entry.file_type()?.is_dir() {
                    waiting.push(entry.path());
                }
            }
        }
        Ok(remains)
    }

    /// Checks that nothing remains: no files, no branch, no notes, no session.
    pub async fn has_no_remains(&self, world: &World) -> anyhow::Result<()> {
        until("everything to be removed", || self.remains().is_ok_and(|remains| remains.is_empty()))
            .await
            .with_context(|| format!("{:?}\n{}", self.remains(), world.hub.stderr()))?;
        let data = world.hub.data_dir();
        let empty =
            |dir: &str| data.join(dir).read_dir().map_or(true, |mut entries| entries.next().is_none());
        until("no notes and no files of sessions", || empty("worktrees") && empty("sessions")).await
    }
}

pub async fn scripted() -> anyhow::Result<(World, Checkout)> {
    let world =
        Setup::scripted().world("scripted").await?.context("the scripted agent is always available")?;
    let checkout = Checkout::of(&world)?;
    Ok((world, checkout))
}

pub async fn worktree_of(world: &World, session: &str) -> anyhow::Result<Value> {
    let got = world.call("claudecode.get", json!({"session_id": session})).await?;
    Ok(got["session"]["worktree"].clone())
}

pub async fn delete(world: &World, session: &str) -> anyhow::Result<Value> {
    world.call("claudecode.delete", json!({"session_id": session})).await
}

/// Starts a call of `create` and does not wait for it.
pub fn creating(world: &World, name: &str, isolation: Value) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let rpc = Rpc::new(world.hub.url(), &world.hub.token()?);
    let params = json!({"name": name, "working_dir": world.work, "isolation": isolation});
    Ok(tokio::spawn(async move {
        let _ = rpc.call("claudecode.create", params).await;
    }))
}

pub fn worktree(setup: &str) -> Value {
    json!({"type": "worktree", "setup": setup})
}
