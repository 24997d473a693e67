//! A hub as a process: the real binary with a cleared environment. Tests can kill and restart it. Dropping it ends the hub and its children.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

/// The time limit for a hub to be ready, and to exit.
const LIMIT: Duration = Duration::from_secs(20);
const READY: &str = "plexus listening on ";

/// The options of a hub.
#[derive(Debug, Clone, Default)]
pub struct HubOptions {
    /// Its data directory.
    pub data_dir: PathBuf,
    /// The agent it starts, as the value of `--claude`: a pinned CLI, the scripted agent, or a JSON array.
    pub claude: PathBuf,
    /// Additional arguments of `plexus serve`.
    pub extra_args: Vec<String>,
    /// Its complete environment. `PATH` is added if it is missing. If `HOME` is missing, it is the directory that contains the data directory.
    pub env: Vec<(String, String)>,
}

/// A running hub, or a killed one that can be started again.
#[derive(Debug)]
pub struct HubProcess {
    options: HubOptions,
    program: PathBuf,
    url: String,
    child: Child,
    pid: u32,
    stderr: Arc<Mutex<String>>,
}

impl HubProcess {
    /// Starts a hub on a free port and waits until it is ready.
    ///
    /// # Errors
    /// If it cannot be started or is not ready in 20 s. The message contains its stderr.
    pub async fn start(options: HubOptions) -> anyhow::Result<Self> {
        Self::start_program(crate::binaries::plexus()?, options).await
    }

    /// Starts a hub with a program that starts `plexus`.
    ///
    /// # Errors
    /// As [`HubProcess::start`].
    pub async fn start_program(program: PathBuf, options: HubOptions) -> anyhow::Result<Self> {
        let stderr = Arc::new(Mutex::new(String::new()));
        let mut child = serve(&program, &options)?;
        let pid = child.id().context("the hub has no pid")?;
        match ready(&mut child, &stderr).await {
            Ok(url) => Ok(Self { options, program, url, child, pid, stderr }),
            Err(error) => {
                // It may still run.
                let _ = child.kill().await;
                bail!("{error}; its stderr:\n{}", stderr.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }

    /// Its address: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The operator's token.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn token(&self) -> anyhow::Result<String> {
        let path = self.options.data_dir.join("operator.token");
        let token = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(token.trim().to_owned())
    }

    /// The pid of its process, even after its exit.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.options.data_dir
    }

    /// Sets a variable of its environment for the next start.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.options.env.retain(|(known, _)| known != name);
        self.options.env.push((name.to_owned(), value.to_owned()));
    }

    /// Its stderr since its last start.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Kills it with SIGKILL, like a crash.
    ///
    /// # Errors
    /// If it has already exited.
    pub async fn kill9(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("kill -9")
    }

    /// Stops it with SIGTERM and waits for its exit.
    ///
    /// # Errors
    /// If it has already exited, or does not exit in 20 s.
    pub async fn terminate(&mut self) -> anyhow::Result<ExitStatus> {
        // Tokio returns no id after it has reaped the process, so the pid cannot belong to another process.
        let pid =
            self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).context("the hub has ended")?;
        kill_process(pid, Signal::TERM)?;
        self.wait().await
    }

    /// Stops it and its children with `plexus down`. Dropping it does the same, but waits only 20 s, which is too short for a thousand
    /// children.
    ///
    /// # Errors
    /// If that fails, or takes longer than `limit`.
    pub async fn down(&mut self, limit: Duration) -> anyhow::Result<()> {
        let mut down = Command::from(command(&self.program, &self.options, "down"));
        let down = down.stdin(Stdio::null()).kill_on_drop(true).status();
        let status = tokio::time::timeout(limit, down).await.context("`plexus down` takes too long")??;
        anyhow::ensure!(status.success(), "`plexus down` failed: {status}");
        Ok(())
    }

    /// Waits until it exits by itself.
    ///
    /// # Errors
    /// If it does not exit in 20 s.
    pub async fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        let ended = tokio::time::timeout(LIMIT, self.child.wait()).await;
        Ok(ended.map_err(|_| anyhow!("the hub does not end; its stderr:\n{}", self.stderr()))??)
    }

    /// Starts it again on the same data directory. A running hub is terminated first.
    ///
    /// # Errors
    /// As [`HubProcess::start`] and [`HubProcess::terminate`].
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        if self.child.id().is_some() {
            self.terminate().await?;
        }
        self.child = serve(&self.program, &self.options)?;
        self.pid = self.child.id().context("the hub has no pid")?;
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.url = ready(&mut self.child, &self.stderr)
            .await
            .map_err(|e| anyhow!("{e}; its stderr:\n{}", self.stderr()))?;
        Ok(())
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        // `down` also stops the children. Killing the hub would leave them at the gate.
        let down = command(&self.program, &self.options, "down").stdin(Stdio::null()).spawn();
        if let Ok(mut down) = down {
            let ended = Pid::from_raw(down.id().cast_signed()).is_some_and(|pid| wait_for_end(pid, LIMIT));
            if !ended {
                let _ = down.kill();
            }
            let _ = down.wait();
        }
        let _ = self.child.start_kill();
    }
}

