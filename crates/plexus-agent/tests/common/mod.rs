//! A run with a shell script in place of Claude Code, and functions that wait for its effects.

#![expect(dead_code, reason = "each test program uses its own part")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::future::Future;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plexus_agent::{
    Entry, Exit, Journal, JournalLimits, JournalWatch, Keeper, Launch, Outbox, ProcessIdentity, RunDir,
    Sandbox, SandboxPart, Streams, Tracing, descends_from, read_exit,
};

use plexus_testkit::executable;

pub const NONCE: &str = "a nonce";

/// The time limit of every wait. It is far longer than any step takes.
const LIMIT: Duration = Duration::from_secs(30);

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("timed out waiting for {what}"),
    }
}

pub async fn gone(identity: &ProcessIdentity) {
    if let Some(process) = Keeper::attach(identity).unwrap() {
        within("a process to end", process.ended()).await;
    }
}

/// `examples/keeper_only.rs`, which cargo builds with the tests.
pub fn keep_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/keeper_only");
    assert!(program.exists(), "build it first: cargo build -p plexus-agent --example keeper_only");
    program
}

/// `examples/sandbox_attacker.rs` in the directory of a run that was started with `start_under`. Another user may have no access to the directory
/// where it was built.
pub const ATTACKER: &str = "./sandbox_attacker";

/// Copies a program into the directory of a run.
fn provide(program: &Path, home: &Path) -> PathBuf {
    let place = home.join(program.file_name().unwrap());
    executable::copy(program, &place).unwrap();
    place
}

pub struct Run {
    pub home: tempfile::TempDir,
    pub dir: RunDir,
    pub session: String,
    pub keeper: Keeper,
    pub outbox: Outbox,
    pub journal: Journal,
    seen: Vec<String>,
}

impl Run {
    /// A child `sh -c SCRIPT` that has not been released yet.
    pub fn prepare(script: &str) -> Self {
        Self::prepare_program(Path::new("/bin/sh"), &["-c", script])
    }

    pub fn prepare_program(program: &Path, args: &[&str]) -> Self {
        Self::prepare_with(program, args, Streams::Lines)
    }

    /// A child `sh -c SCRIPT` in a sandbox that hides the files of keeper and hub.
    pub fn start_sandboxed(script: &str, required: &[SandboxPart], hide: Option<&Path>) -> Self {
        let sandbox = |home: &Path| {
            let hide = hide.map_or_else(|| home.join("data"), Path::to_owned);
            let show = hide.starts_with(home).then(|| hide.join("runs/1/mcp.json"));
            Some(Sandbox {
                show,
                hide,
                required: required.iter().copied().collect(),
                inode: None,
                hubs: None,
            })
        };
        let mut run =
            Self::prepare_in_sandbox(Path::new("/bin/sh"), &["-c", script], Streams::Lines, sandbox);
        run.outbox.go(NONCE).unwrap();
        run
    }

    /// As `start_sandboxed`, with a keeper that another command starts, for example `setpriv`.
    pub fn start_under(user: User, prefix: &str, script: &str) -> Self {
        Self::start_requiring(user, prefix, script, &[SandboxPart::Files])
    }

    /// As `start_under`, with other required parts of the sandbox.
    pub fn start_requiring(user: User, prefix: &str, script: &str, required: &[SandboxPart]) -> Self {
        Self::start_hiding(user, prefix, script, |home| {
            let hide = home.join("data");
            let required = required.iter().copied().collect();
            Sandbox { show: Some(hide.join("runs/1/mcp.json")), hide, required, inode: None, hubs: None }
        })
    }

    /// As `start_under`, with a sandbox that hides another directory.
    pub fn start_hiding(
        user: User,
        prefix: &str,
        script: &str,
        sandbox: impl FnOnce(&Path) -> Sandbox,
    ) -> Self {
        let sandbox = |home: &Path| Some(sandbox(home));
        let under = Under { user, prefix: prefix.to_owned() };
        let mut run = Self::prepare_under(&under, &["-c", script], sandbox);
        run.outbox.go(NONCE).unwrap();
        run
    }

