//! The keeper: how it starts a child, how it moves lines, and what it leaves when it exits.

mod common;

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{NONCE, Run, environment, keep_program, within};
use rustix::io::{FdFlags, fcntl_setfd};

use plexus_agent::{
    JournalLimits, Keeper, Launch, Outbox, ProcessIdentity, RunDir, Streams, Tracing, read_exit, stderr_tail,
};

#[test]
fn a_keeper_that_is_not_released_starts_nothing_and_exits() {
    let home = tempfile::tempdir().unwrap();
    let dir = RunDir::new(home.path().join("1"));
    dir.create().unwrap();
    let started = home.path().join("started");
    let launch = Launch {
        program: "/usr/bin/touch".into(),
        args: vec![started.to_str().unwrap().to_owned()],
        cwd: home.path().to_owned(),
        nonce: NONCE.to_owned(),
        journal: JournalLimits::default(),
        streams: Streams::Lines,
        sandbox: None,
        tracing: Tracing::Denied,
        idle_without_hub: None,
    };
    std::fs::write(dir.launch(), serde_json::to_vec(&launch).unwrap()).unwrap();
    let status = Command::new(keep_program())
        .args(["keep".as_ref(), dir.path().as_os_str(), "50".as_ref()])
        .env_clear()
        .envs(environment(home.path(), "none"))
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success());
    assert!(!started.exists());
    let error = read_exit(&dir).unwrap().error.unwrap();
    assert!(error.contains("did not send the go line"), "{error}");
}

#[tokio::test]
async fn a_child_inherits_no_descriptor_of_the_hub() {
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("operator.token"), "secret").unwrap();
    let inherited = File::open(secret.path()).unwrap();
    fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
    let look = format!("cat /proc/self/fd/{}/operator.token > seen; echo done", inherited.as_raw_fd());
    let mut run = Run::prepare(&look);
    run.outbox.go(NONCE).unwrap();
    run.exit().await;
    assert_eq!(std::fs::read_to_string(run.home.path().join("seen")).unwrap(), "");
}

#[tokio::test]
async fn the_nonce_of_another_run_starts_nothing() {
    let mut run = Run::prepare("touch started");
    run.outbox.go("another nonce").unwrap();
    let exit = run.exit().await;
    assert!(exit.error.unwrap().contains("not the go line of this run"));
    assert!(!run.home.path().join("started").exists());
}

#[tokio::test]
async fn a_keeper_that_waits_for_its_release_can_be_terminated() {
    let run = Run::prepare("touch started");
    run.keeper.terminate().unwrap();
    within("the keeper to end", run.keeper.ended()).await;
    assert!(!run.home.path().join("started").exists());
}

