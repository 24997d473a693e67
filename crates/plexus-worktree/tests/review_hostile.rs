//! A repository that a child has prepared for the commit and the merge: hooks, filters, drivers, links and references
//! that lead elsewhere. Nothing that it names runs, and nothing outside the repository is written.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use common::{FreshCheckout, Ground, assert_clean, commit};
use git2::ConfigLevel;
use plexus_protocol::claudecode::MergeHow;
use plexus_worktree::{PreparedMerge, WorktreeError, update};

const HOOKS: [&str; 12] = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-merge-commit",
    "post-merge",
    "pre-rebase",
    "post-rewrite",
    "post-checkout",
    "reference-transaction",
    "post-index-change",
    "fsmonitor-watchman",
];

/// Sets every hook and every setting that can name a program. A program that runs creates the returned file.
fn trap(ground: &Ground) -> PathBuf {
    let (canary, program) = (ground.dir.path().join("canary"), ground.dir.path().join("trap"));
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat\n", canary.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let hooks = ground.dir.path().join("hooks");
    for dir in [&hooks, &ground.root.join(".git/hooks")] {
        std::fs::create_dir_all(dir).unwrap();
        for hook in HOOKS {
            std::fs::copy(&program, dir.join(hook)).unwrap();
        }
    }
    let mut config = ground.repo.config().unwrap().open_level(ConfigLevel::Local).unwrap();
    let command = program.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "core.editor",
        "diff.external",
        "diff.trap.command",
        "diff.trap.textconv",
        "merge.trap.driver",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "gpg.program",
        "gpg.ssh.program",
    ] {
        config.set_str(key, command).unwrap();
    }
    config.set_str("core.hooksPath", hooks.to_str().unwrap()).unwrap();
    config.set_bool("commit.gpgsign", true).unwrap();
    config.set_bool("merge.verifySignatures", true).unwrap();
    canary
}

fn refusal<T>(outcome: Result<T, WorktreeError>) -> String {
    match outcome {
        Ok(_) => panic!("not refused"),
        Err(error) => error.to_string(),
    }
}

/// A worktree with one commit that can be merged.
fn ready(ground: &Ground) -> (FreshCheckout, String) {
    let made = ground.create();
    made.write("a.txt", "one\n2\nthree\n");
    let head = made.commit_reviewed().unwrap();
    (made, head)
}

#[test]
fn no_hook_filter_or_driver_runs() {
    let ground = Ground::new();
    let canary = trap(&ground);
    std::fs::write(ground.root.join(".git/info/attributes"), "* diff=trap merge=trap\n").unwrap();
    for how in [MergeHow::Merge, MergeHow::Rebase, MergeHow::Squash, MergeHow::FastForward] {
        let made = ground.create();
        made.write("a.txt", &format!("{how:?}\ntwo\nthree\n"));
        made.write(&format!("{how:?}.txt"), "x\n");
        let head = made.commit_reviewed().unwrap();
        if how != MergeHow::FastForward {
            ground.write(&format!("main-{how:?}.txt"), "x\n");
            ground.write("sub/b.txt", &format!("{how:?}\n"));
            commit(&ground.repo);
        }
        made.merge(&head, how).unwrap();
        assert!(!canary.exists(), "{how:?}");
    }
    let conflicting = ground.create();
    conflicting.write("sub/b.txt", "theirs\n");
    let head = conflicting.commit_reviewed().unwrap();
    ground.write("sub/b.txt", "ours\n");
    commit(&ground.repo);
    assert!(matches!(conflicting.prepare_merge(&head, MergeHow::Merge), Ok(PreparedMerge::Conflicts { .. })));
    assert!(!canary.exists());
}

