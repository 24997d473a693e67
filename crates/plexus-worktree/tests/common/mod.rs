//! A real repository with one commit, and worktrees of it.

#![expect(dead_code, reason = "each test program uses its own part")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use git2::{Oid, Repository, Signature};
use plexus_protocol::claudecode::{MergeHow, Person};
use plexus_protocol::worktree::{BranchState, Worktree, WorktreeChanges};
use plexus_worktree::{
    Baseline, BranchUpdate, CommitRequest, MergeRequest, Plan, PreparedCommit, PreparedMerge, Record,
    Request, Shown, WorktreeDiff, WorktreeError, changes, diff, losses, prepare_commit, prepare_merge,
    update,
};

pub struct Ground {
    pub dir: tempfile::TempDir,
    pub root: PathBuf,
    pub repo: Repository,
}

/// A worktree and the hub's record of it.
pub struct FreshCheckout {
    pub worktree: Worktree,
    pub working_dir: PathBuf,
    pub record: Record,
}

impl Ground {
    /// `app` with `a.txt`, `sub/b.txt` and a `.gitignore` for `*.log` and `out/`.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("app");
        let repo = Repository::init(&root).unwrap();
        let ground = Self { dir, root, repo };
        ground.write("a.txt", "one\ntwo\nthree\n");
        ground.write("sub/b.txt", "b\n");
        ground.write(".gitignore", "*.log\nout/\n.env\n");
        ground.commit();
        ground
    }

    pub fn write(&self, path: &str, text: &str) {
        write(&self.root, path, text);
    }

    /// Commits all files.
    pub fn commit(&self) -> Oid {
        commit(&self.repo)
    }

    pub fn request(&self) -> Request {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Request {
            working_dir: self.root.clone(),
            worktrees_dir: self.worktrees_dir(),
            name: format!("fix-{}", COUNT.fetch_add(1, Ordering::Relaxed)),
            base: None,
            copy: Vec::new(),
            copy_within: None,
        }
    }

    pub fn worktrees_dir(&self) -> PathBuf {
        self.root.with_file_name("worktrees")
    }

    pub fn try_make(&self, request: &Request) -> Result<FreshCheckout, WorktreeError> {
        let plan = Plan::of(request)?;
        let record = Record::new(self.root.with_file_name("records").join(&request.name));
        keep(&record, plan.create()?)?;
        let (worktree, working_dir) = (plan.worktree().clone(), plan.working_dir().to_owned());
        Ok(FreshCheckout { worktree, working_dir, record })
    }

    pub fn create(&self) -> FreshCheckout {
        self.try_make(&self.request()).unwrap()
    }

    pub fn copying(&self, paths: &[&str]) -> FreshCheckout {
        let copy = paths.iter().map(|&path| path.to_owned()).collect();
        self.try_make(&Request { copy, ..self.request() }).unwrap()
    }
}

impl FreshCheckout {
    pub fn path(&self) -> &Path {
        Path::new(&self.worktree.path)
    }

