//! A repository with a hostile configuration: every setting of git that names a command names one that writes to a file. No operation of
//! this crate runs any of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Ground, commit, write};
use git2::ConfigLevel;
use plexus_worktree::{Request, remove};

/// Configures a program in every setting that can name one. A program that runs writes a line to the returned file.
fn trap(ground: &Ground) -> PathBuf {
    let mark = ground.dir.path().join("mark");
    let program = ground.dir.path().join("trap");
    std::fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", mark.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let hooks = ground.root.join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for hook in
        ["post-checkout", "pre-commit", "post-index-change", "reference-transaction", "fsmonitor-watchman"]
    {
        std::fs::copy(&program, hooks.join(hook)).unwrap();
    }
    let command = program.to_str().unwrap();
    let mut config = ground.repo.config().unwrap().open_level(ConfigLevel::Local).unwrap();
    for key in [
        "core.fsmonitor",
        "core.editor",
        "core.pager",
        "core.sshCommand",
        "core.gitProxy",
        "core.askPass",
        "core.alternateRefsCommand",
        "credential.helper",
        "diff.external",
        "diff.trap.command",
        "diff.trap.textconv",
        "merge.trap.driver",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "gpg.program",
        "uploadpack.packObjectsHook",
    ] {
        config.set_str(key, command).unwrap();
    }
    config.set_str("core.hooksPath", hooks.to_str().unwrap()).unwrap();
    config.set_str("filter.trap.required", "true").unwrap();
    config.set_str("diff.trap.xfuncname", "(a+)+$").unwrap();
    config.set_str("remote.origin.url", &format!("ext::{command}")).unwrap();
    config.set_str("remote.origin.promisor", "true").unwrap();
    config.set_str("protocol.ext.allow", "always").unwrap();
    write(&ground.root, ".git/info/attributes", "* filter=trap diff=trap merge=trap\n");
    mark
}

#[test]
fn no_program_that_a_repository_configures_is_run() {
    let ground = Ground::new();
    ground.write(".gitattributes", "* filter=trap diff=trap merge=trap\n");
    ground.write("long.txt", &format!("{}\n", "a".repeat(100)).repeat(100));
    ground.commit();
    ground.write("local.conf", "x\n");
    let mark = trap(&ground);
    let request =
        Request { copy: vec!["local.conf".to_owned()], base: Some("HEAD".to_owned()), ..ground.request() };
    let made = ground.try_make(&request).unwrap();
    made.take();
    assert_eq!(made.changes().unwrap().files, 0);
    made.write("a.txt", "ONE\ntwo\nthree\n");
    made.write("long.txt", &format!("{}!\n", "a".repeat(100)).repeat(100));
    made.write("new.txt", "x\n");
    assert_eq!(made.figures(), [3, 102, 101, 1, 0]);
    let shown = made.diff(None).unwrap().files;
    assert_eq!(
        shown.iter().map(|file| (file.insertions, file.patch.is_some())).collect::<Vec<_>>(),
        [(1, true), (100, true), (1, true)]
    );
    commit(&made.repo());
    assert!(!made.is_unchanged().unwrap());
    remove(&made.worktree).unwrap();
    let unchanged = ground.create();
    assert!(unchanged.unchanged());
    remove(&unchanged.worktree).unwrap();
    assert!(!mark.exists(), "{}", std::fs::read_to_string(&mark).unwrap());
}

#[test]
fn git_itself_runs_the_configured_programs() {
    let ground = Ground::new();
    let mark = trap(&ground);
    let triggered = Command::new("git")
        .args(["worktree", "add", "-q", "-b", "b"])
        .arg(ground.dir.path().join("by-git"))
        .current_dir(&ground.root)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", ground.dir.path())
        .stdin(Stdio::null())
        .output();
    // Without a git program there is no comparison.
    if triggered.is_ok() {
        assert!(mark.exists(), "git itself runs what the configuration names");
    }
}

#[test]
fn a_damaged_repository_is_an_error_and_nothing_is_removed() {
    let ground = Ground::new();
    let made = ground.create();
    for (file, content) in
        [(".git/config", "[core\n"), (".git/HEAD", "\0"), (".git/objects/info/alternates", "\0\0")]
    {
        let before = std::fs::read(ground.root.join(file)).ok();
        write(&ground.root, file, content);
        // Any result is fine, if there is one and a changed worktree does not count as unchanged.
        let _ = made.changes();
        made.write("x.txt", "mine\n");
        assert!(!made.is_unchanged().unwrap_or(false), "{file}");
        std::fs::remove_file(made.path().join("x.txt")).unwrap();
        match before {
            Some(before) => std::fs::write(ground.root.join(file), before).unwrap(),
            None => std::fs::remove_file(ground.root.join(file)).unwrap(),
        }
    }
    for (file, content) in
        [("HEAD", "\0"), ("HEAD", "ref: refs/heads/../../../etc/passwd"), ("index", "DIRC")]
    {
        let path = made.admin().join(file);
        let before = std::fs::read(&path).unwrap();
        std::fs::write(&path, content).unwrap();
        assert!(!made.is_unchanged().unwrap_or(false), "{file}");
        std::fs::write(&path, before).unwrap();
    }
    assert!(made.unchanged());
    std::fs::rename(&ground.root, ground.root.with_file_name("gone")).unwrap();
    assert!(made.changes().is_err());
    assert!(made.is_unchanged().is_err());
    assert!(Path::new(&made.worktree.path).join("a.txt").exists());
}
