//! A run with a shell script in the place of Claude Code, and ways to wait for what it does.

#![expect(dead_code, reason = "each test program uses its own part")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::future::Future;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plexus_agent::{
    Entry, Exit, Journal, JournalLimits, JournalWatch, Keeper, Launch, Outbox, ProcessIdentity, RunDir,
    Streams, Wall, WallNeed, read_exit,
};

pub const NONCE: &str = "a nonce";

/// Far longer than anything here takes; what is still not there then never comes.
const LIMIT: Duration = Duration::from_secs(30);

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

pub async fn gone(identity: &ProcessIdentity) {
    if let Some(process) = Keeper::attach(identity).unwrap() {
        within("a process to end", process.ended()).await;
    }
}

/// `examples/keep.rs`, which cargo builds with the tests.
pub fn keep_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/keep");
    assert!(program.exists(), "build it first: cargo build -p plexus-agent --example keep");
    program
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
    /// A child that is `sh -c SCRIPT`, not told to start yet.
    pub fn prepare(script: &str) -> Self {
        Self::prepare_program(Path::new("/bin/sh"), &["-c", script])
    }

    pub fn prepare_program(program: &Path, args: &[&str]) -> Self {
        Self::prepare_with(program, args, Streams::Lines)
    }

    /// A child that is `sh -c SCRIPT`, behind a wall around what keeper and hub have: all but `work`.
    pub fn start_walled(script: &str, need: WallNeed, hide: Option<&Path>) -> Self {
        let wall = |home: &Path| {
            let hide = hide.map_or_else(|| home.join("data"), Path::to_owned);
            Some(Wall { show: hide.starts_with(home).then(|| hide.join("runs/1/mcp.json")), hide, need })
        };
        let mut run = Self::prepare_behind(Path::new("/bin/sh"), &["-c", script], Streams::Lines, wall);
        run.outbox.go(NONCE).unwrap();
        run
    }

    fn prepare_with(program: &Path, args: &[&str], streams: Streams) -> Self {
        Self::prepare_behind(program, args, streams, |_| None)
    }

    pub fn prepare_behind(
        program: &Path,
        args: &[&str],
        streams: Streams,
        wall: impl FnOnce(&Path) -> Option<Wall>,
    ) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let session = format!("agent-test-{}-{count}", std::process::id());
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().join("data/runs/1"));
        dir.create().unwrap();
        let wall = wall(home.path());
        if wall.is_some() {
            std::fs::write(dir.mcp_config(), "the config").unwrap();
            std::fs::write(home.path().join("data/secret"), "the secret").unwrap();
        }
        let launch = Launch {
            program: program.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            cwd: home.path().to_owned(),
            nonce: NONCE.to_owned(),
            journal: JournalLimits::default(),
            streams,
            wall,
        };
        let environment = environment(home.path(), &session);
        let keeper = Keeper::start(&keep_program(), &dir, &launch, &environment).unwrap();
        let (outbox, _) = Outbox::open(&dir).unwrap();
        let journal = Journal::open(&dir, 0, &JournalWatch::new().unwrap()).unwrap();
        Self { home, dir, session, keeper, outbox, journal, seen: Vec::new() }
    }

    pub fn start(script: &str) -> Self {
        let mut run = Self::prepare(script);
        run.outbox.go(NONCE).unwrap();
        run
    }

    /// A child that is `sh -c SCRIPT` and is let run.
    pub fn start_logged(script: &str) -> Self {
        let mut run = Self::prepare_with(Path::new("/bin/sh"), &["-c", script], Streams::Log);
        run.outbox.go(NONCE).unwrap();
        run
    }

    /// The next line that the child wrote.
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

    /// The process whose pid the child wrote in a line of its own.
    pub async fn process(&mut self) -> ProcessIdentity {
        let line = self.line().await;
        ProcessIdentity::of(line.parse().unwrap()).unwrap()
    }

    pub async fn exit(&self) -> Exit {
        within("the keeper to end", self.keeper.ended()).await;
        read_exit(&self.dir).expect("the keeper left an exit.json")
    }
}

/// Nothing of a test outlives it, even of one that fails.
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
