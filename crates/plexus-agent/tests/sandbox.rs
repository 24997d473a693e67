//! What a sandbox protects besides the hub's files. Each test runs attacks in a sandbox, as root and as a user without privileges, and also
//! the ordinary operation. If the system does not support what a test needs, the test reports that it was skipped.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::process::Command;

use common::{ATTACKER, Run, User, within};
use plexus_agent::{Protection, Sandbox, SandboxPart, SandboxState, Tracing, read_sandbox, try_sandbox};

/// Whether the system supports the protection that a test needs, according to a trial sandbox.
fn granted(test: &str, which: impl FnOnce(&SandboxState) -> Option<&Protection>) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = try_sandbox(dir.path(), Tracing::Denied, &BTreeSet::new());
    let held = matches!(which(&sandbox), Some(Protection::Held(_)));
    if !held {
        plexus_testkit::skip(test, &format!("sandbox: {sandbox:?}"));
    }
    held
}

fn signals(sandbox: &SandboxState) -> Option<&Protection> {
    match sandbox {
        SandboxState::Namespaces { signals, .. } => Some(signals),
        SandboxState::None { .. } => None,
    }
}

fn terminals(sandbox: &SandboxState) -> Option<&Protection> {
    match sandbox {
        SandboxState::Namespaces { terminals, .. } => Some(terminals),
        SandboxState::None { .. } => None,
    }
}

fn descriptors(sandbox: &SandboxState) -> Option<&Protection> {
    match sandbox {
        SandboxState::Namespaces { descriptors, .. } => Some(descriptors),
        SandboxState::None { .. } => None,
    }
}

