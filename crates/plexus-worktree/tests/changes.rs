//! Which changes of a worktree are counted, and which work is lost with a worktree.

mod common;

use std::os::unix::fs::{PermissionsExt, symlink};

use common::{Ground, commit};
use git2::{IndexEntryFlag, Repository};
use plexus_protocol::claudecode::MergeHow;
use plexus_worktree::{WorktreeError, remove};

#[test]
fn a_fresh_worktree_is_unchanged_and_ignored_files_do_not_count() {
    let ground = Ground::new();
    let made = ground.create();
    assert_eq!(made.figures(), [0; 5]);
    made.write("out/program", "built");
    made.write("sub/x.log", "noise");
    assert_eq!(made.figures(), [0; 5]);
    assert!(made.unchanged());
    // Written again with the same content: git compares contents, too.
    made.write("a.txt", "one\ntwo\nthree\n");
    assert!(made.unchanged());
}

#[test]
fn uncommitted_untracked_and_committed_work_is_counted() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("a.txt", "one\n2\nthree\nfour\n");
    assert_eq!(made.figures(), [1, 2, 1, 0, 0]);
    made.write("new/deep.txt", "x\ny\n");
    assert_eq!(made.figures(), [2, 4, 1, 1, 0]);
    std::fs::remove_file(made.path().join("sub/b.txt")).unwrap();
    assert_eq!(made.figures(), [3, 4, 2, 1, 0]);
    assert!(!made.unchanged());
    commit(&made.repo());
    // Committed work is on the branch, and still differs from the base.
    assert_eq!(made.figures(), [3, 4, 2, 0, 1]);
    assert!(!made.unchanged());
    assert_eq!(ground.create().figures(), [0; 5], "others are not touched");
}

#[test]
fn every_kind_of_change_keeps_a_worktree() {
    let ground = Ground::new();
    let changed = |what: &str, change: &dyn Fn(&common::FreshCheckout)| {
        let made = ground.create();
        change(&made);
        assert!(!made.unchanged(), "{what}");
    };
    changed("a mode", &|made| {
        let path = made.path().join("a.txt");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    });
    changed("a link in place of a file", &|made| {
        std::fs::remove_file(made.path().join("a.txt")).unwrap();
        symlink("sub/b.txt", made.path().join("a.txt")).unwrap();
    });
    changed("a file of the same size and time", &|made| {
        let path = made.path().join("a.txt");
        let time = path.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, "ONE\ntwo\nthree\n").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    });
    changed("a commit that was taken back in the files", &|made| {
        made.write("x.txt", "x\n");
        commit(&made.repo());
        std::fs::remove_file(made.path().join("x.txt")).unwrap();
    });
    changed("a commit without a branch", &|made| {
        let repo = made.repo();
        repo.set_head_detached(made.worktree.base.parse().unwrap()).unwrap();
        // Other content than above: an equal commit would be saved in the branch of the worktree above.
        made.write("detached.txt", "x\n");
        commit(&repo);
    });
    changed("something staged that is in no file", &|made| {
        made.write("x.txt", "x\n");
        let repo = made.repo();
        let mut index = repo.index().unwrap();
        index.add_path("x.txt".as_ref()).unwrap();
        index.write().unwrap();
        std::fs::remove_file(made.path().join("x.txt")).unwrap();
    });
    changed("a file that git was told to leave alone", &|made| {
        let mut index = made.repo().index().unwrap();
        let mut entry = index.get_path("a.txt".as_ref(), 0).unwrap();
        entry.flags |= IndexEntryFlag::VALID.bits();
        index.add(&entry).unwrap();
        index.write().unwrap();
        made.write("a.txt", "mine\n");
    });
    changed("a merge under way", &|made| {
        std::fs::write(made.admin().join("MERGE_HEAD"), format!("{}\n", made.worktree.base)).unwrap();
    });
    changed("a lock", &|made| std::fs::write(made.admin().join("locked"), "mine").unwrap());
    changed("a repository inside", &|made| {
        Repository::init(made.path().join("inner")).unwrap();
        made.write("inner/x.txt", "x\n");
        assert_eq!(made.figures()[0], 1);
    });
    changed("a directory that cannot be read", &|made| {
        made.write("closed/x.txt", "x\n");
        let mode = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(made.path().join("closed"), mode).unwrap();
    });
}

#[test]
fn copied_and_set_up_files_count_only_after_a_change() {
    let ground = Ground::new();
    ground.write(".env", "SECRET=1\n");
    ground.write("local.conf", "x\n");
    ground.write("a.txt", "locally changed\n");
    let made = ground.copying(&[".env", "local.conf", "a.txt"]);
    assert_eq!(
        (made.read(".env"), made.read("a.txt")),
        ("SECRET=1\n".to_owned(), "locally changed\n".to_owned())
    );
    assert_eq!(made.figures(), [0; 5]);
    // Setup creates a file and deletes one before the state is recorded.
    made.write("generated.rs", "fn f() {}\n");
    std::fs::remove_file(made.path().join("sub/b.txt")).unwrap();
    assert_eq!(made.figures(), [2, 1, 1, 1, 0]);
    made.take();
    assert_eq!(made.figures(), [0; 5]);
    assert!(made.unchanged());
    made.write("local.conf", "y\nz\n");
    assert_eq!(made.figures(), [1, 2, 0, 1, 0]);
    assert!(!made.unchanged());
    made.write("local.conf", "x\n");
    assert!(made.unchanged());
    made.write("sub/b.txt", "c\n");
    assert!(!made.unchanged());
}

