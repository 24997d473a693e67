//! What is committed or merged is what a person was shown, whatever the history of the branch says. Each test is an attack.

mod common;

use std::os::unix::fs::{PermissionsExt as _, symlink};

use common::{Ground, assert_clean, git};
use plexus_protocol::claudecode::MergeHow;
use plexus_protocol::worktree::FileMode;
use plexus_worktree::{PreparedMerge, update};

/// A branch that contains a merge cannot be rebased.
const WAYS: [MergeHow; 3] = [MergeHow::Merge, MergeHow::Squash, MergeHow::FastForward];

const AGENT: [&str; 4] = ["-c", "user.name=agent", "-c", "user.email=agent@example.org"];

#[test]
fn a_merge_that_would_revert_the_target_needs_a_review_of_its_result() {
    for how in WAYS {
        let ground = Ground::new();
        let made = ground.create();
        made.write("a.txt", "one\nreviewed\nthree\n");
        made.commit_reviewed().unwrap();
        ground.write("sub/b.txt", "a fix\n");
        let main = ground.commit();
        let merged = git(
            made.path(),
            &[&AGENT[..], &["merge", "-q", "-s", "ours", "-m", "x", &main.to_string()]].concat(),
        );
        if merged.is_none() {
            return;
        }
        let review = made.reviewed();
        let shown: Vec<&str> = review.files.iter().map(|file| &*file.path).collect();
        assert_eq!(shown, ["a.txt"], "the review does not show the fix that the branch dropped");
        let head = review.head.unwrap();
        let PreparedMerge::Differs { before, preview, files } = made.prepare_merge(&head, how).unwrap()
        else {
            panic!("{how:?}: the fix would be lost unseen")
        };
        assert_eq!(before, main.to_string());
        assert_eq!(files.iter().map(|file| &*file.path).collect::<Vec<_>>(), ["a.txt", "sub/b.txt"]);
        assert!(files[1].patch.as_ref().unwrap().contains("-a fix"), "{files:?}");
        assert_eq!(ground.repo.head().unwrap().target(), Some(main));

        // The preview is valid for this commit of the target only.
        ground.write("other.txt", "another fix\n");
        ground.commit();
        let again = made.prepare_previewed(&head, MergeHow::Merge, "main", Some(&preview));
        let again =
            again.or_else(|_| made.prepare_previewed(&head, MergeHow::Merge, "master", Some(&preview)));
        let PreparedMerge::Differs { preview, .. } = again.unwrap() else {
            panic!("{how:?}: another target")
        };
        // A person who has seen the result can merge it.
        let into = made.worktree.base_branch.clone().unwrap();
        let PreparedMerge::Ready(ready) =
            made.prepare_previewed(&head, MergeHow::Merge, &into, Some(&preview)).unwrap()
        else {
            panic!("{how:?}: it was reviewed")
        };
        update(&ready).unwrap();
        assert_eq!(std::fs::read_to_string(ground.root.join("sub/b.txt")).unwrap(), "b\n");
        assert_clean(&ground.root);
    }
}

#[test]
fn a_merge_into_another_branch_shows_the_commits_that_come_along() {
    let ground = Ground::new();
    let first = ground.repo.head().unwrap().peel_to_commit().unwrap();
    ground.repo.branch("release", &first, false).unwrap();
    ground.write("unreleased.txt", "not for the release\n");
    ground.commit();
    let made = ground.create();
    made.write("a.txt", "one\nreviewed\nthree\n");
    let head = made.commit_reviewed().unwrap();
    for how in WAYS {
        let PreparedMerge::Differs { files, .. } = made.prepare_merge_into(&head, how, "release").unwrap()
        else {
            panic!("{how:?}: a file comes along unseen")
        };
        assert_eq!(files.iter().map(|file| &*file.path).collect::<Vec<_>>(), ["a.txt", "unreleased.txt"]);
    }
}

