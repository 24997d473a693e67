//! The changes in a worktree as a diff: complete, without running any program, and within a size limit.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::os::unix::fs::symlink;

use common::{FreshCheckout, Ground, commit};
use plexus_protocol::worktree::{FileDiff, FileStatus};
use plexus_worktree::WorktreeDiff;

fn all(made: &FreshCheckout) -> WorktreeDiff {
    made.diff(None).unwrap()
}

fn only(made: &FreshCheckout, path: &str) -> FileDiff {
    let mut found = made.diff(Some(path)).unwrap();
    assert_eq!(found.files.len(), 1, "{found:?}");
    found.files.remove(0)
}

fn summary(made: &FreshCheckout) -> Vec<(String, FileStatus, u64, u64)> {
    let files = all(made).files.into_iter();
    files.map(|file| (file.path, file.status, file.insertions, file.deletions)).collect()
}

#[test]
fn committed_uncommitted_and_untracked_work_is_one_diff() {
    let ground = Ground::new();
    let made = ground.create();
    assert_eq!(summary(&made), []);
    made.write("a.txt", "one\n2\nthree\n");
    made.write("committed.txt", "x\n");
    commit(&made.repo());
    made.write("new/deep.txt", "no line end");
    std::fs::remove_file(made.path().join("sub/b.txt")).unwrap();
    let expected = [
        ("a.txt", FileStatus::Modified, 1, 1),
        ("committed.txt", FileStatus::Added, 1, 0),
        ("new/deep.txt", FileStatus::Untracked, 1, 0),
        ("sub/b.txt", FileStatus::Deleted, 0, 1),
    ];
    assert_eq!(
        summary(&made),
        expected.map(|(path, status, new, gone)| (path.to_owned(), status, new, gone))
    );
    let patches: Vec<String> = all(&made).files.into_iter().filter_map(|file| file.patch).collect();
    let expected = [
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
        "--- /dev/null\n+++ b/committed.txt\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ b/new/deep.txt\n@@ -0,0 +1 @@\n+no line end\n\\ No newline at end of file\n",
        "--- a/sub/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n",
    ];
    assert_eq!(patches, expected);
    assert_eq!(only(&made, "a.txt").patch.as_deref(), Some(expected[0]));
    assert!(made.diff(Some("none")).unwrap().files.is_empty());
    // Ignored files and files that existed at the start are not changes of the session.
    made.write("x.log", "noise");
    assert_eq!(summary(&made).len(), 4);
}

#[test]
fn renamed_and_binary_files_are_marked() {
    let ground = Ground::new();
    let made = ground.create();
    std::fs::rename(made.path().join("a.txt"), made.path().join("moved.txt")).unwrap();
    std::fs::write(made.path().join("image"), [0, 159, 146, 150]).unwrap();
    symlink("/etc/passwd", made.path().join("link")).unwrap();
    let found = all(&made).files;
    let [image, link, moved] = found.as_slice() else { panic!("{found:?}") };
    assert!(image.binary && image.patch.is_none() && !image.truncated);
    assert!(
        link.patch.as_ref().unwrap().contains("+/etc/passwd"),
        "a link is compared by its target and is not followed"
    );
    assert_eq!((moved.status, moved.old_path.as_deref()), (FileStatus::Renamed, Some("a.txt")));
    assert_eq!((&*moved.path, &moved.patch), ("moved.txt", &None));
}

#[test]
fn a_file_that_was_moved_and_changed_is_compared_with_the_one_it_was() {
    let ground = Ground::new();
    let made = ground.create();
    std::fs::remove_file(made.path().join("a.txt")).unwrap();
    made.write("deep/moved.txt", "one\n2\nthree\n");
    made.write("other.txt", "nothing in common\n");
    let found = all(&made);
    let [moved, other] = found.files.as_slice() else { panic!("{found:?}") };
    assert_eq!((moved.status, moved.old_path.as_deref()), (FileStatus::Renamed, Some("a.txt")));
    assert_eq!((moved.insertions, moved.deletions), (1, 1));
    let patch = "--- a/a.txt\n+++ b/deep/moved.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    assert_eq!(moved.patch.as_deref(), Some(patch));
    assert_eq!(other.status, FileStatus::Untracked);
    // The old path can still be requested, as what happened there.
    assert_eq!(only(&made, "a.txt").status, FileStatus::Deleted);
}

#[test]
fn a_large_diff_is_truncated_and_marked() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("one-line", &"x".repeat(300 * 1024));
    let found = all(&made);
    let patch = found.files[0].patch.as_ref().unwrap();
    assert!(found.files[0].truncated && patch.len() == 128 * 1024 && !found.truncated);
    let whole = only(&made, "one-line");
    assert!(!whole.truncated && whole.patch.unwrap().len() > 300 * 1024, "a single file has a higher limit");
    made.write("larger", &"y\n".repeat(600 * 1024));
    let larger = only(&made, "larger");
    assert!(larger.truncated && larger.patch.is_none());
    for n in 0..600 {
        made.write(&format!("many/{n}"), &"line\n".repeat(1000));
    }
    let found = all(&made);
    assert_eq!((found.files.len(), found.truncated), (500, true));
    let shown: usize = found.files.iter().filter_map(|file| file.patch.as_ref()).map(String::len).sum();
    assert!(shown <= 1024 * 1024, "{shown}");
    assert!(found.files.iter().filter(|file| file.patch.is_none()).all(|file| file.truncated));
}

#[test]
fn misleading_characters_are_escaped() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("na\u{202e}me", "a\u{1b}[2Kb\n");
    let file = all(&made).files.remove(0);
    assert_eq!(file.path, "na\\u{202e}me");
    assert!(file.patch.as_ref().unwrap().contains("+a\\u{1b}[2Kb\n"), "{file:?}");
    assert_eq!(only(&made, &file.path), file, "the shown path can be requested");
}