#[test]
fn lines_of_large_and_binary_files_are_not_counted_but_the_files_are() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("large.txt", &"line\n".repeat(300_000));
    made.write("binary", "\0\n\n\n");
    assert_eq!(made.figures(), [2, 0, 0, 2, 0]);
}

#[test]
fn a_worktree_with_too_many_files_is_reported_and_kept() {
    let ground = Ground::new();
    let made = ground.create();
    std::fs::create_dir(made.path().join("heap")).unwrap();
    let file = made.path().join("heap/0");
    std::fs::write(&file, "").unwrap();
    // A file can have at most 65,000 hard links.
    let other = made.path().join("heap/other");
    std::fs::write(&other, "").unwrap();
    for number in 1..=100_004 {
        std::fs::hard_link(
            if number < 60_000 { &file } else { &other },
            made.path().join(format!("heap/{number}")),
        )
        .unwrap();
    }
    assert!(matches!(made.changes(), Err(WorktreeError::TooMuch)));
    assert!(made.is_unchanged().is_err());
}

#[test]
fn another_directory_at_the_path_of_a_worktree_is_neither_read_nor_removed() {
    let ground = Ground::new();
    let made = ground.create();
    let elsewhere = ground.dir.path().join("elsewhere");
    std::fs::rename(made.path(), &elsewhere).unwrap();
    symlink(&ground.root, made.path()).unwrap();
    assert!(matches!(made.changes(), Err(WorktreeError::Moved(_))));
    assert!(made.is_unchanged().is_err());
    std::fs::remove_file(made.path()).unwrap();
    std::fs::rename(&elsewhere, made.path()).unwrap();
    // Git's own records of the path can contain anything.
    std::fs::write(made.admin().join("gitdir"), ground.root.join(".git").to_str().unwrap()).unwrap();
    std::fs::write(made.path().join(".git"), "gitdir: /nowhere\n").unwrap();
    assert!(made.unchanged());
    remove(&made.worktree).unwrap();
    assert!(!made.path().exists() && ground.root.join("a.txt").exists());
}

#[test]
fn the_branch_of_a_deleted_worktree_is_removed_unless_it_has_commits() {
    let ground = Ground::new();
    let made = ground.create();
    std::fs::remove_dir_all(made.path()).unwrap();
    assert!(made.changes().is_err());
    assert!(made.unchanged());
    remove(&made.worktree).unwrap();
    assert!(ground.repo.find_branch(&made.worktree.branch, git2::BranchType::Local).is_err());
    let moved_on = ground.create();
    moved_on.write("x.txt", "x\n");
    commit(&moved_on.repo());
    std::fs::remove_dir_all(moved_on.path()).unwrap();
    assert!(!moved_on.unchanged(), "its branch holds work");
}

#[test]
fn merged_work_is_not_lost_with_its_worktree() {
    let ground = Ground::new();
    for how in [MergeHow::FastForward, MergeHow::Merge, MergeHow::Squash, MergeHow::Rebase] {
        let made = ground.create();
        made.write(&format!("{how:?}.txt"), "x\n");
        let head = made.commit_reviewed().unwrap();
        assert_eq!(made.losses(), ["1 commit is not merged into another branch"], "{how:?}");
        if how != MergeHow::FastForward {
            ground.write(&format!("other-{how:?}.txt"), "y\n");
            ground.commit();
        }
        made.merge(&head, how).unwrap();
        assert_eq!(made.losses(), [""; 0], "{how:?}");
        made.write("a.txt", "more\n");
        made.write("new.txt", "more\n");
        assert_eq!(made.losses(), ["2 files are not committed (a.txt, new.txt)"], "{how:?}");
    }
}

#[test]
fn work_that_was_undone_or_that_only_an_alias_of_the_branch_has_is_lost() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("x.txt", "x\n");
    commit(&made.repo());
    let own = format!("refs/heads/{}", made.worktree.branch);
    ground.repo.reference_symbolic("refs/heads/alias", &own, true, "an alias").unwrap();
    assert_eq!(made.losses(), ["1 commit is not merged into another branch"]);
    std::fs::remove_file(made.path().join("x.txt")).unwrap();
    commit(&made.repo());
    ground.write("other.txt", "y\n");
    ground.commit();
    assert_eq!(made.losses(), ["2 commits are not merged into another branch"]);
    let tip = made.repo().head().unwrap().peel_to_commit().unwrap().id();
    ground.repo.reference("refs/tags/saved", tip, true, "a tag").unwrap();
    assert_eq!(made.losses(), [""; 0]);
}

#[test]
fn work_on_another_branch_in_the_worktree_is_kept_by_that_branch() {
    let ground = Ground::new();
    let made = ground.create();
    made.repo().set_head_detached(made.worktree.base.parse().unwrap()).unwrap();
    made.write("x.txt", "x\n");
    let head = commit(&made.repo());
    assert_eq!(made.losses(), ["1 commit is not merged into another branch"], "HEAD is detached");
    ground.repo.reference("refs/heads/feature", head, true, "a branch").unwrap();
    assert_eq!(made.losses(), [""; 0]);
    std::fs::write(made.admin().join("MERGE_HEAD"), head.to_string()).unwrap();
    assert_eq!(made.losses(), ["a merge is in progress"]);
}