#[test]
fn a_merge_that_cannot_be_shown_in_full_is_refused() {
    let ground = Ground::new();
    let first = ground.repo.head().unwrap().peel_to_commit().unwrap();
    ground.repo.branch("release", &first, false).unwrap();
    // The patch of the first file uses up what a preview shows.
    ground.write("aa-long.txt", &"filler\n".repeat(140_000));
    ground.write("unreleased.txt", &"not for the release\n".repeat(10_000));
    ground.commit();
    let made = ground.create();
    made.write("a.txt", "one\nreviewed\nthree\n");
    let head = made.commit_reviewed().unwrap();
    let refused = match made.prepare_merge_into(&head, MergeHow::Merge, "release") {
        Err(error) => error.to_string(),
        Ok(_) => panic!("a change would be merged unseen"),
    };
    assert!(refused.contains("too large to show"), "{refused}");
}

#[test]
fn a_branch_that_merged_its_target_honestly_needs_no_second_review() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("a.txt", "one\nreviewed\nthree\n");
    made.commit_reviewed().unwrap();
    ground.write("sub/b.txt", "a fix\n");
    let main = ground.commit();
    if git(made.path(), &[&AGENT[..], &["merge", "-q", "-m", "x", &main.to_string()]].concat()).is_none() {
        return;
    }
    let head = made.reviewed().head.unwrap();
    made.merge(&head, MergeHow::Merge).unwrap();
    assert_eq!(std::fs::read_to_string(ground.root.join("sub/b.txt")).unwrap(), "a fix\n");
    assert_clean(&ground.root);
}

#[test]
fn nothing_can_be_committed_or_merged_while_a_changed_file_is_not_named() {
    let ground = Ground::new();
    let made = ground.create();
    for number in 0..500 {
        made.write(&format!("many/{number:03}.txt"), "x\n");
    }
    let review = made.reviewed();
    assert!(review.digest.is_some() && !review.truncated);
    made.write("zz/evil.sh", "evil\n");
    for only in [None, Some("many/000.txt")] {
        let review = made.diff(only).unwrap();
        assert!(review.truncated && review.digest.is_none() && review.head.is_none(), "{only:?}");
    }
}

#[test]
fn links_programs_and_changed_modes_are_shown() {
    let ground = Ground::new();
    let made = ground.create();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(made.path().join("a.txt"), executable.clone()).unwrap();
    made.write("run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(made.path().join("run.sh"), executable.clone()).unwrap();
    symlink("/root/.ssh/id_rsa", made.path().join("link")).unwrap();
    std::fs::remove_file(made.path().join("sub/b.txt")).unwrap();
    symlink("b\n", made.path().join("sub/b.txt")).unwrap();
    made.write("plain.txt", "plain\n");
    let modes: Vec<_> =
        made.reviewed().files.into_iter().map(|file| (file.path, file.old_mode, file.new_mode)).collect();
    let expected = [
        ("a.txt", Some(FileMode::Plain), Some(FileMode::Executable)),
        ("link", None, Some(FileMode::Link)),
        ("plain.txt", None, None),
        ("run.sh", None, Some(FileMode::Executable)),
        ("sub/b.txt", Some(FileMode::Plain), Some(FileMode::Link)),
    ];
    assert_eq!(modes, expected.map(|(path, old, new)| (path.to_owned(), old, new)));
}

#[test]
fn the_version_of_a_file_changes_with_its_content_and_mode() {
    let ground = Ground::new();
    let made = ground.create();
    let version = || made.reviewed().files[0].version.clone().unwrap();
    made.write("blob.bin", "\0one");
    let first = version();
    assert_eq!(version(), first);
    made.write("blob.bin", "\0two");
    let second = version();
    std::fs::set_permissions(made.path().join("blob.bin"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let third = version();
    let large = "x".repeat(2 * 1024 * 1024);
    made.write("blob.bin", &large);
    let fourth = version();
    made.write("blob.bin", &large.replacen('x', "y", 1));
    let all = std::collections::BTreeSet::from([first, second, third, fourth, version()]);
    assert_eq!(all.len(), 5);
}
