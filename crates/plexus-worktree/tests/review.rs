//! From a review to a merged branch: what was shown is committed, and what is committed is merged, or nothing is
//! changed. The installed git confirms the results.

mod common;

use std::os::unix::fs::{PermissionsExt as _, symlink};

use common::{Ground, assert_clean, commit, git};
use plexus_protocol::claudecode::MergeHow;
use plexus_worktree::{PreparedMerge, Shown, WorktreeError, diff, update};

fn refusal<T>(outcome: Result<T, WorktreeError>) -> String {
    match outcome {
        Ok(_) => panic!("not refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_reviewed_worktree_becomes_a_commit_that_git_accepts() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("a.txt", "one\n2\nthree\n");
    made.write("new/deep.txt", "no line end");
    made.write("run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(made.path().join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.txt", made.path().join("link")).unwrap();
    std::fs::remove_file(made.path().join("sub/b.txt")).unwrap();
    made.write("noise.log", "ignored");
    let review = made.reviewed();
    assert_eq!(review.base_author.as_ref().unwrap().name, "a tester");
    assert_eq!((review.state.uncommitted, review.state.ahead), (5, Some(0)));
    let prepared = made.prepare_commit(review.digest.as_ref().unwrap(), None).unwrap();
    assert_eq!((prepared.files, prepared.converted.len()), (5, 0));
    assert_eq!(made.reviewed().commits.len(), 0, "a prepared commit changes no branch");
    update(&prepared.update).unwrap();
    let repo = made.repo();
    let head = repo.head().unwrap().peel_to_commit().unwrap();
    assert_eq!(head.id().to_string(), prepared.update.new);
    assert_eq!(head.message().unwrap(), "Do the work\n\nAll of it.\n");
    assert_eq!(
        (head.author().name().unwrap(), head.committer().email().unwrap()),
        ("Olga Operator", "olga@example.org")
    );
    let after = made.reviewed();
    assert_eq!((after.state.uncommitted, after.state.ahead, after.state.merged), (0, Some(1), false));
    assert_eq!(after.head.as_ref(), Some(&prepared.update.new));
    assert_eq!((&*after.commits[0].summary, &*after.commits[0].author), ("Do the work", "Olga Operator"));
    assert_clean(made.path());
    assert_clean(&ground.root);
    if let Some(listed) = git(made.path(), &["ls-tree", "-r", "HEAD"]) {
        assert!(
            listed.contains("100755 blob") && listed.contains("120000 blob") && !listed.contains("noise.log")
        );
        assert_eq!(git(made.path(), &["show", "HEAD:new/deep.txt"]).unwrap(), "no line end");
    }
}

#[test]
fn a_moved_and_changed_file_is_committed_and_merged_as_reviewed() {
    let ground = Ground::new();
    let made = ground.create();
    std::fs::remove_file(made.path().join("a.txt")).unwrap();
    made.write("moved.txt", "one\n2\nthree\n");
    let review = made.reviewed();
    assert_eq!((review.files.len(), review.files[0].old_path.as_deref()), (1, Some("a.txt")));
    let digest = review.digest.unwrap();

    // The digest covers both paths: a change at either is refused.
    made.write("a.txt", "back\n");
    assert!(refusal(made.prepare_commit(&digest, None)).contains("changed since"));
    std::fs::remove_file(made.path().join("a.txt")).unwrap();
    made.write("moved.txt", "one\n3\nthree\n");
    assert!(refusal(made.prepare_commit(&digest, None)).contains("changed since"));
    made.write("moved.txt", "one\n2\nthree\n");

    let prepared = made.prepare_commit(&digest, None).unwrap();
    assert_eq!(prepared.files, 2, "git counts both paths");
    update(&prepared.update).unwrap();
    let after = made.reviewed();
    assert_eq!((after.state.uncommitted, after.files.len()), (0, 1));
    let head = after.head.unwrap();
    made.merge(&head, MergeHow::Merge).unwrap();
    assert!(!ground.root.join("a.txt").exists());
    assert_eq!(std::fs::read_to_string(ground.root.join("moved.txt")).unwrap(), "one\n2\nthree\n");
    assert_clean(&ground.root);
}

#[test]
fn a_worktree_that_changed_since_the_review_is_refused() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("a.txt", "reviewed\n");
    let digest = made.reviewed().digest.unwrap();
    made.write("a.txt", "replaced\n");
    assert_eq!(
        refusal(made.prepare_commit(&digest, None)),
        "The worktree changed since you reviewed it. Review the diff again"
    );
    made.write("a.txt", "reviewed\n");
    assert!(made.prepare_commit(&digest, None).is_ok());
    made.write("more.txt", "x\n");
    assert!(refusal(made.prepare_commit(&digest, Some(&["a.txt"]))).contains("changed since"));
    std::fs::remove_file(made.path().join("more.txt")).unwrap();
    // A commit of the agent also counts: the branch would contain more than was shown.
    commit(&made.repo());
    assert!(refusal(made.prepare_commit(&digest, None)).contains("changed since"));
    // The branch can also move after the commit was prepared.
    made.write("b.txt", "b\n");
    let prepared = made.prepare_commit(&made.reviewed().digest.unwrap(), None).unwrap();
    commit(&made.repo());
    assert!(refusal(update(&prepared.update)).contains("changed since you reviewed it"));
    assert_clean(made.path());
}

#[test]
fn only_selected_files_are_committed() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("a.txt", "A\n");
    made.write("x.txt", "x\n");
    let digest = made.reviewed().digest.unwrap();
    assert!(refusal(made.prepare_commit(&digest, Some(&["none.txt"]))).contains("not a changed file"));
    let prepared = made.prepare_commit(&digest, Some(&["x.txt"])).unwrap();
    update(&prepared.update).unwrap();
    let review = made.reviewed();
    assert_eq!((prepared.files, review.state.uncommitted), (1, 1));
    assert!(review.head.is_some(), "everything in the branch is part of the diff");
    if let Some(status) = git(made.path(), &["status", "--porcelain"]) {
        assert_eq!(status, " M a.txt\n");
    }
    assert!(
        refusal(made.prepare_commit(&review.digest.unwrap(), Some(&["x.txt"]))).contains("nothing to commit")
    );
}

