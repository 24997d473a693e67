//! A random attacker: it swaps whatever an agent could swap, in random order and as fast as it can, while sessions with
//! worktrees are created, compared and deleted through a real hub.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use git2::{ObjectType, Repository};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use crate::Ground;
use crate::swapper::{Swapper, exchange};

/// How many clients create, compare and delete at once.
const CLIENTS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_random_attacker_gets_nothing_and_changes_nothing() -> anyhow::Result<()> {
    attacked_for(Duration::from_secs(6), "a_random_attacker_gets_nothing_and_changes_nothing").await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: one minute"]
async fn a_random_attacker_gets_nothing_in_a_minute() -> anyhow::Result<()> {
    attacked_for(Duration::from_secs(60), "a_random_attacker_gets_nothing_in_a_minute").await
}

/// What was done meanwhile.
#[derive(Default)]
struct Counts {
    created: AtomicUsize,
    compared: AtomicUsize,
    deleted: AtomicUsize,
    failed: AtomicUsize,
}

async fn attacked_for(time: Duration, test: &'static str) -> anyhow::Result<()> {
    let Some(ground) = Ground::new(test, 20).await? else { return Ok(()) };
    let until = Instant::now() + time;
    let counts = Counts::default();
    let attackers: Vec<Swapper> = (0..2).map(|_| attacker(&ground)).collect();
    let clients = (0..CLIENTS).map(|client| work(&ground, client, until, &counts));
    futures::future::join_all(clients).await.into_iter().collect::<anyhow::Result<()>>()?;
    drop(attackers);
    assert_eq!(ground.evidence.changed()?, Vec::<String>::new(), "changed in the data directory");
    for dir in [&ground.worktrees, &ground.root, &ground.world.home] {
        assert_eq!(ground.evidence.leaked_to(dir), Vec::<PathBuf>::new(), "bytes of the data directory");
    }
    let blobs = searched_objects(&ground)?;
    let [created, compared, deleted, failed] =
        [&counts.created, &counts.compared, &counts.deleted, &counts.failed]
            .map(|count| count.load(Ordering::Relaxed));
    let did =
        format!("{created} created, {compared} compared, {deleted} deleted, {failed} failed, {blobs} blobs");
    assert!(created > 0 && compared > 0 && deleted > 0 && blobs > 0, "the hub did nothing: {did}");
    Ok(())
}

/// Creates, compares and deletes sessions with a worktree. Failures are as they may be; answers hold nothing of the hub.
async fn work(ground: &Ground, client: usize, until: Instant, counts: &Counts) -> anyhow::Result<()> {
    let door = Rpc::new(ground.world.hub.url(), &ground.world.hub.token()?);
    let call = async |method: &str, params: Value| -> anyhow::Result<Option<Value>> {
        let answer = door.call(method, params).await;
        let text = answer.as_ref().map_or_else(ToString::to_string, ToString::to_string);
        anyhow::ensure!(!ground.evidence.is_in(text.as_bytes()), "{method} gave away: {text}");
        if answer.is_err() {
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(answer.ok())
    };
    for i in 0.. {
        if Instant::now() > until {
            return Ok(());
        }
        let isolation = json!({"type": "worktree", "copy": ["copied", "same"]});
        let name = format!("c{client}-{i}");
        let create = json!({"name": name, "working_dir": ground.root, "isolation": isolation});
        if call("claudecode.create", create).await?.is_none() {
            continue;
        }
        counts.created.fetch_add(1, Ordering::Relaxed);
        for method in ["claudecode.diff", "claudecode.get", "claudecode.diff"] {
            if call(method, json!({"name": name})).await?.is_some() {
                counts.compared.fetch_add(1, Ordering::Relaxed);
            }
        }
        // What leaked into one that stays is found at the end.
        if i % 3 == 0 {
            continue;
        }
        if call("claudecode.delete", json!({"name": name})).await?.is_some() {
            counts.deleted.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Swaps one path after the other for a link to some place in the data directory, and back after a moment, so that
/// something is left for the hub to do.
fn attacker(ground: &Ground) -> Swapper {
    let (root, worktrees) = (ground.root.clone(), ground.worktrees.clone());
    let data = ground.world.hub.data_dir().to_owned();
    let mut random = fastrand::Rng::new();
    let links = ground.world.home.join(format!("links-{}", random.u64(..)));
    let _ = std::fs::create_dir_all(&links);
    Swapper::start(move || {
        let Some(victim) = victim(&root, &worktrees, &mut random) else { return };
        let target = data
            .join(random.choice(["", "marked", "marked/deep", "marker.txt", "operator.token"]).unwrap_or(""));
        let link = links.join(random.u32(..).to_string());
        let _ = std::os::unix::fs::symlink(target, &link);
        exchange(&victim, &link);
        for _ in 0..random.u32(..2000) {
            std::hint::spin_loop();
        }
        exchange(&victim, &link);
        if random.u8(..4) == 0 {
            // So that the hub gets through to its next step now and then.
            std::thread::sleep(Duration::from_millis(random.u64(..30)));
        }
        // What came back is the link, unless the hub meanwhile put something else there.
        let _ = std::fs::remove_file(&link);
    })
}

/// Something that an agent can rename: in the working directory, in the repository, or in a worktree.
fn victim(root: &Path, worktrees: &Path, random: &mut fastrand::Rng) -> Option<PathBuf> {
    let some = |dir: PathBuf, random: &mut fastrand::Rng| -> Option<PathBuf> {
        let entries: Vec<PathBuf> = dir.read_dir().ok()?.flatten().map(|entry| entry.path()).collect();
        random.choice(entries)
    };
    match random.u8(..10) {
        0 => Some(root.join("copied")),
        1 => Some(root.join("same")),
        2 => some(root.join("copied"), random),
        3 => some(root.join(".git/worktrees"), random),
        4 => some(some(root.join(".git/worktrees"), random)?, random),
        5 => Some(worktrees.join("work")),
        6 => Some(worktrees.to_owned()),
        7 => some(worktrees.join("work"), random),
        _ => some(some(worktrees.join("work"), random)?, random),
    }
}

/// Looks into every blob of the repository; says how many there are.
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
