//! Objects and files of git that a child has written itself to make a review or a merge use other content than it shows:
//! trees that git never writes, parents that commits do not have, and rules that hide conflicts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{FreshCheckout, Ground, assert_clean, commit, git};
use git2::{ObjectType, Oid, Repository, Signature};
use plexus_protocol::claudecode::MergeHow;
use plexus_worktree::{PreparedMerge, WorktreeError};

const EVERY_WAY: [MergeHow; 4] = [MergeHow::FastForward, MergeHow::Merge, MergeHow::Rebase, MergeHow::Squash];

fn refusal<T>(outcome: Result<T, WorktreeError>) -> String {
    match outcome {
        Ok(_) => panic!("not refused"),
        Err(error) => error.to_string(),
    }
}

/// Writes a tree without any check.
fn tree(repo: &Repository, entries: &[(&str, &[u8], Oid)]) -> Oid {
    let entry =
        |(mode, name, id): &(&str, &[u8], Oid)| [mode.as_bytes(), b" ", *name, b"\0", id.as_bytes()].concat();
    let data: Vec<u8> = entries.iter().flat_map(entry).collect();
    repo.odb().unwrap().write(ObjectType::Tree, &data).unwrap()
}

/// Moves the branch of the worktree to a new commit with this tree.
fn commit_tree(made: &FreshCheckout, tree: Oid, parents: &[Oid]) -> Oid {
    let repo = made.repo();
    let me = Signature::now("an agent", "agent@localhost").unwrap();
    let id = |id: Oid| id.to_string();
    let mut text = format!("tree {tree}\n");
    for parent in parents {
        text += &format!("parent {}\n", id(*parent));
    }
    let time = me.when().seconds();
    text += &format!("author a <a@b> {time} +0000\ncommitter a <a@b> {time} +0000\n\nwork\n");
    let commit = repo.odb().unwrap().write(ObjectType::Commit, text.as_bytes()).unwrap();
    repo.reference(&format!("refs/heads/{}", made.worktree.branch), commit, true, "").unwrap();
    commit
}

fn base(made: &FreshCheckout) -> Oid {
    made.worktree.base.parse().unwrap()
}

#[test]
fn a_tree_that_git_never_writes_is_neither_shown_nor_merged() {
    let hfs = ".g\u{200c}it".as_bytes();
    let names: [&[u8]; 13] = [
        b".git",
        b".GIT",
        b".Git",
        b"git~1",
        b".git ",
        b".git...",
        b".git::$INDEX_ALLOCATION",
        hfs,
        b".",
        b"..",
        b"",
        b"x/evil",
        b"../evil",
    ];
    for name in names {
        let ground = Ground::new();
        let made = ground.create();
        let repo = made.repo();
        let blob = repo.blob(b"#!/bin/sh\n").unwrap();
        let hooks = tree(&repo, &[("100755", b"post-checkout", blob), ("100755", b"post-merge", blob)]);
        let dir = tree(&repo, &[("40000", b"hooks", hooks)]);
        for nested in [false, true] {
            let mut entries = vec![("40000", name, dir)];
            if nested {
                entries = vec![("40000", b"sub", tree(&repo, &entries))];
            }
            let head = commit_tree(&made, tree(&repo, &entries), &[base(&made)]).to_string();
            let shown = refusal(made.diff(None));
            assert!(shown.contains("git itself never writes"), "{name:?}: {shown}");
            refusal(made.prepare_commit("", None));
            for how in EVERY_WAY {
                let refused = refusal(made.merge(&head, how));
                assert!(refused.contains("git itself never writes"), "{name:?} {how:?}: {refused}");
            }
        }
        assert!(!ground.root.join(".git/hooks/post-merge").exists());
        assert_eq!(ground.repo.head().unwrap().target(), Some(base(&made)));
        assert_eq!(ground.repo.statuses(None).unwrap().len(), 0);
    }
}

/// The same path twice: the diff would show one version, and git check out the other.
#[test]
fn a_path_has_one_version() {
    let ground = Ground::new();
    let made = ground.create();
    let repo = made.repo();
    let (bad, good) = (repo.blob(b"bad\n").unwrap(), repo.blob(b"good\n").unwrap());
    let (with_bad, with_good) =
        (tree(&repo, &[("100644", b"evil", bad)]), tree(&repo, &[("100644", b"evil", good)]));
    let twice = tree(&repo, &[("100644", b"evil", bad), ("100644", b"evil", good)]);
    made.write("x/evil", "good\n");
    for (entries, why) in [
        (vec![("40000", &b"x"[..], with_bad), ("100644", b"x//evil", good)], "a slash"),
        (vec![("40000", b"x", twice)], "the same name twice"),
        (vec![("40000", b"x", with_bad), ("40000", b"x", with_good)], "the same name twice"),
        (
            vec![("100644", b"x", good), ("100644", b"x-", good), ("40000", b"x", with_bad)],
            "the same name twice",
        ),
        (vec![("100644", b"z", good), ("40000", b"x", with_bad)], "the wrong order"),
        (vec![("100600", b"x", good)], "an unknown mode"),
        (vec![("40000", b"x", good)], "not a directory"),
        (vec![("120000", b".gitmodules", good)], "`.gitmodules`"),
    ] {
        let head = commit_tree(&made, tree(&repo, &entries), &[base(&made)]).to_string();
        let shown = refusal(made.diff(None));
        assert!(shown.contains(why), "{shown}");
        for how in EVERY_WAY {
            let refused = refusal(made.merge(&head, how));
            assert!(refused.contains(why), "{how:?}: {refused}");
        }
    }
}