/// A child could commit one content and leave another one in the worktree, where the diff looks.
#[test]
fn a_committed_content_that_the_diff_does_not_show_cannot_be_merged() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("sub/b.txt", "evil\n");
    made.write("hidden.log", "ignored and committed\n");
    let repo = made.repo();
    let mut index = repo.index().unwrap();
    index.add_path("hidden.log".as_ref()).unwrap();
    index.write().unwrap();
    commit(&repo);
    let review = made.reviewed();
    let shown: Vec<&str> = review.files.iter().map(|file| &*file.path).collect();
    assert_eq!(shown, ["hidden.log", "sub/b.txt"], "a committed file is shown, even if it is ignored");
    assert!(review.head.is_some());
    made.write("sub/b.txt", "b\n");
    std::fs::remove_file(made.path().join("hidden.log")).unwrap();
    made.write("a.txt", "harmless\n");
    let review = made.reviewed();
    let shown: Vec<&str> = review.files.iter().map(|file| &*file.path).collect();
    assert_eq!(shown, ["a.txt"]);
    assert_eq!((review.head, review.state.uncommitted), (None, 3));
    let digest = review.digest.unwrap();
    assert!(refusal(made.prepare_commit(&digest, Some(&["a.txt"]))).contains("the diff does not show"));
    let prepared = made.prepare_commit(&digest, None).unwrap();
    update(&prepared.update).unwrap();
    let repo = made.repo();
    let tree = repo.head().unwrap().peel_to_tree().unwrap();
    assert!(tree.get_path("hidden.log".as_ref()).is_err(), "the commit has exactly what was shown");
    assert_eq!(made.reviewed().head, Some(prepared.update.new));
    assert_clean(made.path());
}

