//! A helper that is killed at any step of a merge: git calls the repository sound, and the recovery completes the merge,
//! or leaves everything as it was, and never touches what a user wrote.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::process::Command;

use common::{FreshCheckout, Ground, assert_clean, git};
use plexus_protocol::claudecode::MergeHow;
use plexus_worktree::{BranchUpdate, PreparedMerge, Recovered, Step, recover, update_observed};

const STEPS: [(&str, Step, usize); 12] = [
    ("locked", Step::Locked, 1),
    ("first file ready", Step::FileReady, 1),
    ("second file ready", Step::FileReady, 2),
    ("third file ready", Step::FileReady, 3),
    ("first file swapped", Step::FileSwapped, 1),
    ("second file swapped", Step::FileSwapped, 2),
    ("first file", Step::FileWritten, 1),
    ("second file", Step::FileWritten, 2),
    ("files", Step::FilesWritten, 1),
    ("third file", Step::FileWritten, 3),
    ("index", Step::IndexWritten, 1),
    ("moved", Step::Moved, 1),
];

/// Runs in a process of its own: performs the update in the file and ends itself at a step.
#[test]
#[ignore = "only a part of the other tests: they start it as a process"]
fn killed_update() {
    let (Some(file), Some(name)) = (std::env::var_os("UPDATE"), std::env::var("STEP").ok()) else { return };
    let update: BranchUpdate = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let (_, at, mut left) = *STEPS.iter().find(|(step, ..)| *step == name).unwrap();
    let mut observe = |step| {
        if step == at {
            left -= 1;
            if left == 0 {
                let me = rustix::process::getpid();
                rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
            }
        }
    };
    update_observed(&update, &mut observe).unwrap();
}

fn kill_at(ground: &Ground, update: &BranchUpdate, step: &str) {
    let file = ground.dir.path().join("update.json");
    std::fs::write(&file, serde_json::to_vec(update).unwrap()).unwrap();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_update", "--ignored"])
        .env("UPDATE", &file)
        .env("STEP", step)
        .output()
        .unwrap();
    let signal = std::os::unix::process::ExitStatusExt::signal(&ended.status);
    assert_eq!(signal, Some(9), "{step}: {}", String::from_utf8_lossy(&ended.stdout));
}

fn prepared(ground: &Ground) -> (FreshCheckout, BranchUpdate) {
    let made = ground.create();
    made.write("a.txt", "one\n2\nthree\n");
    made.write("new/file.txt", "new\n");
    std::fs::remove_file(made.path().join("sub/b.txt")).unwrap();
    let head = made.commit_reviewed().unwrap();
    match made.prepare_merge(&head, MergeHow::Merge).unwrap() {
        PreparedMerge::Ready(update) => (made, update),
        PreparedMerge::Conflicts { .. } | PreparedMerge::Differs { .. } => panic!("not ready"),
    }
}

fn is_sound(root: &Path) {
    if let Some(problems) = git(root, &["fsck", "--strict", "--no-dangling"]) {
        assert_eq!(problems, "");
    }
}

#[test]
fn a_merge_killed_at_any_step_is_completed_or_not_done() {
    for (step, at, _) in STEPS {
        let ground = Ground::new();
        let (made, update) = prepared(&ground);
        kill_at(&ground, &update, step);
        is_sound(&ground.root);
        let recovered = recover(&update).unwrap();
        let untouched = at == Step::Locked || step == "first file ready";
        let expected = if untouched { Recovered::NotDone } else { Recovered::Completed };
        assert_eq!(recovered, expected, "{step}");
        assert_clean(&ground.root);
        assert_clean(made.path());
        let tip = ground.repo.head().unwrap().target().unwrap().to_string();
        let text = std::fs::read_to_string(ground.root.join("a.txt")).unwrap();
        if recovered == Recovered::Completed {
            assert_eq!((tip, &*text), (update.new.clone(), "one\n2\nthree\n"), "{step}");
            assert_eq!(recover(&update).unwrap(), Recovered::Completed, "again");
        } else {
            assert_eq!((tip, &*text), (update.old.clone(), "one\ntwo\nthree\n"), "{step}");
            plexus_worktree::update(&update).unwrap();
        }
        let left = ground.root.read_dir().unwrap().flatten().map(|entry| entry.file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".plexus-")), "{step}");
    }
}

