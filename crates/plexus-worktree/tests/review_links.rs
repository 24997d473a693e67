//! Links and redirections in a git directory that lead what the hub writes to another place. Everything is refused before
//! anything is written, when a commit or merge is prepared and again when it is completed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use common::{FreshCheckout, Ground, assert_clean};
use plexus_protocol::claudecode::MergeHow;
use plexus_worktree::{BranchUpdate, Plan, PreparedMerge, WorktreeError, recover, remove, update};

fn refusal<T>(outcome: Result<T, WorktreeError>) -> String {
    match outcome {
        Ok(_) => panic!("not refused"),
        Err(error) => error.to_string(),
    }
}

/// A repository with a directory beside it that nothing may change.
struct Trap {
    ground: Ground,
    made: FreshCheckout,
    git_dir: PathBuf,
    outside: PathBuf,
    merge: BranchUpdate,
    commit: BranchUpdate,
    head: String,
}

impl Trap {
    fn new() -> Self {
        let ground = Ground::new();
        let made = ground.create();
        made.write("a.txt", "one\n2\nthree\n");
        let head = made.commit_reviewed().unwrap();
        let PreparedMerge::Ready(merge) = made.prepare_merge(&head, MergeHow::Merge).unwrap() else {
            panic!("conflicts")
        };
        made.write("b.txt", "b\n");
        let commit = made.prepare_commit(&made.reviewed().digest.unwrap(), None).unwrap().update;
        let outside = ground.dir.path().canonicalize().unwrap().join("outside");
        std::fs::create_dir(&outside).unwrap();
        let git_dir = ground.root.join(".git");
        Self { ground, made, git_dir, outside, merge, commit, head }
    }

    /// Moves a file or directory outside, and leaves a link to it.
    fn lead_outside(&self, path: &Path) {
        let (path, moved) = (self.git_dir.join(path), self.outside.join("moved"));
        if path.symlink_metadata().is_ok() {
            std::fs::rename(&path, &moved).unwrap();
        } else {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::create_dir(&moved).unwrap();
        }
        symlink(&moved, &path).unwrap();
    }

    fn branch(&self) -> &str {
        &self.merge.branch
    }
}

/// All files below a directory, with their contents.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in dir.read_dir().unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(contents(&entry.path()));
        } else {
            found.insert(entry.path(), std::fs::read(entry.path()).unwrap_or_default());
        }
    }
    found
}