    fn prepare_with(program: &Path, args: &[&str], streams: Streams) -> Self {
        Self::prepare_in_sandbox(program, args, streams, |_| None)
    }

    pub fn prepare_in_sandbox(
        program: &Path,
        args: &[&str],
        streams: Streams,
        sandbox: impl FnOnce(&Path) -> Option<Sandbox>,
    ) -> Self {
        let (home, dir, session) = Self::directory();
        let launch = launch(&home, program, args, streams, sandbox(home.path()));
        Self::begin(&keep_program(), home, dir, session, &launch)
    }

    fn prepare_under(under: &Under, args: &[&str], sandbox: impl FnOnce(&Path) -> Option<Sandbox>) -> Self {
        let (home, dir, session) = Self::directory();
        let launch = launch(&home, Path::new("/bin/sh"), args, Streams::Lines, sandbox(home.path()));
        let keep = provide(&keep_program(), home.path());
        provide(&keep_program().with_file_name("sandbox_attacker"), home.path());
        let keeper = home.path().join("keeper.sh");
        // The files that `Keeper::start` writes change their owner afterwards.
        let user = match under.user {
            User::This => "exec",
            User::Nobody => {
                "until [ \"$(stat -c %u launch.json stderr.log | sort -u)\" = 65534 ]; do sleep 0.01; done\n\
                 exec setpriv --reuid 65534 --regid 65534 --clear-groups"
            }
        };
        let text = format!("#!/bin/sh\n{user} {} {} \"$@\"\n", under.prefix, keep.display());
        executable::write(&keeper, &text).unwrap();
        if under.user == User::Nobody {
            give_to_nobody(home.path());
        }
        Self::begin(&keeper, home, dir, session, &launch)
    }

    fn directory() -> (tempfile::TempDir, RunDir, String) {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let session = format!("agent-test-{}-{count}", std::process::id());
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().join("data/runs/1"));
        dir.create().unwrap();
        std::fs::write(dir.mcp_config(), "the config").unwrap();
        std::fs::write(home.path().join("data/secret"), "the secret").unwrap();
        (home, dir, session)
    }

    fn begin(program: &Path, home: tempfile::TempDir, dir: RunDir, session: String, launch: &Launch) -> Self {
        let environment = environment(home.path(), &session);
        let keeper = Keeper::start(program, &dir, launch, &environment).unwrap();
        if home.path().metadata().unwrap().uid() != rustix::process::geteuid().as_raw() {
            give_to_nobody(home.path());
        }
        let (outbox, _) = Outbox::open(&dir).unwrap();
        let journal = Journal::open(&dir, 0, &JournalWatch::new().unwrap()).unwrap();
        Self { home, dir, session, keeper, outbox, journal, seen: Vec::new() }
    }

    /// A child `sh -c SCRIPT` that is ended after this time without a hub, unless it has a turn.
    pub fn start_with_limit(script: &str, limit: Duration) -> Self {
        let (home, dir, session) = Self::directory();
        let launch = launch(&home, Path::new("/bin/sh"), &["-c", script], Streams::Lines, None);
        let launch = Launch { idle_without_hub: Some(limit), ..launch };
        let mut run = Self::begin(&keep_program(), home, dir, session, &launch);
        run.outbox.go(NONCE).unwrap();
        run
    }

    /// Disconnects the hub.
    pub fn close_hub(&mut self) {
        // The outbox of a run without a keeper replaces this one, which closes this one.
        let elsewhere = RunDir::new(self.home.path().join(format!("elsewhere-{}", self.session)));
        elsewhere.restore().unwrap();
        self.outbox = Outbox::open(&elsewhere).unwrap().0;
    }

    /// Connects a hub again.
    pub fn open_hub(&mut self) {
        self.outbox = Outbox::open(&self.dir).unwrap().0;
    }

    pub fn start(script: &str) -> Self {
        let mut run = Self::prepare(script);
        run.outbox.go(NONCE).unwrap();
        run
    }

    /// A child `sh -c SCRIPT` without an outbox, whose output is logged.
    pub fn start_logged(script: &str) -> Self {
        let mut run = Self::prepare_with(Path::new("/bin/sh"), &["-c", script], Streams::Log);
        run.outbox.go(NONCE).unwrap();
        run
    }

    /// A child `sh -c SCRIPT` that reads `stdin` and whose streams are captured.
    pub fn start_captured(script: &str, stdin: &[u8]) -> Self {
        let (home, dir, session) = Self::directory();
        std::fs::write(dir.input(), stdin).unwrap();
        let streams = Streams::Captured { input: dir.input() };
        let launch = launch(&home, Path::new("/bin/sh"), &["-c", script], streams, None);
        let mut run = Self::begin(&keep_program(), home, dir, session, &launch);
        run.outbox.go(NONCE).unwrap();
        run
    }

    /// The next line of the child.
    pub async fn line(&mut self) -> String {
        within("a line of the child", async {
            while self.seen.is_empty() {
                self.journal.changed().await;
                let entries = self.journal.read(1 << 20).unwrap();
                let file = File::open(self.dir.journal()).unwrap();
                self.seen = entries.iter().rev().map(|entry| text(&file, entry)).collect();
            }
            self.seen.pop().unwrap()
        })
        .await
    }

    /// The lines of the child before the line `end`.
    pub async fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match self.line().await {
                end if end == "end" => return lines,
                line => lines.push(line),
            }
        }
    }

    /// The process whose pid is the next line of the child.
    pub async fn process(&mut self) -> ProcessIdentity {
        let line = self.line().await;
        ProcessIdentity::of(self.outside(line.parse().unwrap()).expect("it runs")).unwrap()
    }

    /// The pid, in the namespace of the test, of a process with the pid `inside` in the child's namespace.
    pub fn outside(&self, inside: i32) -> Option<i32> {
        let pids = std::fs::read_dir("/proc").unwrap();
        let pids = pids.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok());
        pids.into_iter().find(|pid| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let namespaces = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let innermost = namespaces.and_then(|pids| pids.split_ascii_whitespace().last()?.parse().ok());
            innermost == Some(inside) && descends_from(*pid, &[self.keeper.identity().pid])
        })
    }

    pub async fn exit(&self) -> Exit {
        within("the keeper to end", self.keeper.ended()).await;
        read_exit(&self.dir).expect("the keeper left an exit.json")
    }
}