#[test]
fn what_a_user_wrote_after_the_kill_stays() {
    let ground = Ground::new();
    let (_made, update) = prepared(&ground);
    kill_at(&ground, &update, "second file");
    ground.write("new/file.txt", "mine\n");
    ground.write("a.txt", "mine\n");
    let Recovered::Blocked { why } = recover(&update).unwrap() else { panic!("not reported") };
    assert!(why.contains("was edited since") && why.contains("git status"), "{why}");
    assert_eq!(std::fs::read_to_string(ground.root.join("a.txt")).unwrap(), "mine\n");
    assert_eq!(ground.repo.head().unwrap().target().unwrap().to_string(), update.old);
    is_sound(&ground.root);
    // After the user has taken back the files, nothing is left to recover.
    if git(&ground.root, &["checkout", "-q", "-f", "HEAD", "--", "."]).is_some() {
        std::fs::remove_dir_all(ground.root.join("new")).unwrap();
        assert_eq!(recover(&update).unwrap(), Recovered::NotDone);
        assert_clean(&ground.root);
    }
}

/// The helper was killed between the exchange of a file and the check of what came out.
#[test]
fn what_a_user_saved_during_the_kill_stays() {
    let ground = Ground::new();
    let (_made, update) = prepared(&ground);
    kill_at(&ground, &update, "second file swapped");
    let aside = ground.root.join(format!(".plexus-{}.tmp", &update.new[..12]));
    assert_eq!(std::fs::read_to_string(&aside).unwrap(), "one\ntwo\nthree\n");
    std::fs::write(&aside, "mine\n").unwrap();
    let Recovered::Blocked { why } = recover(&update).unwrap() else { panic!("not reported") };
    assert!(why.contains(".tmp` has what you saved meanwhile"), "{why}");
    assert_eq!(std::fs::read_to_string(&aside).unwrap(), "mine\n");
    std::fs::remove_file(&aside).unwrap();
    assert_eq!(recover(&update).unwrap(), Recovered::Completed);
    assert_clean(&ground.root);
}

#[test]
fn a_branch_that_moved_after_the_kill_is_reported_and_left() {
    let ground = Ground::new();
    let (_made, update) = prepared(&ground);
    kill_at(&ground, &update, "index");
    std::fs::remove_file(Path::new(&update.repo).join(format!("refs/heads/{}.lock", update.branch))).unwrap();
    let later = ground.commit();
    assert!(matches!(recover(&update).unwrap(), Recovered::Superseded { .. }));
    assert_eq!(ground.repo.head().unwrap().target(), Some(later));
    is_sound(&ground.root);
}

#[test]
fn a_commit_killed_at_any_step_is_completed_or_not_done() {
    for step in ["locked", "index", "moved"] {
        let ground = Ground::new();
        let made = ground.create();
        made.write("a.txt", "changed\n");
        let prepared = made.prepare_commit(&made.reviewed().digest.unwrap(), None).unwrap();
        kill_at(&ground, &prepared.update, step);
        is_sound(&ground.root);
        let expected = if step == "moved" { Recovered::Completed } else { Recovered::NotDone };
        assert_eq!(recover(&prepared.update).unwrap(), expected, "{step}");
        if step == "moved" {
            assert_clean(made.path());
        } else {
            made.commit_reviewed().unwrap();
            assert_clean(made.path());
        }
    }
}

/// The lock of another git command stays.
#[test]
fn a_lock_of_another_command_is_not_deleted() {
    let ground = Ground::new();
    let (_made, update) = prepared(&ground);
    let lock = Path::new(&update.repo).join(format!("refs/heads/{}.lock", update.branch));
    // Git creates a lock empty and writes the commit later.
    for content in [String::new(), format!("{}\n", update.old)] {
        std::fs::write(&lock, content).unwrap();
        assert_eq!(recover(&update).unwrap(), Recovered::NotDone);
        assert!(lock.exists());
    }
    let refused = plexus_worktree::update(&update).unwrap_err().to_string();
    assert!(refused.contains("is locked by another git command") && refused.contains(".lock"), "{refused}");
}
