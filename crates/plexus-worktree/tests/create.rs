//! How a worktree is created, and which requests are refused before anything is created.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{Ground, keep};
use git2::Repository;
use plexus_protocol::SessionId;
use plexus_worktree::{Note, Notes, Plan, Record, Request, Stage, WorktreeError, losses, remove};

#[test]
fn a_worktree_is_a_checkout_with_its_own_branch() {
    let ground = Ground::new();
    ground.write("a.txt", "not committed\n");
    let made = ground.create();
    assert_eq!(made.read("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(made.path().parent().unwrap(), ground.worktrees_dir().join("app"));
    for dir in [made.path(), &ground.worktrees_dir(), &ground.worktrees_dir().join("app")] {
        assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", dir.display());
    }
    let repo = made.repo();
    let head = repo.head().unwrap();
    assert_eq!(head.name().unwrap(), format!("refs/heads/{}", made.worktree.branch));
    assert!(made.worktree.branch.starts_with("plexus/fix-"));
    assert_eq!(head.peel_to_commit().unwrap().id().to_string(), made.worktree.base);
    assert!(repo.statuses(None).unwrap().is_empty(), "git itself finds it clean");
    assert_eq!(ground.repo.worktrees().unwrap().len(), 1);
    let known = ground.repo.find_worktree(made.path().file_name().unwrap().to_str().unwrap()).unwrap();
    assert!(known.validate().is_ok() && known.path() == made.path());
    let head = std::fs::read_to_string(ground.root.join(".git/HEAD")).unwrap();
    assert!(!head.contains("plexus"), "the checkout stays on its branch: {head}");
}

#[test]
fn a_broken_worktree_does_not_block_others() {
    let ground = Ground::new();
    let broken = ground.create();
    std::fs::write(broken.admin().join("HEAD"), "\0").unwrap();
    std::fs::write(broken.admin().join("gitdir"), "/proc/self/mem\n").unwrap();
    std::fs::remove_file(broken.admin().join("commondir")).unwrap();
    let made = ground.create();
    assert!(made.unchanged());
    remove(&made.worktree).unwrap();
    assert!(!made.path().exists());
}

#[test]
fn a_session_works_in_the_same_subdirectory_at_the_requested_revision() {
    let ground = Ground::new();
    let first = ground.repo.head().unwrap().peel_to_commit().unwrap().id();
    ground.write("later/c.txt", "c\n");
    ground.commit();
    let at = |dir: &str, base: Option<&str>| Request {
        working_dir: ground.root.join(dir),
        base: base.map(str::to_owned),
        ..ground.request()
    };
    let made = ground.try_make(&at("sub", Some("HEAD~1"))).unwrap();
    assert_eq!(made.working_dir, made.path().join("sub"));
    assert_eq!(made.worktree.base, first.to_string());
    assert!(!made.path().join("later").exists());
    let missing = ground.try_make(&at("later", Some("HEAD~1"))).err().unwrap();
    assert!(matches!(missing, WorktreeError::NotInTree(_)), "{missing}");
    // A worktree can be created from a worktree.
    let request = Request { working_dir: made.path().to_owned(), ..ground.request() };
    let second = ground.try_make(&request).unwrap();
    assert_eq!((second.worktree.base, second.worktree.repo), (first.to_string(), made.worktree.repo));
}

#[test]
fn an_invalid_request_is_refused_before_anything_is_created() {
    let ground = Ground::new();
    let plain = ground.dir.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    let refused = |request: Request| Plan::of(&request).unwrap_err();
    let in_dir = |dir: &Path| Request { working_dir: dir.canonicalize().unwrap(), ..ground.request() };
    assert!(matches!(refused(in_dir(&plain)), WorktreeError::NoRepository(_)));
    let bare = ground.dir.path().join("bare");
    Repository::init_bare(&bare).unwrap();
    assert!(matches!(refused(in_dir(&bare)), WorktreeError::Bare(_)));
    let empty = ground.dir.path().join("empty");
    Repository::init(&empty).unwrap();
    assert!(matches!(refused(in_dir(&empty)), WorktreeError::NoCommits(_)));
    let odd = ground.dir.path().join("odd");
    let config = Repository::init(&odd).unwrap().path().join("config");
    std::fs::write(config, "[core]\nrepositoryformatversion = 1\n[extensions]\nfuture = true\n").unwrap();
    let error = refused(in_dir(&odd));
    assert!(
        matches!(error, WorktreeError::BadRepository { .. }) && error.to_string().contains("future"),
        "{error}"
    );
    assert!(matches!(refused(in_dir(&ground.root.join(".git"))), WorktreeError::NotInTree(_)));
    let base = Request { base: Some("no-such-branch".to_owned()), ..ground.request() };
    assert!(refused(base).to_string().contains("`no-such-branch`"));
    let blob = Request { base: Some("HEAD:a.txt".to_owned()), ..ground.request() };
    assert!(matches!(refused(blob), WorktreeError::NoSuchBase { .. }));
    let copy = Request { copy: vec!["a.txt".to_owned(), "nowhere".to_owned()], ..ground.request() };
    assert!(refused(copy).to_string().contains("`nowhere`"));
    let copy_within = Some(ground.root.join("elsewhere"));
    let outside = Request { copy: vec!["a.txt".to_owned()], copy_within, ..ground.request() };
    assert!(refused(outside).to_string().contains("`a.txt`"));
    assert!(ground.repo.worktrees().unwrap().is_empty());
    assert_eq!(ground.repo.branches(None).unwrap().count(), 1);
}

/// Git prefers a tag to a branch of the same name, and any reference to a commit id.
#[test]
fn a_tag_cannot_take_the_place_of_a_branch_or_a_commit() {
    let ground = Ground::new();
    let repo = &ground.repo;
    let head = repo.head().unwrap();
    let (branch, first) = (head.shorthand().unwrap().to_owned(), head.peel_to_commit().unwrap());
    let main = ground.commit();
    let planned = |base: &str| {
        let request = Request { base: Some(base.to_owned()), ..ground.request() };
        Plan::of(&request).map(|plan| (plan.worktree().base.clone(), plan.worktree().base_branch.clone()))
    };
    let (main, first, on) = (main.to_string(), first.id().to_string(), Some(branch.clone()));
    assert_eq!(planned(&branch).unwrap(), (main.clone(), on.clone()));
    repo.reference(&format!("refs/tags/{branch}"), main.parse().unwrap(), false, "").unwrap();
    assert_eq!(planned(&branch).unwrap(), (main.clone(), on.clone()), "a tag of the same commit");
    for name in [branch.clone(), main.clone(), main[..7].to_owned(), format!("refs/heads/{branch}")] {
        repo.reference(&format!("refs/tags/{name}"), first.parse().unwrap(), true, "").unwrap();
    }
    for suffix in ["", "^0", "~0", "@{0}"] {
        let refused = planned(&format!("{branch}{suffix}")).unwrap_err().to_string();
        let names = format!("`refs/heads/{branch}{suffix}` or `refs/tags/{branch}{suffix}`");
        assert_eq!(refused, format!("`{branch}{suffix}` is ambiguous. Write {names}"));
    }
    assert!(planned(&main[..7]).unwrap_err().to_string().contains("is ambiguous"));
    assert_eq!(planned(&main).unwrap(), (main.clone(), None), "a full id is always a commit");
    assert_eq!(planned(&format!("refs/heads/{branch}")).unwrap(), (main.clone(), on.clone()));
    assert_eq!(planned(&format!("refs/tags/{branch}")).unwrap(), (first.clone(), None));
    assert_eq!(planned(&format!("refs/heads/{branch}~1")).unwrap(), (first.clone(), None));
    repo.reference(&format!("refs/tags/{branch}"), first.parse().unwrap(), true, "").unwrap();
    let default = Plan::of(&ground.request()).unwrap();
    assert_eq!((&default.worktree().base, &default.worktree().base_branch), (&main, &on));
    // The names that a merge and a push use are always those of branches.
    let made = ground.create();
    made.write("a.txt", "changed\n");
    let commit = made.commit_reviewed().unwrap();
    repo.reference(&format!("refs/tags/{}", made.worktree.branch), first.parse().unwrap(), true, "").unwrap();
    let merged = made.merge(&commit, plexus_protocol::claudecode::MergeHow::FastForward).unwrap();
    assert_eq!((merged.old, merged.new), (main, commit));
}

#[test]
fn a_worktree_is_removed_completely_even_if_its_creation_failed() {
    let ground = Ground::new();
    let before = || {
        let branches = ground.repo.branches(None).unwrap().count();
        (branches, ground.repo.worktrees().unwrap().len(), ground.root.join(".git/worktrees").exists())
    };
    let clean = before();
    let made = ground.create();
    made.write("deep/down/x", "changed");
    let locked = made.path().join("deep/down");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o500)).unwrap();
    remove(&made.worktree).unwrap();
    assert_eq!(before(), clean);
    assert!(!ground.worktrees_dir().join("app").exists());
    remove(&made.worktree).unwrap();

    // The creation failed half way: the branch exists, the files do not.
    let plan = Plan::of(&ground.request()).unwrap();
    let commit = ground.repo.head().unwrap().peel_to_commit().unwrap();
    ground.repo.branch(&plan.worktree().branch, &commit, false).unwrap();
    let failed = plan.create();
    assert!(failed.is_err(), "the branch is taken");
    remove(plan.worktree()).unwrap();
    assert_eq!(before(), clean);
}