#[test]
fn a_filter_of_the_repository_refuses_the_file() {
    let ground = Ground::new();
    let canary = trap(&ground);
    let (made, head) = ready(&ground);
    std::fs::write(ground.root.join(".git/info/attributes"), "* filter=trap\n").unwrap();
    assert!(refusal(made.merge(&head, MergeHow::Merge)).contains("`filter=trap`"));
    made.write("b.txt", "b\n");
    assert!(refusal(made.commit_reviewed()).contains("`filter=trap`"));
    assert!(!canary.exists());
    assert_eq!(std::fs::read_to_string(ground.root.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
}

#[test]
fn the_configured_working_tree_is_not_used() {
    let ground = Ground::new();
    let (made, head) = ready(&ground);
    let elsewhere = ground.dir.path().canonicalize().unwrap().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("a.txt"), "one\ntwo\nthree\n").unwrap();
    let mut config = ground.repo.config().unwrap().open_level(ConfigLevel::Local).unwrap();
    config.set_str("core.worktree", elsewhere.to_str().unwrap()).unwrap();
    made.merge(&head, MergeHow::Merge).unwrap();
    assert_eq!(std::fs::read_to_string(elsewhere.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(std::fs::read_to_string(ground.root.join("a.txt")).unwrap(), "one\n2\nthree\n");
}

#[test]
fn a_branch_name_or_reference_that_leads_elsewhere_is_refused() {
    let ground = Ground::new();
    let (made, head) = ready(&ground);
    let outside = ground.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    for into in ["../../x", "-f", "HEAD", "a b", "", "../../../outside/x", &made.worktree.branch.clone()] {
        refusal(made.prepare_merge_into(&head, MergeHow::Merge, into));
    }
    let heads = ground.root.join(".git/refs/heads");
    let main = made.worktree.base_branch.clone().unwrap();
    std::fs::write(heads.join("symbolic"), format!("ref: refs/heads/{main}\n")).unwrap();
    assert!(refusal(made.prepare_merge_into(&head, MergeHow::Merge, "symbolic")).contains("symbolic"));
    std::fs::write(outside.join("x"), std::fs::read(heads.join(&main)).unwrap()).unwrap();
    symlink(&outside, heads.join("dir")).unwrap();
    assert!(refusal(made.prepare_merge_into(&head, MergeHow::Merge, "dir/x")).contains("not a directory"));
    assert_eq!(outside.read_dir().unwrap().count(), 1);
    assert_eq!(std::fs::read(outside.join("x")).unwrap(), std::fs::read(heads.join(&main)).unwrap());
}

#[test]
fn a_moved_or_redirected_checkout_is_refused() {
    let ground = Ground::new();
    let (made, head) = ready(&ground);
    let (git_dir, aside) = (ground.root.join(".git"), ground.root.join("git"));
    // A link in place of the main working tree's git directory.
    let other = Ground::new();
    std::fs::rename(&git_dir, &aside).unwrap();
    symlink(other.root.join(".git"), &git_dir).unwrap();
    let before = other.repo.head().unwrap().target();
    refusal(made.merge(&head, MergeHow::Merge));
    assert_eq!(other.repo.head().unwrap().target(), before);
    assert_clean(&other.root);
    std::fs::remove_file(&git_dir).unwrap();
    std::fs::rename(&aside, &git_dir).unwrap();
    // A file `.git` of the worktree that names another repository has no effect.
    std::fs::write(made.path().join(".git"), format!("gitdir: {}\n", other.root.join(".git").display()))
        .unwrap();
    made.write("b.txt", "b\n");
    made.commit_reviewed().unwrap();
    assert_clean(&other.root);
    // A link in place of the whole checkout.
    let root = ground.root.with_file_name("moved");
    std::fs::rename(&ground.root, &root).unwrap();
    symlink(&root, &ground.root).unwrap();
    refusal(made.merge(&head, MergeHow::Merge));
}

#[test]
fn nothing_is_written_through_a_link_in_the_checkout() {
    let ground = Ground::new();
    let outside = ground.dir.path().canonicalize().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let made = ground.create();
    made.write("dir/file.txt", "x\n");
    made.write("sub/b.txt", "changed\n");
    let head = made.commit_reviewed().unwrap();
    symlink(&outside, ground.root.join("dir")).unwrap();
    assert!(refusal(made.merge(&head, MergeHow::Merge)).contains("dir/file.txt"));
    std::fs::remove_file(ground.root.join("dir")).unwrap();
    // A tracked directory replaced by a link to an equal one.
    std::fs::rename(ground.root.join("sub"), outside.join("sub")).unwrap();
    symlink(outside.join("sub"), ground.root.join("sub")).unwrap();
    refusal(made.merge(&head, MergeHow::Merge));
    assert_eq!(std::fs::read_to_string(outside.join("sub/b.txt")).unwrap(), "b\n");
}

#[test]
fn a_child_that_rewrites_references_after_the_review_is_refused() {
    let ground = Ground::new();
    let (made, head) = ready(&ground);
    made.write("evil.txt", "evil\n");
    commit(&made.repo());
    assert!(refusal(made.merge(&head, MergeHow::Merge)).contains("changed since you reviewed it"));
    let review = made.reviewed();
    let head = review.head.unwrap();
    // The other branch moves between the preparation and the update.
    let PreparedMerge::Ready(ready) = made.prepare_merge(&head, MergeHow::Merge).unwrap() else {
        panic!("conflict")
    };
    ground.write("later.txt", "x\n");
    let later = commit(&ground.repo);
    assert!(refusal(update(&ready)).contains("changed since"));
    assert_eq!(ground.repo.head().unwrap().target(), Some(later));
    assert_clean(&ground.root);
}

#[test]
fn submodules_nested_repositories_and_large_files_are_refused() {
    let ground = Ground::new();
    let made = ground.create();
    git2::Repository::init(made.path().join("nested")).unwrap();
    made.write("nested/x", "x\n");
    assert!(refusal(made.commit_reviewed()).contains("a repository of its own"));
    std::fs::remove_dir_all(made.path().join("nested")).unwrap();
    let huge = std::fs::File::create(made.path().join("huge")).unwrap();
    huge.set_len(101 * 1024 * 1024).unwrap();
    assert!(refusal(made.commit_reviewed()).contains("`huge` has 101 MiB"));
    std::fs::remove_file(made.path().join("huge")).unwrap();
    // A committed submodule is shown, and the main checkout is not changed by it.
    let repo = made.repo();
    let head = repo.head().unwrap().peel_to_commit().unwrap();
    let mut tree = repo.treebuilder(Some(&head.tree().unwrap())).unwrap();
    tree.insert("lib", head.id(), 0o160_000).unwrap();
    let tree = repo.find_tree(tree.write().unwrap()).unwrap();
    let me = git2::Signature::now("a", "b").unwrap();
    repo.commit(Some("HEAD"), &me, &me, "a submodule", &tree, &[&head]).unwrap();
    let review = made.reviewed();
    assert_eq!(review.files[0].path, "lib");
    assert!(review.files[0].patch.as_ref().unwrap().contains("+Subproject commit"));
    let refused = refusal(made.merge(&review.head.unwrap(), MergeHow::FastForward));
    assert!(refused.contains("submodule `lib`"), "{refused}");
    assert_clean(Path::new(&ground.root));
}

/// A child replaces files as fast as it can during review and commit.
#[test]
fn a_commit_has_what_the_diff_showed_while_a_child_writes() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let ground = Ground::new();
    let outside = ground.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("b.txt"), "secret\n").unwrap();
    let made = ground.create();
    // A review before the first replacement would show other files only.
    made.write("a.txt", "0\n");
    let (over, mut committed) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0_u64.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                made.write("a.txt.new", &format!("{}\n", n % 3));
                std::fs::rename(made.path().join("a.txt.new"), made.path().join("a.txt")).unwrap();
                // A directory that is sometimes a link to one outside.
                let (sub, aside) = (made.path().join("sub"), made.path().join("aside.log"));
                std::fs::rename(&sub, &aside).unwrap();
                symlink(&outside, &sub).unwrap();
                std::fs::remove_file(&sub).unwrap();
                std::fs::rename(&aside, &sub).unwrap();
                if n % 50 == 0 {
                    std::thread::yield_now();
                }
            }
        });
        for _ in 0..60 {
            let Ok(shown) = made.diff(None) else { continue };
            let Some(digest) = shown.digest else { continue };
            let Ok(prepared) = made.prepare_commit(&digest, None) else { continue };
            committed += 1;
            let commit = ground.repo.find_commit(prepared.update.new.parse().unwrap()).unwrap();
            let tree = commit.tree().unwrap();
            let text = |path: &str| {
                let blob =
                    tree.get_path(path.as_ref()).ok()?.to_object(&ground.repo).ok()?.peel_to_blob().ok()?;
                Some(String::from_utf8_lossy(blob.content()).into_owned())
            };
            let patch =
                shown.files.iter().find(|file| file.path == "a.txt").and_then(|file| file.patch.clone());
            assert!(patch.is_some_and(|patch| patch.contains(&format!("+{}", text("a.txt").unwrap()))));
            assert_ne!(text("sub/b.txt").as_deref(), Some("secret\n"));
        }
        over.store(true, Ordering::Relaxed);
    });
    // Without a writer, the same calls succeed.
    assert!(made.commit_reviewed().is_ok(), "{committed} of 60 succeeded while the child wrote");
}