/// A merge brings all commits of the branch, not only its head.
#[test]
fn the_trees_of_earlier_commits_and_of_the_base_are_checked() {
    let ground = Ground::new();
    let made = ground.create();
    let repo = made.repo();
    let blob = repo.blob(b"x\n").unwrap();
    let clean = repo.find_commit(base(&made)).unwrap().tree_id();
    let evil = commit_tree(&made, tree(&repo, &[("100644", b".git", blob)]), &[base(&made)]);
    let head = commit_tree(&made, clean, &[evil]).to_string();
    assert!(refusal(made.diff(None)).contains(&evil.to_string()));
    for how in EVERY_WAY {
        assert!(refusal(made.prepare_merge(&head, how)).contains("git itself never writes"), "{how:?}");
    }
    // Another agent may have chosen the base.
    let mut based = ground.create();
    based.worktree.base = evil.to_string();
    let good = tree(&repo, &[("100644", b"good", blob)]);
    let head = commit_tree(&based, good, &[evil]).to_string();
    for how in EVERY_WAY {
        assert!(refusal(based.prepare_merge(&head, how)).contains("git itself never writes"), "{how:?}");
    }
}

/// A tree that contains another tree ten times, ten levels deep, has 10^10 files.
#[test]
fn a_tree_that_repeats_itself_is_refused_at_once() {
    let ground = Ground::new();
    let made = ground.create();
    let repo = made.repo();
    let blob = repo.blob(b"x\n").unwrap();
    let names: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    let level =
        |mode, id| tree(&repo, &names.iter().map(|name| (mode, name.as_bytes(), id)).collect::<Vec<_>>());
    let bomb = (0..9).fold(level("100644", blob), |inner, _| level("40000", inner));
    let head = commit_tree(&made, bomb, &[base(&made)]).to_string();
    assert!(matches!(made.diff(None), Err(WorktreeError::TooMuch)));
    assert!(matches!(made.prepare_merge(&head, MergeHow::FastForward), Err(WorktreeError::TooMuch)));
}

/// A worktree whose branch has two commits: one with a file that the second deletes again.
fn with_hidden_commit(ground: &Ground) -> (FreshCheckout, Oid, Oid) {
    let made = ground.create();
    made.write("hidden.txt", "hidden\n");
    let hidden = commit(&made.repo());
    std::fs::remove_file(made.path().join("hidden.txt")).unwrap();
    made.write("a.txt", "one\n2\nthree\n");
    let repo = made.repo();
    let mut index = repo.index().unwrap();
    index.remove_path("hidden.txt".as_ref()).unwrap();
    index.write().unwrap();
    let head = commit(&repo);
    (made, hidden, head)
}

#[test]
fn files_that_change_the_parents_of_a_commit_have_no_effect() {
    let ground = Ground::new();
    let (made, _, head) = with_hidden_commit(&ground);
    let listed = || made.reviewed().commits.len();
    assert_eq!(listed(), 2);
    let git_dir = ground.root.join(".git");
    let base = base(&made);
    std::fs::write(git_dir.join("info/grafts"), format!("{head} {base}\n")).unwrap();
    assert_eq!((listed(), made.figures()[4], made.state().ahead), (2, 2, Some(2)), "grafts");
    std::fs::write(git_dir.join("shallow"), format!("{head}\n")).unwrap();
    assert_eq!((listed(), made.figures()[4], made.state().ahead), (2, 2, Some(2)), "shallow");
    std::fs::remove_file(git_dir.join("shallow")).unwrap();
    std::fs::remove_file(git_dir.join("info/grafts")).unwrap();

    // A fast-forward that would drop a commit of the user.
    ground.write("fix.txt", "fix\n");
    let fix = ground.commit();
    std::fs::write(git_dir.join("info/grafts"), format!("{head} {fix}\n")).unwrap();
    let refused = refusal(made.prepare_merge(&head.to_string(), MergeHow::FastForward));
    assert!(refused.contains("cannot be fast-forwarded"), "{refused}");
    std::fs::remove_file(git_dir.join("info/grafts")).unwrap();
}