#[test]
fn line_ends_are_converted_as_the_repository_asks_and_filters_are_refused() {
    let ground = Ground::new();
    ground.write(
        ".gitattributes",
        "*.txt text\n*.bin filter=lfs\n*.id ident\n*.utf working-tree-encoding=UTF-16\n",
    );
    ground.commit();
    let made = ground.create();
    made.write("win.txt", "a\r\nb\r\n");
    made.write("raw", "a\r\nb\r\n");
    let prepared = made.prepare_commit(&made.reviewed().digest.unwrap(), None).unwrap();
    assert_eq!(prepared.converted, ["win.txt"]);
    update(&prepared.update).unwrap();
    assert_eq!(made.reviewed().state.uncommitted, 0);
    assert_clean(made.path());
    if let Some(text) = git(made.path(), &["show", "HEAD:win.txt"]) {
        assert_eq!((&*text, &*git(made.path(), &["show", "HEAD:raw"]).unwrap()), ("a\nb\n", "a\r\nb\r\n"));
    }
    for (path, content, says) in [
        ("x.bin", "large", "`filter=lfs`"),
        ("x.id", "$Id: evil $\n", "ident"),
        ("x.utf", "x", "working-tree-encoding"),
    ] {
        made.write(path, content);
        let refused = refusal(made.prepare_commit(&made.reviewed().digest.unwrap(), None));
        assert!(refused.contains(says) && refused.contains(path), "{refused}");
        std::fs::remove_file(made.path().join(path)).unwrap();
    }
    made.write("x.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    made.commit_reviewed().unwrap();
}

/// A backslash before a line end joins two lines; before CR LF it does not.
#[test]
fn a_version_with_other_line_endings_is_another_version() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("m", "# x \\\nkeep: me\n");
    commit(&made.repo());
    made.write("m", "# x \\\r\nkeep: me\r\n");
    let review = made.reviewed();
    assert_eq!((review.head, review.state.uncommitted), (None, 1), "the diff shows CR LF, the branch has LF");
    let prepared = made.prepare_commit(&review.digest.unwrap(), None).unwrap();
    assert_eq!((prepared.files, prepared.converted.len()), (1, 0));
    update(&prepared.update).unwrap();
    made.merge(&made.reviewed().head.unwrap(), MergeHow::Merge).unwrap();
    assert_eq!(std::fs::read_to_string(ground.root.join("m")).unwrap(), "# x \\\r\nkeep: me\r\n");
    // With a setting that converts, the diff shows the converted bytes.
    let made = ground.create();
    made.write("m", "# x \\\nkeep: me\n");
    let mut config = made.repo().config().unwrap().open_level(git2::ConfigLevel::Local).unwrap();
    config.set_str("core.autocrlf", "input").unwrap();
    made.write("n", "new\r\n");
    let review = made.reviewed();
    let patch =
        |path: &str| review.files.iter().find(|file| file.path == path).unwrap().patch.clone().unwrap();
    assert!(patch("n").contains("+new\n") && !patch("n").contains('\r'), "{:?}", patch("n"));
    let prepared = made.prepare_commit(&review.digest.clone().unwrap(), None).unwrap();
    assert_eq!(prepared.converted, ["n"]);
    update(&prepared.update).unwrap();
    assert_eq!(made.reviewed().head, Some(prepared.update.new));
}

#[test]
fn every_way_of_merging_updates_the_branch_and_a_clean_checkout() {
    for how in [MergeHow::Merge, MergeHow::Rebase, MergeHow::Squash, MergeHow::FastForward] {
        let ground = Ground::new();
        let made = ground.create();
        made.write("a.txt", "one\n2\nthree\n");
        made.commit_reviewed().unwrap();
        made.write("new/file.txt", "new\n");
        std::fs::remove_file(made.path().join("sub/b.txt")).unwrap();
        let head = made.commit_reviewed().unwrap();
        if how != MergeHow::FastForward {
            ground.write("other.txt", "other\n");
            ground.commit();
            let refused = refusal(made.prepare_merge(&head, MergeHow::FastForward));
            assert!(refused.contains("cannot be fast-forwarded"), "{refused}");
        }
        ground.write("untracked.txt", "mine\n");
        let done = made.merge(&head, how).unwrap();
        let tip = ground.repo.head().unwrap().peel_to_commit().unwrap();
        assert_eq!(tip.id().to_string(), done.new, "{how:?}");
        let parents = if how == MergeHow::Merge { 2 } else { 1 };
        assert_eq!(tip.parent_count(), parents);
        assert_eq!(std::fs::read_to_string(ground.root.join("a.txt")).unwrap(), "one\n2\nthree\n");
        assert!(ground.root.join("new/file.txt").exists() && !ground.root.join("sub").exists());
        let state = made.state();
        assert_eq!((state.uncommitted, state.merged), (0, true), "{how:?}: {state:?}");
        let again = refusal(made.prepare_merge(&head, MergeHow::Merge));
        assert!(again.contains("already"), "{again}");
        std::fs::remove_file(ground.root.join("untracked.txt")).unwrap();
        assert_clean(&ground.root);
        assert_clean(made.path());
        if let Some(log) = git(&ground.root, &["log", "--format=%an %s", "-3"]) {
            let newest = log.lines().next().unwrap();
            assert!(newest.starts_with("Olga Operator"), "{how:?}: {log}");
        }
        if let Some(reflog) = git(&ground.root, &["reflog", "-1"]) {
            assert!(reflog.contains("by Plexus"), "{reflog}");
        }
    }
}

#[test]
fn conflicts_are_returned_and_nothing_is_changed() {
    for how in [MergeHow::Merge, MergeHow::Rebase, MergeHow::Squash] {
        let ground = Ground::new();
        let made = ground.create();
        made.write("a.txt", "one\ntheirs\nthree\n");
        std::fs::remove_file(made.path().join("sub/b.txt")).unwrap();
        let head = made.commit_reviewed().unwrap();
        ground.write("a.txt", "one\nours\nthree\n");
        ground.write("sub/b.txt", "changed\n");
        let main = ground.commit();
        let PreparedMerge::Conflicts { before, commit, files, truncated } =
            made.prepare_merge(&head, how).unwrap()
        else {
            panic!("no conflict")
        };
        assert_eq!((before, commit.is_some(), truncated), (main.to_string(), how == MergeHow::Rebase, false));
        let text = files[0].text.as_ref().unwrap();
        for side in ["<<<<<<<", "ours", "|||||||", "two", "=======", "theirs", ">>>>>>>"] {
            assert!(text.contains(side), "{text}");
        }
        assert_eq!((&*files[1].path, files[1].text.is_none()), ("sub/b.txt", true));
        assert_eq!((files[1].sides.base, files[1].sides.ours, files[1].sides.theirs), (true, true, false));
        assert_eq!(ground.repo.head().unwrap().target(), Some(main));
        assert_clean(&ground.root);
    }
}