#[tokio::test]
async fn lines_pass_both_ways_in_order_and_the_exit_code_is_stored() {
    let mut run = Run::start("while read -r line; do echo \"got $line\"; done; echo end; exit 7");
    run.outbox.append(r#"{"type":"a"}"#).unwrap();
    run.outbox.append(r#"{"neither":"yours nor mine"}"#).unwrap();
    run.outbox.append("not JSON").unwrap();
    run.outbox.append(r#"{"type":"b"}"#).unwrap();
    assert_eq!(run.line().await, r#"got {"type":"a"}"#);
    assert_eq!(run.line().await, r#"got {"type":"b"}"#);
    run.outbox.close_stdin().unwrap();
    assert_eq!(run.line().await, "end");
    let exit = run.exit().await;
    assert_eq!((exit.code, exit.signal, exit.error), (Some(7), None, None));
    assert!(exit.at > 1_700_000_000);
}

#[tokio::test]
async fn a_line_of_ten_megabytes_passes_whole_while_the_child_floods_its_stdout() {
    let mut run = Run::start("head -c 20000000 /dev/zero | tr '\\0' x; echo; exec cat");
    let line = format!(r#"{{"type":"user","text":"{}"}}"#, "0123456789".repeat(1_000_000));
    run.outbox.append(&line).unwrap();
    run.outbox.append(r#"{"type":"after"}"#).unwrap();
    assert_eq!(run.line().await.len(), 20_000_000);
    assert!(run.line().await == line, "the long line is not the one that was sent");
    assert_eq!(run.line().await, r#"{"type":"after"}"#);
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.keeper.identity().pid)).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 9_000, "the keeper took {peak} kB");
}

#[tokio::test]
async fn an_incomplete_line_is_never_passed_on() {
    let mut run = Run::start("exec cat");
    run.outbox.append(r#"{"type":"first"}"#).unwrap();
    assert_eq!(run.line().await, r#"{"type":"first"}"#);
    // A hub dies during a write, but the keeper is woken …
    let mut file = File::options().append(true).open(run.dir.outbox()).unwrap();
    file.write_all(br#"{"type":"half"#).unwrap();
    // … twice. When the second wake is read, the first one has been handled.
    let mut wake = File::options().read(true).write(true).open(run.dir.wake()).unwrap();
    for _ in 0..2 {
        wake.write_all(b".").unwrap();
        within("the keeper to take its wake", async {
            while rustix::io::ioctl_fionread(&wake).unwrap() > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    // Then the next hub connects.
    let (mut outbox, _) = Outbox::open(&run.dir).unwrap();
    outbox.append(r#"{"type":"second"}"#).unwrap();
    assert_eq!(run.line().await, r#"{"type":"second"}"#);
}

#[tokio::test]
async fn a_line_without_a_wake_is_passed_on_when_a_hub_connects() {
    let mut run = Run::start("exec cat");
    run.outbox.append(r#"{"type":"first"}"#).unwrap();
    assert_eq!(run.line().await, r#"{"type":"first"}"#);
    let mut file = File::options().append(true).open(run.dir.outbox()).unwrap();
    file.write_all(b"{\"type\":\"second\"}\n").unwrap();
    let _hub = Outbox::open(&run.dir).unwrap();
    assert_eq!(run.line().await, r#"{"type":"second"}"#);
}

#[tokio::test]
async fn nobody_can_open_the_streams_of_a_child() {
    let mut run = Run::start("echo $$; exec cat");
    let child = run.process().await;
    for stream in 0..=2 {
        let path = format!("/proc/{}/fd/{stream}", child.pid);
        let error = File::options().write(true).open(&path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::NXIO.raw_os_error()), "{path}: {error}");
    }
}

#[tokio::test]
async fn the_signal_that_ended_a_child_is_stored() {
    let run = Run::start("kill -9 $$");
    let exit = run.exit().await;
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
}

#[tokio::test]
async fn the_last_output_of_a_child_is_not_lost() {
    let mut run = Run::start("echo 'oh no' >&2; head -c 3000000 /dev/zero | tr '\\0' y; echo; echo last");
    run.exit().await;
    assert_eq!(run.line().await.len(), 3_000_000);
    assert_eq!(run.line().await, "last");
    assert_eq!(stderr_tail(&run.dir, 5), ["oh no"]);
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let mut run = Run::prepare_program(Path::new("/no/such/claude"), &[]);
    run.outbox.go(NONCE).unwrap();
    let exit = run.exit().await;
    assert_eq!(exit.error.as_deref(), Some("/no/such/claude was not found"));
    assert_eq!((exit.code, exit.signal), (None, None));
}

#[tokio::test]
async fn a_child_gets_its_environment_and_the_environment_is_not_stored() {
    let mut run = Run::start("echo $SECRET; env | wc -l; pwd");
    assert_eq!(run.line().await, "never-on-disk");
    // The four variables of the test, and those that `sh` sets itself.
    assert!(run.line().await.trim().parse::<u32>().unwrap() <= 8);
    assert_eq!(run.line().await, run.home.path().to_str().unwrap());
    run.exit().await;
    for file in [run.dir.launch(), run.dir.exit(), run.dir.outbox(), run.dir.stderr()] {
        assert!(!std::fs::read_to_string(&file).unwrap().contains("never-on-disk"), "{}", file.display());
    }
}

#[tokio::test]
async fn signals_that_the_keeper_ignores_have_their_default_in_the_child() {
    let mut run = Run::start("grep -E '^SigIgn' /proc/self/status");
    let line = run.line().await;
    let ignored = u64::from_str_radix(line.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    for (signal, name) in [(1, "HUP"), (2, "INT"), (13, "PIPE"), (15, "TERM"), (17, "CHLD")] {
        assert_eq!(ignored >> (signal - 1) & 1, 0, "SIG{name} is ignored");
    }
}

#[tokio::test]
async fn a_keeper_is_found_by_its_identity_and_no_other_process_is() {
    let run = Run::start("exec cat");
    let identity = run.keeper.identity().clone();
    let found = Keeper::attach(&identity).unwrap().expect("it runs");
    let later = ProcessIdentity { start_time: identity.start_time + 1, ..identity.clone() };
    assert!(Keeper::attach(&later).unwrap().is_none(), "the pid now belongs to another process");
    found.terminate().unwrap();
    within("the keeper to end", found.ended()).await;
    within("the keeper to end", run.keeper.ended()).await;
    assert!(Keeper::attach(&identity).unwrap().is_none());
    found.terminate().unwrap();
}

#[tokio::test]
async fn a_captured_command_reads_its_input_and_its_streams_are_kept_apart() {
    let input = vec![b'x'; 300_000];
    let script = "wc -c; readlink /proc/self/fd/0; echo warning >&2; exit 3";
    let run = Run::start_captured(script, &input);
    assert_eq!(run.exit().await.code, Some(3));
    let stdout = std::fs::read_to_string(run.dir.journal()).unwrap();
    let (count, stdin) = stdout.trim().split_once('\n').unwrap();
    assert_eq!(count.trim(), "300000");
    assert!(stdin.starts_with("/memfd:"), "stdin is not a file of the data directory: {stdin}");
    assert_eq!(stderr_tail(&run.dir, 9), ["warning"]);
}

#[tokio::test]
async fn a_logged_command_reads_nothing_and_leaves_the_tail_of_its_output() {
    let run = Run::start_logged(
        "cat; echo to stdout; echo to stderr >&2; echo by name > /dev/stderr; \
         (setsid sleep 300 &); yes | head -c 3000000; echo; echo last; exit 4",
    );
    let exit = run.exit().await;
    assert_eq!((exit.code, exit.signal, exit.error), (Some(4), None, None));
    assert_eq!(stderr_tail(&run.dir, 1), ["last"]);
    assert!(std::fs::metadata(run.dir.stderr()).unwrap().len() < 2_000_000, "only the tail is kept");
    assert_eq!(std::fs::read(run.dir.journal()).unwrap(), b"");
    assert_eq!(plexus_agent::sweep(&run.session).unwrap(), 0, "nothing it started is left");
    let run = Run::start_logged("echo one; echo two >&2; echo three > /dev/stderr");
    assert_eq!(run.exit().await.code, Some(0));
    assert_eq!(stderr_tail(&run.dir, 9), ["one", "two", "three"]);
}