#[test]
fn many_worktrees_can_be_created_and_removed_concurrently() {
    let ground = Ground::new();
    let requests: Vec<Request> = (0..8).map(|_| ground.request()).collect();
    let records = ground.root.with_file_name("records");
    std::thread::scope(|scope| {
        for request in &requests {
            let record = Record::new(records.join(&request.name));
            scope.spawn(move || {
                for _ in 0..20 {
                    let plan = Plan::of(request).unwrap();
                    keep(&record, plan.create().unwrap()).unwrap();
                    assert_eq!(losses(plan.worktree(), Some(&record.initial_state().unwrap())).unwrap(), []);
                    remove(plan.worktree()).unwrap();
                }
                keep(&record, Plan::of(request).unwrap().create().unwrap()).unwrap();
            });
        }
    });
    assert_eq!(ground.repo.worktrees().unwrap().len(), 8);
}

#[test]
fn a_note_is_listed_until_it_is_erased() {
    let ground = Ground::new();
    let notes = Notes::new(ground.dir.path().join("notes"));
    assert!(notes.all().unwrap().is_empty());
    let worktree = Plan::of(&ground.request()).unwrap().worktree().clone();
    let note = Note { session: SessionId::random(), stage: Stage::Creating, worktree };
    notes.write(&note).unwrap();
    std::fs::write(ground.dir.path().join("notes/rubbish.json"), "{").unwrap();
    assert_eq!(notes.all().unwrap(), std::slice::from_ref(&note));
    notes.erase(note.session).unwrap();
    notes.erase(note.session).unwrap();
    assert!(notes.all().unwrap().is_empty());
}
