//! `plexus up`: starts the hub in the background, with its log in the data directory. Verbs that need a hub call it as well. A lock
//! ensures that of several concurrent callers one starts the hub; the hub's own lock is authoritative.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use crate::error::{ExpectedError, system};
use crate::hub::{ANSWERED_WITHIN, HubClient, JsonArg, block_on};
use crate::settings::DataDirArg;
use crate::{environment, output, systemd};

/// How long a hub may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// A larger log is rotated.
const LOG_BYTES: u64 = 16 * 1024 * 1024;
/// Environment variables that configure the hub.
const SETTINGS: [&str; 3] = ["PLEXUS_LISTEN", "PLEXUS_CLAUDE", "PLEXUS_LOG"];

/// Arguments of `plexus up`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plexus up                      start a hub, unless one is running\n  \
    plexus up --systemd            print a unit that starts it when you log in\n  \
    plexus up --systemd --install  install that unit")]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// The address to listen on [default: as `plexus serve`].
    #[arg(long)]
    pub(crate) listen: Option<SocketAddr>,
    /// The Claude Code program [default: as `plexus serve`].
    #[arg(long)]
    pub(crate) claude: Option<PathBuf>,
    /// Print a systemd user unit instead.
    #[arg(long)]
    pub(crate) systemd: bool,
    /// Install that unit where systemd finds it.
    #[arg(long, requires = "systemd")]
    pub(crate) install: bool,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Starts the hub unless it is running.
pub(crate) fn run(args: &UpArgs) -> Result<(), ExpectedError> {
    if args.systemd {
        return systemd::run(args);
    }
    let hub = HubClient::of(&args.data_dir)?;
    let began = block_on(begin(&hub, &given(args)?))?;
    let pid = pid(&hub.dir);
    if args.json.json {
        output::json(&json!({"started": matches!(began, Began::Now), "pid": pid, "data_dir": hub.dir}));
    } else if matches!(began, Began::Already) {
        let pid = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
        output::print(&format!("a hub is running in {}{pid}", hub.dir.display()));
    }
    Ok(())
}

/// The arguments of `plexus serve` besides the data directory.
pub(crate) fn given(args: &UpArgs) -> Result<Vec<String>, ExpectedError> {
    let mut words = Vec::new();
    if let Some(listen) = args.listen {
        words.extend(["--listen".to_owned(), listen.to_string()]);
    }
    if let Some(claude) = &args.claude {
        let text = claude.to_str().ok_or_else(|| ExpectedError::Usage("--claude is not UTF-8".to_owned()))?;
        words.extend(["--claude".to_owned(), text.to_owned()]);
    }
    Ok(words)
}

/// Whether this call started the hub.
pub(crate) enum Began {
    /// It was already running.
    Already,
    /// This call started it.
    Now,
}

/// Starts the hub unless it is running.
pub(crate) async fn ensure(hub: &HubClient) -> Result<(), ExpectedError> {
    begin(hub, &[]).await.map(|_| ())
}

async fn begin(hub: &HubClient, given: &[String]) -> Result<Began, ExpectedError> {
    match look(hub).await {
        Found::Answers => return Ok(Began::Already),
        Found::Silent => return Err(silent(hub)),
        Found::Absent => {}
    }
    // A process of an agent is rejected by its hub or cannot see it in its sandbox. It must not start another hub.
    if std::env::var_os(plexus_agent::SESSION_ID_VARIABLE).is_some() {
        return Err(ExpectedError::NoHub(hub.dir.clone()));
    }
    let unusable =
        |error: io::Error| ExpectedError::Settings(format!("cannot use {}: {error}", hub.dir.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(&hub.dir).map_err(unusable)?;
    let lock = private(&hub.dir.join("up.lock")).map_err(unusable)?;
    lock.lock().map_err(system)?;
    // The previous holder of the lock may have started one.
    if answers(hub).await {
        return Ok(Began::Already);
    }
    let log = hub.dir.join("hub.log");
    if log.metadata().is_ok_and(|log| log.len() > LOG_BYTES) {
        std::fs::rename(&log, hub.dir.join("hub.log.1")).map_err(system)?;
    }
    let written = log.metadata().map_or(0, |log| log.len());
    let child = spawn(&hub.dir, private(&log).map_err(unusable)?, given)?;
    let pid = child.id();
    wait_for(hub, child, &log, written).await?;
    output::say(&format!(
        "plexus: started a hub in the background (process {pid}, log in {}); `plexus down` stops it",
        log.display()
    ));
    Ok(Began::Now)
}

/// The state of a data directory.
enum Found {
    /// A hub responds.
    Answers,
    /// A hub accepts connections but does not respond: it is stopped or overloaded.
    Silent,
    /// No hub is running.
    Absent,
}

async fn look(hub: &HubClient) -> Found {
    match tokio::time::timeout(ANSWERED_WITHIN, hub.client.get("/health")).await {
        Ok(Ok(_)) => Found::Answers,
        Ok(Err(_)) => Found::Absent,
        Err(_) => Found::Silent,
    }
}

fn silent(hub: &HubClient) -> ExpectedError {
    let within = ANSWERED_WITHIN.as_secs();
    let dir = hub.dir.display();
    ExpectedError::Refused(match pid(&hub.dir) {
        Some(pid) => format!(
            "the hub in {dir} (process {pid}) has not responded within {within} s; if it was stopped, `kill -CONT {pid}` continues it"
        ),
        None => format!("the hub in {dir} has not responded within {within} s"),
    })
}

/// Whether a hub responds.
pub(crate) async fn answers(hub: &HubClient) -> bool {
    matches!(look(hub).await, Found::Answers)
}

/// The process id of the running hub, from its `hub.json`.
pub(crate) fn pid(dir: &Path) -> Option<u64> {
    let note = std::fs::read(dir.join("hub.json")).ok()?;
    serde_json::from_slice::<serde_json::Value>(&note).ok()?["pid"].as_u64()
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn spawn(dir: &Path, log: File, given: &[String]) -> Result<Child, ExpectedError> {
    let program = std::env::current_exe().map_err(system)?;
    let mut command = Command::new(program);
    command.args(["serve", "--background", "--data-dir"]).arg(dir).args(given).env_clear();
    // Agents inherit the hub's environment, so it must not depend on the shell that started the hub.
    command.envs(environment::chosen(std::env::vars_os(), &[]).map_err(system)?);
    command.envs(SETTINGS.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(system)?).stderr(log);
    command.spawn().map_err(system)
}

/// Waits until the hub responds. If it exits, the error contains the last line of its log and its exit code.
async fn wait_for(hub: &HubClient, mut child: Child, log: &Path, written: u64) -> Result<(), ExpectedError> {
    let started = Instant::now();
    loop {
        if answers(hub).await {
            return Ok(());
        }
        let ended = child.try_wait().map_err(system)?;
        // 1: another hub holds the directory and is starting or stopping.
        let code = ended.and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
        let other = ended.is_none() || code == Some(1);
        if !other || started.elapsed() > PATIENCE {
            let said = std::fs::read(log).unwrap_or_default();
            let said = said.get(usize::try_from(written).unwrap_or(usize::MAX)..).unwrap_or_default();
            let said = String::from_utf8_lossy(said);
            let last = said.lines().last().unwrap_or("it printed nothing");
            let message = format!("{last} (log: {})", log.display());
            return Err(ExpectedError::NotStarted { message, code });
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
