//! A random attacker: it swaps any path that an agent could swap, in random order and as fast as it can, while a real hub creates,
//! compares and deletes sessions with worktrees.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use git2::{ObjectType, Repository};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use crate::attacker::Ground;
use crate::attacker::swapper::{Swapper, exchange};

/// The number of clients that create, compare and delete at once.
const CLIENTS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_random_attacker_reads_and_changes_no_file_of_the_hub() -> anyhow::Result<()> {
    attacked_for(Duration::from_secs(6), "a_random_attacker_reads_and_changes_no_file_of_the_hub").await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: one minute"]
async fn a_random_attacker_reads_and_changes_nothing_in_a_minute() -> anyhow::Result<()> {
    attacked_for(Duration::from_secs(60), "a_random_attacker_reads_and_changes_nothing_in_a_minute").await
}

/// The number of operations, and how many of them failed because of the attacker.
#[derive(Default)]
struct Counts {
    tried: AtomicUsize,
    failed: AtomicUsize,
}

async fn attacked_for(time: Duration, test: &'static str) -> anyhow::Result<()> {
    let Some(ground) = Ground::new(test, 20).await? else { return Ok(()) };
    // This session is compared all the time and never deleted.
    let (_, path) = ground.works().await?;
    for name in ["operator.token", "marker.txt"] {
        std::fs::write(path.join("sub").join(name), "changed\n")?;
    }
    let until = Instant::now() + time;
    let counts = Counts::default();
    let attack = attacker(&ground);
    let clients = (0..CLIENTS).map(|client| work(&ground, client, until, &counts));
    futures::future::join_all(clients).await.into_iter().collect::<anyhow::Result<()>>()?;
    drop(attack);
    assert_eq!(ground.evidence.changed()?, Vec::<String>::new(), "changed in the data directory");
    for dir in [&ground.worktrees, &ground.root, &ground.world.home] {
        assert_eq!(ground.evidence.leaked_to(dir), Vec::<PathBuf>::new(), "bytes of the data directory");
    }
    let blobs = searched_objects(&ground)?;
    let [tried, failed] = [&counts.tried, &counts.failed].map(|count| count.load(Ordering::Relaxed));
    assert!(
        failed > 0 && failed < tried && blobs > 0,
        "{tried} calls, {failed} of them failed, {blobs} blobs"
    );
    Ok(())
}

/// Creates, compares and deletes sessions with a worktree. Operations may fail. No answer may contain data of the hub.
async fn work(ground: &Ground, client: usize, until: Instant, counts: &Counts) -> anyhow::Result<()> {
    let door = Rpc::new(ground.world.hub.url(), &ground.world.hub.token()?);
    let call = async |method: &str, params: Value| -> anyhow::Result<Option<Value>> {
        let answer = door.call(method, params).await;
        let text = answer.as_ref().map_or_else(ToString::to_string, ToString::to_string);
        anyhow::ensure!(!ground.evidence.is_in(text.as_bytes()), "{method} leaked: {text}");
        counts.tried.fetch_add(1, Ordering::Relaxed);
        if answer.is_err() {
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(answer.ok())
    };
    for i in 0.. {
        if Instant::now() > until {
            break;
        }
        let isolation = json!({"type": "worktree", "copy": ["copied", "same"]});
        let name = format!("c{client}-{i}");
        let create = json!({"name": name, "working_dir": ground.root, "isolation": isolation});
        let created = call("claudecode.create", create).await?.is_some();
        call("claudecode.diff", json!({"name": "legitimate"})).await?;
        call("claudecode.get", json!({"name": "legitimate"})).await?;
        // Some worktrees stay, so that a leak into them is found at the end.
        if created && i % 3 != 0 {
            call("claudecode.diff", json!({"name": name})).await?;
            call("claudecode.delete", json!({"name": name})).await?;
        }
    }
    Ok(())
}

/// Swaps random paths for links to random places in the data directory, back and forth.
fn attacker(ground: &Ground) -> Swapper {
    let (root, worktrees) = (ground.root.clone(), ground.worktrees.clone());
    let (data, link) = (ground.world.hub.data_dir().to_owned(), ground.world.home.join("link"));
    let mut random = fastrand::Rng::new();
    Swapper::start(move || {
        let Some(victim) = victim(&root, &worktrees, &mut random) else { return };
        let target = random.choice(["", "marked", "marked/deep", "marker.txt", "operator.token"]);
        let _ = std::os::unix::fs::symlink(data.join(target.unwrap_or("")), &link);
        let until = Instant::now() + Duration::from_millis(random.u64(..60));
        while Instant::now() < until {
            exchange(&victim, &link);
        }
        // Restores everything and sometimes pauses, so that the hub can work.
        if !link.is_symlink() {
            exchange(&victim, &link);
        }
        let _ = std::fs::remove_file(&link);
        std::thread::sleep(Duration::from_millis(random.u64(..60)));
    })
}

/// A path that an agent can rename: in the working directory, in the repository, or in a worktree.
fn victim(root: &Path, worktrees: &Path, random: &mut fastrand::Rng) -> Option<PathBuf> {
    let some = |dir: PathBuf, random: &mut fastrand::Rng| -> Option<PathBuf> {
        let entries = dir.read_dir().ok()?.flatten().map(|entry| entry.path());
        random.choice(entries.filter(|path| !path.is_symlink()).collect::<Vec<_>>())
    };
    match random.u8(..12) {
        0 => Some(root.join("copied")),
        1 | 2 => Some(root.join("same")),
        3 => some(root.join("copied"), random),
        4 => some(some(root.join(".git/worktrees"), random)?, random),
        5 => Some(worktrees.join("work")),
        6 => Some(worktrees.to_owned()),
        7 | 8 => some(worktrees.join("work"), random),
        9 => Some(some(worktrees.join("work"), random)?.join("sub")),
        10 => Some(some(worktrees.join("work"), random)?.join("copied")),
        _ => some(some(worktrees.join("work"), random)?, random),
    }
}

/// Searches every blob of the repository. Returns their number.
fn searched_objects(ground: &Ground) -> anyhow::Result<usize> {
    let repo = Repository::open(&ground.root)?;
    let odb = repo.odb()?;
    let mut ids = Vec::new();
    odb.foreach(|id| {
        ids.push(*id);
        true
    })?;
    let mut blobs = 0;
    for id in ids {
        let object = odb.read(id).context("an object")?;
        if object.kind() == ObjectType::Blob {
            blobs += 1;
            assert!(!ground.evidence.is_in(object.data()), "{id} holds bytes of the data directory");
        }
    }
    Ok(blobs)
}
