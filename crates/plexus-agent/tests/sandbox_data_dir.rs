//! The sandbox hides the hub's data directory from a child. If the system supports no sandbox, the tests that need one report that they
//! were skipped.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use common::{NONCE, Run, gone};
use plexus_agent::{Inode, Sandbox, SandboxPart, SandboxState, Streams, read_sandbox, sweep, try_hiding};

/// Whether the system supports a sandbox. If not, reports the test as skipped.
fn granted(test: &str) -> bool {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let tried = try_hiding(dir.path());
    assert!(dir.path().join("file").exists(), "the trial does not affect its caller");
    if let Err(reason) = &tried {
        plexus_testkit::skip(test, &format!("sandbox: {reason}"));
    }
    tried.is_ok()
}

#[tokio::test]
async fn a_child_finds_its_own_config_and_nothing_else() {
    if !granted("a_child_finds_its_own_config_and_nothing_else") {
        return;
    }
    let mut run = Run::start_sandboxed(
        "find data | sort; cat data/runs/1/mcp.json; echo; \
         for act in 'echo x > data/runs/1/mcp.json' 'echo x > data/runs/1/outbox.jsonl' 'rm data/runs/1/mcp.json' \
         'mv data other' 'touch data/new' 'cat data/secret'; do sh -c \"$act\" 2> /dev/null && echo \"$act\"; done; \
         id -u; touch made; ls -d made; stat -c %u /; echo end",
        &[SandboxPart::Files],
        None,
    );
    let own = rustix::process::geteuid().as_raw();
    // Files of root belong to root for root, and to nobody for other users.
    let root = if own == 0 { 0 } else { 65534 };
    assert_eq!(
        run.lines().await,
        [
            "data",
            "data/runs",
            "data/runs/1",
            "data/runs/1/mcp.json",
            "the config",
            &own.to_string(),
            "made",
            &root.to_string()
        ]
    );
    assert!(
        matches!(read_sandbox(&run.dir), Some(SandboxState::Namespaces { .. })),
        "{:?}",
        read_sandbox(&run.dir)
    );
    assert_eq!(std::fs::read_to_string(run.home.path().join("data/secret")).unwrap(), "the secret");
}

#[tokio::test]
async fn a_child_cannot_bypass_the_sandbox() {
    if !granted("a_child_cannot_bypass_the_sandbox") {
        return;
    }
    let mut run = Run::start_sandboxed(
        "keeper=1; data=$PWD/data; look='cat '$data'/secret'; \
         tried() { \"$@\" 2> /dev/null | grep -q 'the secret' && echo \"REACHED by $*\"; echo tried; }; \
         tried $look; \
         tried sh -c \"umount $data; $look\"; \
         tried sh -c \"umount -l $data; $look\"; \
         tried unshare -m sh -c \"umount -l $data; $look\"; \
         tried unshare -Urm sh -c \"umount $data; umount -l $data; $look\"; \
         tried unshare -Urm sh -c \"mkdir m; mount --bind . m; cat m/data/secret\"; \
         tried unshare -Urm sh -c \"mkdir n; mount --rbind / n; cat n$data/secret\"; \
         tried unshare -Urm sh -c \"mount -o remount,rw $data; $look\"; \
         tried cat ../$(basename $PWD)/data/secret; \
         tried sh -c 'mv $PWD $PWD-moved && cat $PWD-moved/data/secret; ls -d $PWD-moved && echo the secret'; \
         tried cat /proc/$keeper/root$data/secret; \
         tried cat /proc/$keeper/cwd/../../secret; \
         tried cat /proc/1/root$data/secret; \
         tried sh -c \"cat /proc/[0-9]*/root$data/secret\"; \
         tried nsenter -t $keeper -m $look; \
         tried nsenter -t $keeper -U -m $look; \
         tried nsenter -t 1 -m $look; \
         tried nsenter --mount=/proc/$keeper/ns/mnt $look; \
         ls /proc/$keeper/fd /proc/$keeper/map_files > /dev/null 2>&1 && echo 'REACHED fds'; \
         head -c 1 /proc/$keeper/environ 2> /dev/null | grep -q . && echo 'REACHED environ'; \
         for fd in /proc/self/fd/*; do case $(readlink $fd) in *data*) echo \"INHERITED $fd\";; esac; done; \
         echo end",
        &[SandboxPart::Files],
        None,
    );
    let lines = run.lines().await;
    assert_eq!(lines, ["tried"; 18], "{lines:#?}");
    // The hidden file exists.
    assert!(run.home.path().join("data/secret").exists() && !run.home.path().join("m/data/secret").exists());
}