#[tokio::test]
async fn a_child_does_not_see_later_mounts() {
    if !granted("a_child_does_not_see_later_mounts", signals) {
        return;
    }
    for (user, unshare) in [(User::This, "-m"), (User::This, "-Urm"), (User::Nobody, "-Urm")] {
        if !User::all().contains(&user) || (unshare == "-m" && User::all().len() == 1) {
            continue;
        }
        let prefix = format!("unshare {unshare} --propagation shared");
        let mut run = Run::start_under(
            user,
            &prefix,
            "mkdir before later; echo ready; read -r go; ls before later; cat later/secret before/secret; \
             grep -c ' shared:\\| master:' /proc/self/mountinfo; ls -d data/runs/1/mcp.json; echo end",
        );
        assert_eq!(run.line().await, "ready");
        // Outside the sandbox, in the mount namespace of the keeper.
        let keeper = run.keeper.identity().pid.to_string();
        let mut outside = Command::new("nsenter");
        outside.args(["-t", &keeper, "-m"]);
        if unshare == "-Urm" {
            outside.arg("-U");
        }
        let (data, later) = (run.home.path().join("data"), run.home.path().join("later"));
        let mounted = outside.args(["mount", "--bind"]).args([&data, &later]).status().unwrap();
        assert!(mounted.success(), "the attack needs its mount");
        let root = format!("/proc/{keeper}/root{}/secret", later.display());
        assert_eq!(std::fs::read_to_string(root).unwrap(), "the secret", "the keeper can read it");
        run.outbox.append(r#"{"type":"go"}"#).unwrap();
        let seen = run.lines().await;
        assert_eq!(seen, ["before:", "", "later:", "0", "data/runs/1/mcp.json"], "{user:?} {unshare}");
    }
}

/// An earlier child of the same user made a directory above the data directory read-only. It can be made writable again.
#[tokio::test]
async fn no_directory_above_the_data_directory_can_be_moved_whatever_its_mode() {
    if !granted("no_directory_above_the_data_directory_can_be_moved_whatever_its_mode", signals) {
        return;
    }
    let prefix = "sh -c 'mkdir -p \"$HOME/own/share/hidden\" && echo the secret > \"$HOME/own/share/hidden/secret\" \
                  && chmod 555 \"$HOME/own\" \"$HOME\" && exec \"$0\" \"$@\"'";
    let script = "chmod 755 . own; for folder in own/share own $PWD; do mv $folder $folder-away && echo MOVED $folder; done; \
                  cat own*/share*/hidden/secret; ls -A own/share/hidden; \
                  touch own/beside && mv own/beside own/renamed && ls own/renamed; echo end";
    for user in User::all() {
        let mut run = Run::start_hiding(user, prefix, script, |home| Sandbox {
            hide: home.join("own/share/hidden"),
            show: None,
            required: [SandboxPart::Files].into(),
            inode: None,
            hubs: None,
        });
        assert_eq!(run.lines().await, ["own/renamed"], "{user:?}");
        assert!(run.home.path().join("own/share/hidden/secret").exists());
    }
}

#[tokio::test]
async fn a_child_signals_no_process_outside() {
    if !granted("a_child_signals_no_process_outside", signals) {
        return;
    }
    for user in User::all() {
        let mut other = Run::start_under(user, "", "echo $$; exec cat");
        let other_child = other.process().await;
        let victims = format!(
            "{} {} {} {}",
            std::process::id(),
            other.keeper.identity().pid,
            other_child.pid,
            std::os::unix::process::parent_id(),
        );
        let script =
            format!("echo $$; read -r pids; {} signal {victims} $pids; echo alive; echo end", ATTACKER);
        let mut run = Run::start_under(user, "", &script);
        run.process().await;
        let own = format!("{{\"type\":\"{}\"}}", run.keeper.identity().pid);
        run.outbox.append(&own).unwrap();
        let lines = run.lines().await;
        // The rest of that line is not a number. It stands for process 1 of the child's namespace.
        let reached: Vec<&String> = lines.iter().filter(|line| line.contains("REACHED")).collect();
        assert!(reached.iter().all(|line| line.contains("Pid(1)")), "{user:?}: {lines:#?}");
        assert_eq!(lines.last().map(String::as_str), Some("alive"), "{lines:#?}");
        let exit = run.exit().await;
        assert_eq!((exit.code, exit.signal), (Some(0), None), "{exit:?}");
        assert!(other.keeper.identity().is_alive() && other_child.is_alive());
    }
}

/// As in a container: parts of `/proc` are masked, so the kernel does not allow another mount of it.
#[tokio::test]
async fn with_a_masked_proc_landlock_blocks_signals_or_the_sandbox_reports_it() {
    let test = "with_a_masked_proc_landlock_blocks_signals_or_the_sandbox_reports_it";
    if !granted(test, signals) {
        return;
    }
    if User::all().len() == 1 {
        return plexus_testkit::skip(test, "root, to mask a part of /proc");
    }
    let mut other = Run::start_under(User::This, "", "exec cat");
    other.outbox.append(r#"{"type":"ready"}"#).unwrap();
    other.line().await;
    let prefix = "unshare -m sh -c 'mount -t tmpfs masked /proc/fs && exec \"$0\" \"$@\"'";
    let script = format!(
        "{} signal {} {}; sleep 300 & kill $! && echo own; cat data/secret; cat data/runs/1/mcp.json; echo; echo end",
        ATTACKER,
        other.keeper.identity().pid,
        std::process::id()
    );
    let mut run = Run::start_under(User::This, prefix, &script);
    let lines = run.lines().await;
    let Some(SandboxState::Namespaces { signals, .. }) = read_sandbox(&run.dir) else { panic!("no sandbox") };
    match signals {
        Protection::Held(by) => {
            assert!(by.contains("Landlock") && by.contains("PID namespace"), "{by}");
            assert_eq!(lines, ["tried", "own", "the config"]);
        }
        Protection::Open(why) => {
            assert!(why.contains("PID namespace") && why.contains("Landlock"), "{why}");
            assert!(lines.iter().any(|line| line.contains("REACHED")), "{lines:?}");
        }
    }
}

#[tokio::test]
async fn a_tool_cannot_take_descriptors_of_its_agent() {
    if !granted("a_tool_cannot_take_descriptors_of_its_agent", descriptors) {
        return;
    }
    for user in User::all() {
        let script = format!("{} trace $$; echo end", ATTACKER);
        let mut run = Run::start_under(user, "", &script);
        assert_eq!(run.lines().await, ["tried"], "{user:?}");
    }
}

#[tokio::test]
async fn the_reported_protection_of_memory_is_accurate() {
    if !granted("the_reported_protection_of_memory_is_accurate", signals) {
        return;
    }
    for user in User::all() {
        let script = format!("{} memory $$; echo end", ATTACKER);
        let mut run = Run::start_under(user, "", &script);
        let reached = run.lines().await.contains(&"REACHED memory".to_owned());
        let Some(SandboxState::Namespaces { memory, .. }) = read_sandbox(&run.dir) else {
            panic!("no sandbox")
        };
        assert_eq!(reached, matches!(memory, Protection::Open(_)), "{user:?}: {memory:?}");
    }
}

#[tokio::test]
async fn a_debugger_can_trace_its_own_children() {
    let (test, strace) = ("a_debugger_can_trace_its_own_children", "/usr/bin/strace");
    if !granted(test, descriptors) {
        return;
    }
    if !std::path::Path::new(strace).exists() {
        return plexus_testkit::skip(test, "strace");
    }
    for user in User::all() {
        let script = format!("{strace} -o traced /bin/true; echo $?; grep -c exit_group traced; echo end");
        let mut run = Run::start_under(user, "", &script);
        assert_eq!(run.lines().await, ["0", "1"], "{user:?}");
    }
}

#[tokio::test]
async fn pids_of_two_agents_differ() {
    if !granted("pids_of_two_agents_differ", signals) {
        return;
    }
    let (mut one, mut two) = (
        Run::start_under(User::This, "", "echo $$; exec cat"),
        Run::start_under(User::This, "", "echo $$; exec cat"),
    );
    let (one, two) = (one.line().await, two.line().await);
    assert_ne!(one, two, "Claude Code names files after its PID");
    assert!(one != "1" && two != "1");
}

#[tokio::test]
async fn all_processes_of_a_namespace_end_with_their_keeper() {
    if !granted("all_processes_of_a_namespace_end_with_their_keeper", signals) {
        return;
    }
    for user in User::all() {
        // Without the variable of the session, in separate process sessions, ignoring every signal that can be ignored.
        let mut run = Run::start_under(
            user,
            "",
            "(env -i setsid sh -c 'trap \"\" TERM HUP INT; echo $$; while :; do /bin/sleep 300; done' &); \
             echo $$; while :; do sleep 300; done",
        );
        let tree = [run.process().await, run.process().await];
        run.keeper.kill().unwrap();
        for process in &tree {
            within("the tree to end", common::gone(process)).await;
        }
    }
}

#[tokio::test]
async fn remaining_processes_of_a_child_get_sigterm_before_sigkill() {
    if !granted("remaining_processes_of_a_child_get_sigterm_before_sigkill", signals) {
        return;
    }
    for user in User::all() {
        let mut run = Run::start_under(
            user,
            "",
            "(setsid sh -c 'trap \"echo told; exit\" TERM; echo ready; while :; do sleep 0.05; done' &); \
             read -r go; exit 3",
        );
        assert_eq!(run.line().await, "ready");
        run.outbox.append(r#"{"type":"go"}"#).unwrap();
        assert_eq!(run.line().await, "told", "{user:?}");
        assert_eq!(run.exit().await.code, Some(3), "{user:?}");
    }
}

#[tokio::test]
async fn a_child_has_only_its_own_terminals() {
    if !granted("a_child_has_only_its_own_terminals", terminals) {
        return;
    }
    for user in User::all() {
        let (_held, terminal) = terminal(user);
        let script = format!(
            "read -r go; echo text > {terminal} && echo REACHED; \
             script -qec 'tty; echo typed > $(tty)' /dev/null < /dev/null | tr -d '\\r'; echo end"
        );
        let mut run = Run::start_under(user, "", &script);
        run.outbox.append(r#"{"type":"go"}"#).unwrap();
        assert_eq!(run.lines().await, ["/dev/pts/0", "typed"], "{user:?}");
    }
}

/// A terminal of the user that is not the first one, and the descriptors that keep it open.
fn terminal(user: User) -> (Vec<rustix::fd::OwnedFd>, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let open = || openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    let held = vec![open(), open()];
    grantpt(&held[1]).unwrap();
    unlockpt(&held[1]).unwrap();
    let path = ptsname(&held[1], Vec::new()).unwrap().into_string().unwrap();
    if user == User::Nobody {
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
    }
    (held, path)
}

/// A user namespace with a small limit of PID namespaces, and the process that keeps it open.
struct FewNamespaces(std::process::Child);

impl FewNamespaces {
    fn new(limit: u32) -> Self {
        use std::io::Read as _;
        let script =
            format!("echo {limit} > /proc/sys/user/max_pid_namespaces && echo ready && exec sleep 300");
        let mut unshare = Command::new("unshare");
        let mut holder =
            unshare.args(["-Ur", "sh", "-c", &script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        holder.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        Self(holder)
    }

    /// The command prefix that starts a keeper in it.
    fn prefix(&self) -> String {
        format!("nsenter -t {} -U --preserve-credentials", self.0.id())
    }
}

impl Drop for FewNamespaces {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn an_agent_that_exhausts_pid_namespaces_does_not_weaken_the_next_sandbox() {
    if !granted("an_agent_that_exhausts_pid_namespaces_does_not_weaken_the_next_sandbox", signals) {
        return;
    }
    // The kernel frees namespaces some time after their last process has ended, so the attacker keeps trying.
    let few = FewNamespaces::new(4);
    let script = "read -r go; for i in 1 2 3 4; do \
                  (until unshare -Up --fork sh -c 'echo held; exec sleep 300'; do sleep 0.01; done) & done; wait";
    let mut attacker = Run::start_under(User::This, &few.prefix(), script);
    // The parts that a hub requires after the system has once granted them.
    let required = [SandboxPart::Files, SandboxPart::Processes];
    let mut before = Run::start_requiring(User::This, &few.prefix(), "echo started", &required);
    assert_eq!(before.line().await, "started", "while namespaces are available");
    before.exit().await;
    attacker.outbox.append(r#"{"type":"go"}"#).unwrap();
    for _ in 0..3 {
        assert_eq!(attacker.line().await, "held", "the attacker has exhausted the limit");
    }
    let next = Run::start_requiring(User::This, &few.prefix(), "touch started", &required);
    let error = next.exit().await.error.expect("a reason");
    assert!(error.contains("PID namespace"), "{error}");
    assert!(!next.home.path().join("started").exists());
}

/// Two hubs of one user. The agents of neither find the token of the other.
#[tokio::test]
async fn the_data_directories_of_other_hubs_are_hidden_too() {
    if !granted("the_data_directories_of_other_hubs_are_hidden_too", signals) {
        return;
    }
    let prefix = "sh -c 'mkdir -p \"$HOME/state/hubs\" \"$HOME/elsewhere/other/inner\" \"$HOME/ordinary\" \
                  && echo the secret > \"$HOME/elsewhere/other/secret\" && echo mine > \"$HOME/ordinary/file\" \
                  && ln -s \"$HOME/elsewhere/other\" \"$HOME/state/hubs/1\" \
                  && ln -s \"$HOME/elsewhere/other/inner\" \"$HOME/state/hubs/2\" \
                  && ln -s \"$HOME/data\" \"$HOME/state/hubs/3\" && ln -s /no/such \"$HOME/state/hubs/4\" \
                  && exec \"$0\" \"$@\"'";
    let script = "cat elsewhere/other/secret; ls -A elsewhere/other state/hubs; rm state/hubs/1; touch state/hubs/5; \
                  for folder in elsewhere/other elsewhere state/hubs state; do mv $folder moved && echo MOVED $folder; done; \
                  cat ordinary/file; ls data/runs/1; echo end";
    for user in User::all() {
        let mut run = Run::start_hiding(user, prefix, script, |home| Sandbox {
            hide: home.join("data"),
            show: Some(home.join("data/runs/1/mcp.json")),
            required: [SandboxPart::Files].into(),
            inode: None,
            hubs: Some(home.join("state/hubs")),
        });
        let seen = run.lines().await;
        assert_eq!(seen, ["elsewhere/other:", "", "state/hubs:", "mine", "mcp.json"], "{user:?}");
        assert!(run.home.path().join("elsewhere/other/secret").exists());
        assert_eq!(run.home.path().join("state/hubs").read_dir().unwrap().count(), 4);
    }
}

#[tokio::test]
async fn a_data_directory_inside_that_of_another_hub_starts_no_agent() {
    if !granted("a_data_directory_inside_that_of_another_hub_starts_no_agent", signals) {
        return;
    }
    let prefix = "sh -c 'mkdir -p /$HOME/hubs && ln -s \"$HOME\" \"$HOME/hubs/1\" && exec \"$0\" \"$@\"'";
    let run = Run::start_hiding(User::This, prefix, "touch started", |home| Sandbox {
        hide: home.join("data"),
        show: None,
        required: [SandboxPart::Files].into(),
        inode: None,
        hubs: Some(home.join("hubs")),
    });
    let error = run.exit().await.error.expect("a reason");
    assert!(error.contains("another hub"), "{error}");
    assert!(!run.home.path().join("started").exists());
}