#[test]
fn a_checkout_with_changes_is_never_touched() {
    let ground = Ground::new();
    let made = ground.create();
    made.write("a.txt", "merged\n");
    made.write("new.txt", "merged\n");
    let head = made.commit_reviewed().unwrap();
    let before = ground.repo.head().unwrap().target();
    let refused = |says: &str| {
        let refused = refusal(made.merge(&head, MergeHow::Merge));
        assert!(refused.contains(says), "{refused}");
        assert_eq!(ground.repo.head().unwrap().target(), before);
    };
    ground.write("sub/b.txt", "mine\n");
    refused("has uncommitted changes (`sub/b.txt`)");
    ground.write("sub/b.txt", "b\n");
    // Neither an untracked nor an ignored file is overwritten.
    ground.write("new.txt", "mine\n");
    refused("`new.txt`");
    assert_eq!(std::fs::read_to_string(ground.root.join("new.txt")).unwrap(), "mine\n");
    std::fs::write(ground.root.join(".git/info/exclude"), "new.txt\n").unwrap();
    refused("`new.txt`");
    std::fs::remove_file(ground.root.join("new.txt")).unwrap();
    std::fs::write(ground.root.join(".git/MERGE_HEAD"), head.as_bytes()).unwrap();
    refused("another git operation");
    std::fs::remove_file(ground.root.join(".git/MERGE_HEAD")).unwrap();
    std::fs::write(ground.root.join(".git/index.lock"), "").unwrap();
    refused("another git operation");
    std::fs::remove_file(ground.root.join(".git/index.lock")).unwrap();
    made.merge(&head, MergeHow::Merge).unwrap();
    assert_clean(&ground.root);
}

#[test]
fn a_branch_that_is_not_checked_out_moves_alone() {
    let ground = Ground::new();
    let main = ground.repo.head().unwrap().peel_to_commit().unwrap();
    ground.repo.branch("other", &main, false).unwrap();
    let made = ground.create();
    made.write("a.txt", "merged\n");
    let head = made.commit_reviewed().unwrap();
    ground.write("a.txt", "my own change\n");
    let PreparedMerge::Ready(ready) = made.prepare_merge_into(&head, MergeHow::FastForward, "other").unwrap()
    else {
        panic!("a conflict")
    };
    update(&ready).unwrap();
    assert_eq!(ground.repo.refname_to_id("refs/heads/other").unwrap().to_string(), head);
    assert_eq!(std::fs::read_to_string(ground.root.join("a.txt")).unwrap(), "my own change\n");
    // Another linked worktree is not known to be safe to change.
    let linked = ground.dir.path().join("linked");
    if git(&ground.root, &["worktree", "add", "-q", linked.to_str().unwrap(), "other"]).is_some() {
        made.write("b.txt", "b\n");
        let head = made.commit_reviewed().unwrap();
        let refused = refusal(made.prepare_merge_into(&head, MergeHow::FastForward, "other"));
        assert!(refused.contains("linked worktree `linked`"), "{refused}");
    }
}

#[test]
fn a_request_for_one_file_shows_more_of_it() {
    let ground = Ground::new();
    let lines: String = (1..=50).map(|n| format!("{n}\n")).collect();
    ground.write("long.txt", &lines);
    ground.commit();
    let made = ground.create();
    made.write("long.txt", &lines.replace("25\n", "x\n"));
    let png = [&[0x89][..], b"PNG\r\n\x1a\n\0\0"].concat();
    std::fs::write(made.path().join("picture"), &png).unwrap();
    let initial = made.record.initial_state().unwrap();
    let shown = Shown { only: Some("long.txt".to_owned()), context_lines: Some(1000) };
    let file = diff(&made.worktree, &initial, &shown).unwrap().files.remove(0);
    assert!(file.patch.unwrap().contains("@@ -1,50 +1,50 @@\n 1\n"));
    let picture = made.diff(Some("picture")).unwrap().files.remove(0);
    assert!(picture.binary);
    let image = picture.image.unwrap();
    assert_eq!((&*image.media_type, image.old, image.new.unwrap().len()), ("image/png", None, 16));
    assert!(made.reviewed().files.iter().all(|file| file.image.is_none()));
}