#[tokio::test]
async fn stop_ends_sandboxed_processes() {
    if !granted("stop_ends_sandboxed_processes") {
        return;
    }
    let mut run = Run::start_sandboxed(
        "(env -i setsid sh -c 'trap \"\" TERM HUP; echo $$; while :; do /bin/sleep 300; done' &); \
         (unshare -U setsid sh -c 'trap \"\" TERM HUP; echo $$; while :; do sleep 300; done' &); \
         echo $$; while :; do sleep 300; done",
        &[SandboxPart::Files],
        None,
    );
    let tree = [run.process().await, run.process().await, run.process().await];
    run.keeper.stop(&run.dir, &run.session).await;
    for process in tree {
        assert!(!process.is_alive());
    }
    assert_eq!(sweep(&run.session).unwrap(), 0);
}

#[tokio::test]
async fn a_sandboxed_child_dies_with_its_keeper_and_is_found_by_its_environment() {
    if !granted("a_sandboxed_child_dies_with_its_keeper_and_is_found_by_its_environment") {
        return;
    }
    let mut run = Run::start_sandboxed(
        "(setsid sh -c 'echo $$; while :; do sleep 300; done' &); echo $$; while :; do sleep 300; done",
        &[SandboxPart::Files],
        None,
    );
    let tree = [run.process().await, run.process().await];
    run.keeper.kill().unwrap();
    gone(run.keeper.identity()).await;
    while sweep(&run.session).unwrap() > 0 {}
    for process in &tree {
        gone(process).await;
    }
}

#[tokio::test]
async fn without_a_sandbox_an_optional_one_starts_the_child_and_a_required_one_does_not() {
    let nowhere = Path::new("/no/such/directory");
    let mut run = Run::start_sandboxed("echo started", &[], Some(nowhere));
    assert_eq!(run.line().await, "started");
    let Some(SandboxState::None { reason }) = read_sandbox(&run.dir) else {
        panic!("{:?}", read_sandbox(&run.dir))
    };
    assert!(reason.contains("No such file"), "{reason}");

    let run = Run::start_sandboxed("touch started", &[SandboxPart::Files], Some(nowhere));
    let exit = run.exit().await;
    let error = exit.error.expect("a reason");
    assert!(error.contains("required") && error.contains("No such file"), "{error}");
    assert!(!run.home.path().join("started").exists());
    assert_eq!(read_sandbox(&run.dir), None);
}

#[tokio::test]
async fn a_missing_program_is_named_in_the_sandbox_too() {
    if !granted("a_missing_program_is_named_in_the_sandbox_too") {
        return;
    }
    let sandbox = |home: &Path| {
        Some(Sandbox { hide: home.join("data"), show: None, required: [].into(), inode: None, hubs: None })
    };
    let mut run = Run::prepare_in_sandbox(Path::new("/no/such/claude"), &[], Streams::Lines, sandbox);
    run.outbox.go(NONCE).unwrap();
    assert_eq!(run.exit().await.error.as_deref(), Some("/no/such/claude was not found"));
}

#[tokio::test]
async fn a_replaced_data_directory_starts_no_child() {
    if !granted("a_replaced_data_directory_starts_no_child") {
        return;
    }
    let start = |inode_of: &str| {
        let sandbox = |home: &Path| {
            let inode = Some(Inode::of(&home.join(inode_of)).unwrap());
            Some(Sandbox {
                hide: home.join("data"),
                show: None,
                required: [SandboxPart::Files].into(),
                inode,
                hubs: None,
            })
        };
        let script = ["-c", "touch started; echo started"];
        let mut run = Run::prepare_in_sandbox(Path::new("/bin/sh"), &script, Streams::Lines, sandbox);
        run.outbox.go(NONCE).unwrap();
        run
    };
    assert_eq!(start("data").line().await, "started");
    // The hub has locked another directory than the one at that path now.
    let run = start("data/runs");
    let error = run.exit().await.error.expect("a reason");
    assert!(error.contains("not the directory that the hub has locked"), "{error}");
    assert!(!run.home.path().join("started").exists());
}