/// Refuses each step of a merge, and writes nothing outside.
fn no_merge(trap: &Trap, says: &str) {
    let before = contents(&trap.outside);
    for how in [MergeHow::Merge, MergeHow::Squash, MergeHow::Rebase, MergeHow::FastForward] {
        let refused = refusal(trap.made.prepare_merge(&trap.head, how));
        assert!(refused.contains(says), "{how:?}: {refused}");
    }
    let refused = refusal(update(&trap.merge));
    assert!(refused.contains(says), "{refused}");
    refusal(recover(&trap.merge));
    assert_eq!(contents(&trap.outside), before, "{says}");
    assert_eq!(std::fs::read_to_string(trap.ground.root.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
}

/// Refuses each step of a commit, and writes nothing outside.
fn no_commit(trap: &Trap, says: &str) {
    let before = contents(&trap.outside);
    let digest = trap.made.diff(None).ok().and_then(|diff| diff.digest).unwrap_or_default();
    let refused = refusal(trap.made.prepare_commit(&digest, None));
    assert!(refused.contains(says), "{refused}");
    let refused = refusal(update(&trap.commit));
    assert!(refused.contains(says), "{refused}");
    assert_eq!(contents(&trap.outside), before, "{says}");
}

#[test]
fn no_reflog_is_written_through_a_link() {
    for part in ["logs", "logs/refs", "logs/refs/heads", "logs/HEAD", "branch"] {
        let trap = Trap::new();
        let branch = format!("logs/refs/heads/{}", trap.branch());
        let path = if part == "branch" { &branch } else { part };
        trap.lead_outside(Path::new(path));
        no_merge(&trap, path);
    }
    for part in ["logs/refs/heads/plexus", "branch"] {
        let trap = Trap::new();
        let branch = format!("logs/refs/heads/{}", trap.commit.branch);
        let path = if part == "branch" { &branch } else { part };
        trap.lead_outside(Path::new(path));
        no_commit(&trap, path);
    }
}

/// A hard link is as good as a symbolic one for a file that is appended to.
#[test]
fn no_reflog_is_written_through_a_hard_link() {
    let trap = Trap::new();
    let (log, other) = (format!("logs/refs/heads/{}", trap.branch()), trap.outside.join("bashrc"));
    std::fs::write(&other, "# mine\n").unwrap();
    std::fs::remove_file(trap.git_dir.join(&log)).unwrap();
    std::fs::hard_link(&other, trap.git_dir.join(&log)).unwrap();
    no_merge(&trap, "hard link");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "# mine\n");
}

#[test]
fn no_branch_is_written_through_a_link() {
    let trap = Trap::new();
    trap.lead_outside(Path::new(&format!("refs/heads/{}", trap.branch())));
    no_merge(&trap, "is not a file");
    for dir in ["refs", "refs/heads"] {
        let trap = Trap::new();
        trap.lead_outside(Path::new(dir));
        no_merge(&trap, dir);
        no_commit(&trap, dir);
    }
    // The deletion of a branch rewrites the file with packed references.
    for path in ["refs/heads/plexus", "packed-refs"] {
        let trap = Trap::new();
        if path == "packed-refs" {
            let packed = format!("{} refs/heads/{}\n", trap.head, trap.commit.branch);
            std::fs::write(trap.git_dir.join(path), packed).unwrap();
        }
        trap.lead_outside(Path::new(path));
        let before = contents(&trap.outside);
        let refused = refusal(remove(&trap.made.worktree));
        assert!(refused.contains(path), "{refused}");
        assert_eq!(contents(&trap.outside), before);
    }
}

#[test]
fn no_object_is_written_or_read_elsewhere() {
    for dir in ["objects", "objects/pack", "objects/info"] {
        let trap = Trap::new();
        trap.lead_outside(Path::new(dir));
        no_merge(&trap, "is not a directory");
        no_commit(&trap, "is not a directory");
    }
    for first in ["00", "7f", "ff"] {
        let trap = Trap::new();
        trap.lead_outside(&Path::new("objects").join(first));
        no_merge(&trap, &format!("objects/{first}"));
        no_commit(&trap, &format!("objects/{first}"));
    }
    let trap = Trap::new();
    let other = Ground::new();
    let alternates = trap.git_dir.join("objects/info/alternates");
    std::fs::write(&alternates, format!("{}\n", other.root.join(".git/objects").display())).unwrap();
    no_merge(&trap, "objects/info/alternates");
    no_commit(&trap, "objects/info/alternates");
    assert!(trap.made.diff(None).is_ok(), "a repository with alternates can be reviewed");
    assert!(trap.ground.try_make(&trap.ground.request()).is_ok(), "and used");
}

#[test]
fn another_repository_is_not_used() {
    let trap = Trap::new();
    let other = Ground::new();
    let before = contents(&other.root);
    std::fs::write(trap.git_dir.join("commondir"), format!("{}\n", other.root.join(".git").display()))
        .unwrap();
    no_merge(&trap, "commondir");
    no_commit(&trap, "commondir");
    assert!(refusal(trap.made.diff(None)).contains("commondir"));
    assert!(refusal(trap.made.changes()).contains("commondir"));
    let planned = refusal(Plan::of(&trap.ground.request()));
    assert!(planned.contains("commondir"), "{planned}");
    assert_eq!(contents(&other.root), before);
}

/// Git leaves empty directories where branches were.
#[test]
fn an_empty_directory_in_place_of_a_branch_or_its_reflog_is_replaced() {
    let trap = Trap::new();
    let [branch, log] =
        ["", "logs/"].map(|dir| trap.git_dir.join(format!("{dir}refs/heads/{}", trap.branch())));
    let packed = format!("{} refs/heads/{}\n", trap.merge.old, trap.branch());
    std::fs::write(trap.git_dir.join("packed-refs"), packed).unwrap();
    for path in [&branch, &log] {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    }
    update(&trap.merge).unwrap();
    assert_eq!(std::fs::read_to_string(&branch).unwrap().trim(), trap.merge.new);
    let line = std::fs::read_to_string(&log).unwrap();
    assert!(line.starts_with(&format!("{} {} Olga Operator <", trap.merge.old, trap.merge.new)), "{line}");
    assert_clean(&trap.ground.root);
}

#[test]
fn no_index_is_written_through_a_link() {
    let trap = Trap::new();
    let name = trap.made.path().file_name().unwrap().to_owned();
    trap.lead_outside(&Path::new("worktrees").join(&name));
    no_commit(&trap, "is not a directory");
    let trap = Trap::new();
    trap.lead_outside(Path::new("worktrees"));
    no_commit(&trap, "is not a directory");
    let before = contents(&trap.outside);
    refusal(remove(&trap.made.worktree));
    assert_eq!(contents(&trap.outside), before);
    let plan = Plan::of(&trap.ground.request()).unwrap();
    refusal(plan.create());
    assert_eq!(contents(&trap.outside), before);
}

#[test]
fn a_moved_git_directory_is_not_used() {
    let trap = Trap::new();
    let moved = trap.outside.join("moved");
    std::fs::rename(&trap.git_dir, &moved).unwrap();
    symlink(&moved, &trap.git_dir).unwrap();
    no_merge(&trap, "was moved or replaced");
    no_commit(&trap, "was moved or replaced");
}