/// Waits for the exit of a process that has not been reaped, without an async runtime.
fn wait_for_end(pid: Pid, limit: Duration) -> bool {
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let limit = Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: limit.subsec_nanos().into() };
    // Other children of the test may exit meanwhile, and their signals interrupt the wait.
    let ended = retry_on_intr(|| poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)));
    matches!(ended, Ok(1))
}

fn command(program: &Path, options: &HubOptions, verb: &str) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.arg(verb).arg("--data-dir").arg(&options.data_dir).env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    if let Some(home) = options.data_dir.parent() {
        command.env("HOME", home);
    }
    command.envs(options.env.iter().map(|(name, value)| (name, value)));
    command
}

fn serve(program: &Path, options: &HubOptions) -> anyhow::Result<Child> {
    let mut command = Command::from(command(program, options, "serve"));
    command.args(["--listen", "127.0.0.1:0"]).arg("--claude").arg(&options.claude).args(&options.extra_args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().with_context(|| program.display().to_string())
}

/// Reads the hub's output until the hub exits. Returns when the output contains the address.
async fn ready(child: &mut Child, stderr: &Arc<Mutex<String>>) -> anyhow::Result<String> {
    let stdout = child.stdout.take().context("no stdout")?;
    let errors = child.stderr.take().context("no stderr")?;
    let kept = Arc::clone(stderr);
    let errors = tokio::spawn(async move {
        let mut lines = BufReader::new(errors).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_str(&line);
            kept.push('\n');
        }
    });
    let (tell, told) = oneshot::channel();
    tokio::spawn(async move {
        let mut tell = Some(tell);
        let mut lines = BufReader::new(stdout).lines();
        // Reading continues after the ready line, so that the hub never writes to a closed pipe.
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(url) = line.strip_prefix(READY)
                && let Some(tell) = tell.take()
            {
                let _ = tell.send(url.trim().to_owned());
            }
        }
    });
    match tokio::time::timeout(LIMIT, told).await {
        Ok(Ok(url)) => Ok(url),
        Ok(Err(_)) => {
            // The hub has closed its output, so it is exiting. Its stderr still has to be read.
            let _ = tokio::time::timeout(LIMIT, errors).await;
            let status = tokio::time::timeout(LIMIT, child.wait()).await??;
            bail!("the hub ended before it was ready ({status})")
        }
        Err(_) => bail!("the hub was not ready in {LIMIT:?}"),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    /// A shell script in place of the hub's binary. It logs its calls of `serve` and `down`.
    fn program(dir: &Path, serve: &str) -> PathBuf {
        let path = dir.join("plexus");
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> {dir}/calls\nenv | cut -d= -f1 | sort > {dir}/env.$1\n\
             case $1 in serve) {serve};; esac\n",
            dir = dir.display()
        );
        crate::executable::write(&path, &script).unwrap();
        path
    }

    fn options(dir: &Path) -> HubOptions {
        let data_dir = dir.join("data");
        std::fs::create_dir_all(&data_dir).unwrap();
        std::fs::write(data_dir.join("operator.token"), "secret\n").unwrap();
        HubOptions {
            data_dir,
            claude: "/agent".into(),
            extra_args: vec!["--extra".into()],
            env: vec![("ONE".into(), "1".into())],
        }
    }

    const GOOD: &str =
        "echo starting; echo plexus listening on http://127.0.0.1:1; echo a word >&2; exec sleep 1000";

    #[tokio::test]
    async fn a_hub_is_started_killed_restarted_and_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let mut hub =
            HubProcess::start_program(program(dir.path(), GOOD), options(dir.path())).await.unwrap();
        assert_eq!(hub.url(), "http://127.0.0.1:1");
        assert_eq!(hub.token().unwrap(), "secret");
        let first = hub.pid();
        hub.kill9().await.unwrap();
        assert!(hub.terminate().await.is_err(), "it has ended");
        hub.restart().await.unwrap();
        assert_ne!(hub.pid(), first);
        let status = hub.terminate().await.unwrap();
        assert!(!status.success());
        let data = hub.data_dir().display().to_string();
        drop(hub);

        let calls = std::fs::read_to_string(dir.path().join("calls")).unwrap();
        let serve = format!("serve --data-dir {data} --listen 127.0.0.1:0 --claude /agent --extra\n");
        assert_eq!(calls, format!("{serve}{serve}down --data-dir {data}\n"));
        let env = std::fs::read_to_string(dir.path().join("env.serve")).unwrap();
        let names: Vec<_> =
            env.lines().filter(|name| !matches!(*name, "PWD" | "SHLVL" | "_" | "OLDPWD")).collect();
        assert_eq!(names, ["HOME", "ONE", "PATH"]);
    }

    #[tokio::test]
    async fn a_hub_that_exits_early_is_an_error_with_its_stderr() {
        let dir = tempfile::tempdir().unwrap();
        let program = program(dir.path(), "echo the port is taken >&2; exit 1");
        let error = HubProcess::start_program(program, options(dir.path())).await.unwrap_err();
        assert!(error.to_string().contains("the port is taken"), "{error}");
    }

    #[tokio::test]
    async fn a_dropped_hub_is_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let hub = HubProcess::start_program(program(dir.path(), GOOD), options(dir.path())).await.unwrap();
        let pid = Pid::from_raw(hub.pid().cast_signed()).unwrap();
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        drop(hub);
        let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)), Ok(1));
    }
}