    pub fn write(&self, path: &str, text: &str) {
        write(self.path(), path, text);
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path)).unwrap()
    }

    /// Files, insertions, deletions, untracked, commits.
    pub fn figures(&self) -> [u64; 5] {
        let WorktreeChanges { files, insertions, deletions, untracked, commits } = self.changes().unwrap();
        [files, insertions, deletions, untracked, commits]
    }

    pub fn unchanged(&self) -> bool {
        self.is_unchanged().unwrap()
    }

    pub fn is_unchanged(&self) -> Result<bool, WorktreeError> {
        Ok(losses(&self.worktree, Some(&self.record.initial_state()?))?.is_empty())
    }

    pub fn losses(&self) -> Vec<String> {
        let initial_state = self.record.initial_state().unwrap();
        losses(&self.worktree, Some(&initial_state)).unwrap().iter().map(ToString::to_string).collect()
    }

    pub fn changes(&self) -> Result<WorktreeChanges, WorktreeError> {
        changes(&self.worktree, &self.record.initial_state()?).map(|(changes, _)| changes)
    }

    pub fn state(&self) -> BranchState {
        changes(&self.worktree, &self.record.initial_state().unwrap()).unwrap().1
    }

    pub fn diff(&self, only: Option<&str>) -> Result<WorktreeDiff, WorktreeError> {
        let shown = Shown { only: only.map(str::to_owned), context_lines: None };
        diff(&self.worktree, &self.record.initial_state()?, &shown)
    }

    pub fn reviewed(&self) -> WorktreeDiff {
        self.diff(None).unwrap()
    }

    pub fn prepare_commit(
        &self,
        digest: &str,
        paths: Option<&[&str]>,
    ) -> Result<PreparedCommit, WorktreeError> {
        let request = CommitRequest {
            digest: digest.to_owned(),
            message: "Do the work\n\nAll of it.".to_owned(),
            author: Some(operator()),
            paths: paths.map(|paths| paths.iter().map(|&path| path.to_owned()).collect()),
        };
        prepare_commit(&self.worktree, &self.record.initial_state()?, &request)
    }

    /// Reviews and commits everything, and returns the new head.
    pub fn commit_reviewed(&self) -> Result<String, WorktreeError> {
        let prepared = self.prepare_commit(&self.reviewed().digest.unwrap(), None)?;
        update(&prepared.update)?;
        Ok(prepared.update.new)
    }

    pub fn prepare_merge(&self, head: &str, how: MergeHow) -> Result<PreparedMerge, WorktreeError> {
        let into = self.worktree.base_branch.clone().unwrap();
        self.prepare_merge_into(head, how, &into)
    }

    pub fn prepare_merge_into(
        &self,
        head: &str,
        how: MergeHow,
        into: &str,
    ) -> Result<PreparedMerge, WorktreeError> {
        self.prepare_previewed(head, how, into, None)
    }

    pub fn prepare_previewed(
        &self,
        head: &str,
        how: MergeHow,
        into: &str,
        preview: Option<&str>,
    ) -> Result<PreparedMerge, WorktreeError> {
        let request = MergeRequest {
            head: head.to_owned(),
            into: into.to_owned(),
            onto: None,
            preview: preview.map(str::to_owned),
            how,
            message: None,
            author: Some(operator()),
        };
        prepare_merge(&self.worktree, &request)
    }

    /// Merges without conflicts.
    pub fn merge(&self, head: &str, how: MergeHow) -> Result<BranchUpdate, WorktreeError> {
        match self.prepare_merge(head, how)? {
            PreparedMerge::Ready(ready) => update(&ready).map(|()| ready),
            PreparedMerge::Differs { files, .. } => panic!("{files:?}"),
            PreparedMerge::Conflicts { files, .. } => panic!("{files:?}"),
        }
    }

    /// Records the present differences, as after setup.
    pub fn take(&self) {
        let baseline = Baseline::take(&self.worktree, &self.record.index_file()).unwrap();
        self.record.store_baseline(&baseline).unwrap();
    }

    pub fn admin(&self) -> PathBuf {
        Path::new(&self.worktree.repo).join("worktrees").join(self.path().file_name().unwrap())
    }

    pub fn repo(&self) -> Repository {
        Repository::open(self.path()).unwrap()
    }
}

pub fn operator() -> Person {
    Person { name: "Olga Operator".to_owned(), email: "olga@example.org".to_owned() }
}

/// Runs the installed git without any configuration of the user; `None` if there is no git.
pub fn git(dir: &Path, args: &[&str]) -> Option<String> {
    let output = std::process::Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(std::process::Stdio::null())
        .output()
        .ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "git {args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    Some(text(&output.stdout))
}

/// Checks with the installed git that a repository is sound and a working tree has no changes.
pub fn assert_clean(dir: &Path) {
    if let Some(problems) = git(dir, &["fsck", "--strict", "--no-dangling"]) {
        assert_eq!(problems, "");
        assert_eq!(git(dir, &["status", "--porcelain"]).unwrap(), "");
    }
}

/// Records the initial state of a worktree, as the hub does.
pub fn keep(record: &Record, mut made: plexus_worktree::FreshCheckout) -> Result<(), WorktreeError> {
    std::io::copy(&mut made.index, &mut record.draft()?).unwrap();
    record.keep_index(made.index.metadata().unwrap().modified().unwrap())?;
    record.store_baseline(&made.baseline)
}

pub fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub fn commit(repo: &Repository) -> Oid {
    let mut index = repo.index().unwrap();
    index.read(true).unwrap();
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = repo.find_tree(index.write_tree().unwrap()).unwrap();
    let me = Signature::now("a tester", "tester@localhost").unwrap();
    let parent = repo.head().ok().map(|head| head.peel_to_commit().unwrap());
    let parents: Vec<_> = parent.iter().collect();
    repo.commit(Some("HEAD"), &me, &me, "a commit", &tree, &parents).unwrap()
}
