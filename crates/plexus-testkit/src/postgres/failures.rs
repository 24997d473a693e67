//! Failures of a PostgreSQL server: it is killed and restarted, and a standby takes over, with all commits or without the last ones. Only a server that one
//! test has started for itself may fail.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::{DEFAULT_PORT, Kind, Postgres, programs, unprivileged};

/// The time limit for each step.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

impl Postgres {
    /// Starts a server that no other test uses; `None` if PostgreSQL is not installed.
    ///
    /// # Errors
    /// If it is installed and cannot be started.
    pub fn own() -> anyhow::Result<Option<Self>> {
        let Some(programs) = programs() else { return Ok(None) };
        Self::start(programs, DEFAULT_PORT, Kind::Local).map(Some)
    }

    /// Kills all processes of the server with SIGKILL, and waits for their ends.
    ///
    /// # Errors
    /// If it does not run.
    pub fn kill9(&self) -> anyhow::Result<()> {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).context("it does not run")?;
        let first: i32 = file.lines().next().unwrap_or_default().trim().parse()?;
        let first = Pid::from_raw(first).context("a pid")?;
        // It starts no other process after its own end.
        kill_process(first, Signal::KILL)?;
        let deadline = Instant::now() + LIMIT;
        while is_running(first) {
            ensure!(Instant::now() < deadline, "PostgreSQL does not end");
            std::thread::sleep(PAUSE);
        }
        let data = self.data();
        loop {
            let rest = processes_in(&data);
            if rest.is_empty() {
                break;
            }
            ensure!(Instant::now() < deadline, "processes of PostgreSQL do not end: {rest:?}");
            for pid in rest {
                // It may have ended meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(PAUSE);
        }
        // Until its process is reaped, the next server would take these files for those of a running one.
        std::fs::remove_file(data.join("postmaster.pid"))?;
        std::fs::remove_file(self.socket().with_added_extension("lock"))?;
        Ok(())
    }

    /// Starts the server again after it was killed, and waits until it accepts connections.
    ///
    /// # Errors
    /// If it does not start.
    pub fn restart(&self) -> anyhow::Result<()> {
        let log = self.dir.join("log");
        let mut start = unprivileged(&self.programs.join("pg_ctl"), &self.dir);
        start.args(["start", "--wait", "--silent", "--timeout=60", "--pgdata"]).arg(self.data());
        start.arg("--log").arg(&log).arg(format!("--options={}", self.options));
        start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let text = || std::fs::read_to_string(&log).unwrap_or_default();
        ensure!(start.status()?.success(), "PostgreSQL does not start again: {}", text());
        Ok(())
    }

    /// Starts a standby that receives what this server commits.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn standby(&self) -> anyhow::Result<Self> {
        Self::start(self.programs.clone(), DEFAULT_PORT, Kind::Standby(self))
    }

    /// Lets every COMMIT of this server wait for its standby, and waits until it does.
    ///
    /// # Errors
    /// If no standby is connected.
    pub fn wait_for_standby(&self) -> anyhow::Result<()> {
        self.psql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'")?;
        self.psql("postgres", "SELECT pg_reload_conf()")?;
        let in_sync = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        self.until_it_prints(in_sync, "1").context("no standby is connected")
    }

    /// Ends the connection of a standby to its server: the standby misses what the server commits from now on.
    ///
    /// # Errors
    /// If the standby refuses.
    pub fn disconnect_standby(&self) -> anyhow::Result<()> {
        self.psql("postgres", "ALTER SYSTEM SET primary_conninfo = ''")?;
        self.psql("postgres", "SELECT pg_reload_conf()")?;
        self.until_it_prints("SELECT count(*) FROM pg_stat_wal_receiver", "0")
    }

    /// Makes a standby the server that accepts writes.
    ///
    /// # Errors
    /// If it is not a standby.
    pub fn promote(&self) -> anyhow::Result<()> {
        self.psql("postgres", "SELECT pg_promote(TRUE, 60)").map(drop)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn until_it_prints(&self, sql: &str, wanted: &str) -> anyhow::Result<()> {
        let deadline = Instant::now() + LIMIT;
        while self.psql("postgres", sql)? != wanted {
            ensure!(Instant::now() < deadline, "{sql} did not return {wanted} in time");
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

/// The running processes whose working directory is this one: those of the server that has its data there.
fn processes_in(data: &Path) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| {
        let cwd = std::fs::read_link(format!("/proc/{}/cwd", pid.as_raw_pid()));
        is_running(*pid) && cwd.is_ok_and(|cwd| cwd == data)
    })
    .collect()
}

/// Whether a process exists and is not a zombie.
fn is_running(pid: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
}