/// A commit graph states parents of its own; its checksum is not a signature. libgit2 reads graphs of the first version.
#[test]
fn a_commit_graph_has_no_effect() {
    let ground = Ground::new();
    let (made, hidden, head) = with_hidden_commit(&ground);
    if git(&ground.root, &["-c", "commitGraph.generationVersion=1", "commit-graph", "write", "--reachable"])
        .is_none()
    {
        return;
    }
    // The graph with the parent of `head` replaced by the base. Positions are those in the sorted list of ids.
    let path = ground.root.join(".git/objects/info/commit-graph");
    let mut graph = std::fs::read(&path).unwrap();
    let mut ids = [base(&made), hidden, head];
    ids.sort();
    let at = |id: Oid| ids.iter().position(|other| *other == id).unwrap() as u32;
    let data = (0..usize::from(graph[6]))
        .map(|chunk| &graph[8 + 12 * chunk..][..12])
        .find(|chunk| chunk.starts_with(b"CDAT"))
        .map(|chunk| u64::from_be_bytes(chunk[4..].try_into().unwrap()) as usize)
        .unwrap();
    let parent = data + 36 * at(head) as usize + 20;
    assert_eq!(graph[parent..parent + 4], at(hidden).to_be_bytes());
    graph[parent..parent + 4].copy_from_slice(&at(base(&made)).to_be_bytes());
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, graph).unwrap();
    assert_eq!((made.reviewed().commits.len(), made.figures()[4], made.state().ahead), (2, 2, Some(2)));
}

#[test]
fn a_shallow_clone_can_be_reviewed_and_committed() {
    let ground = Ground::new();
    ground.write("a.txt", "second\n");
    ground.commit();
    let shallow = Ground::new();
    std::fs::remove_dir_all(&shallow.root).unwrap();
    let source = format!("file://{}", ground.root.display());
    if git(ground.dir.path(), &["clone", "-q", "--depth", "1", &source, shallow.root.to_str().unwrap()])
        .is_none()
    {
        return;
    }
    let shallow = Ground { repo: Repository::open(&shallow.root).unwrap(), ..shallow };
    let made = shallow.create();
    made.write("a.txt", "third\n");
    let head = made.commit_reviewed().unwrap();
    let review = made.reviewed();
    assert_eq!((review.commits.len(), review.state.ahead, review.state.behind), (1, Some(1), Some(0)));
    assert_eq!(made.figures()[4], 1);
    // git could merge here; Plexus cannot find out what the merge would add.
    let refused = refusal(made.merge(&head, MergeHow::Merge));
    assert!(refused.contains("git fetch --unshallow"), "{refused}");
    assert_clean(&shallow.root);
}

#[test]
fn a_replace_reference_has_no_effect() {
    let ground = Ground::new();
    let (made, hidden, head) = with_hidden_commit(&ground);
    let repo = made.repo();
    for (old, new) in [(head, base(&made)), (hidden, base(&made))] {
        repo.reference(&format!("refs/replace/{old}"), new, true, "").unwrap();
    }
    let (old, new) = (repo.blob(b"one\n2\nthree\n").unwrap(), repo.blob(b"evil\n").unwrap());
    repo.reference(&format!("refs/replace/{old}"), new, true, "").unwrap();
    let review = made.reviewed();
    assert_eq!(review.commits.len(), 2);
    assert!(review.files[0].patch.as_ref().unwrap().contains("+2\n"));
    made.merge(&head.to_string(), MergeHow::Merge).unwrap();
    assert_eq!(std::fs::read_to_string(ground.root.join("a.txt")).unwrap(), "one\n2\nthree\n");
}

/// With the merge driver `union`, both sides are kept and no conflict is reported.
#[test]
fn no_attribute_or_setting_hides_a_conflict() {
    for place in ["info", "user's tree", "agent's tree", "base", "setting"] {
        for how in [MergeHow::Merge, MergeHow::Rebase, MergeHow::Squash] {
            let ground = Ground::new();
            let rule = "* merge=union\n";
            if place == "base" {
                ground.write(".gitattributes", rule);
                ground.commit();
            }
            let made = ground.create();
            made.write("a.txt", "one\nagent\nthree\n");
            if place == "agent's tree" {
                made.write(".gitattributes", rule);
            }
            let head = made.commit_reviewed().unwrap();
            ground.write("a.txt", "one\nuser\nthree\n");
            if place == "user's tree" {
                ground.write(".gitattributes", rule);
            }
            ground.commit();
            match place {
                "info" => std::fs::write(ground.root.join(".git/info/attributes"), rule).unwrap(),
                "setting" => {
                    let mut config =
                        ground.repo.config().unwrap().open_level(git2::ConfigLevel::Local).unwrap();
                    config.set_str("merge.default", "union").unwrap();
                }
                _ => {}
            }
            let prepared = made.prepare_merge(&head, how).unwrap();
            assert!(matches!(prepared, PreparedMerge::Conflicts { .. }), "{place} {how:?}");
            assert!(!made.state().merged, "{place}");
        }
    }
}