/// The user of keeper and child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The user who runs the tests.
    This,
    /// A user without any privilege.
    Nobody,
}

impl User {
    /// The users with which the tests can run.
    pub fn all() -> Vec<Self> {
        if rustix::process::geteuid().is_root() { vec![Self::This, Self::Nobody] } else { vec![Self::This] }
    }
}

struct Under {
    user: User,
    prefix: String,
}

fn launch(
    home: &tempfile::TempDir,
    program: &Path,
    args: &[&str],
    streams: Streams,
    sandbox: Option<Sandbox>,
) -> Launch {
    Launch {
        program: program.to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        cwd: home.path().to_owned(),
        nonce: NONCE.to_owned(),
        journal: JournalLimits::default(),
        streams,
        sandbox,
        tracing: Tracing::Denied,
        idle_without_hub: None,
    }
}

fn give_to_nobody(path: &Path) {
    std::os::unix::fs::lchown(path, Some(65534), Some(65534)).unwrap();
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            give_to_nobody(&entry.path());
        } else {
            std::os::unix::fs::lchown(entry.path(), Some(65534), Some(65534)).unwrap();
        }
    }
}

/// No process outlives its test, even if the test fails.
impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        while plexus_agent::sweep(&self.session).is_ok_and(|swept| swept > 0) {
            std::thread::yield_now();
        }
    }
}

pub fn environment(home: &Path, session: &str) -> BTreeMap<OsString, OsString> {
    BTreeMap::from([
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("HOME".into(), home.into()),
        ("PLEXUS_SESSION_ID".into(), session.into()),
        ("SECRET".into(), "never-on-disk".into()),
    ])
}

fn text(file: &File, entry: &Entry) -> String {
    let mut bytes = vec![0; usize::try_from(entry.end - entry.start - 1).unwrap()];
    file.read_exact_at(&mut bytes, entry.start).unwrap();
    String::from_utf8(bytes).unwrap()
}
