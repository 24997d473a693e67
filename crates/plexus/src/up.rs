//! `plexus up`: the hub in the background, with its log in the data directory. Verbs that need a hub come here as well. Of
//! several at once one starts it: they take turns at a lock, and the hub's own lock has the last word.

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

/// How long a hub may take to be there.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// A log that has grown larger makes room for a new one.
const LOG_BYTES: u64 = 16 * 1024 * 1024;
/// Settings of the hub that may stand in the environment of whoever starts it.
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

/// Starts the hub, unless it runs.
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

/// What `plexus serve` is given besides the data directory.
pub(crate) fn given(args: &UpArgs) -> Result<Vec<String>, ExpectedError> {
    let mut words = Vec::new();
    if let Some(listen) = args.listen {
        words.extend(["--listen".to_owned(), listen.to_string()]);
    }
    if let Some(claude) = &args.claude {
        let text = claude.to_str().ok_or_else(|| ExpectedError::Usage("--claude is no text".to_owned()))?;
        words.extend(["--claude".to_owned(), text.to_owned()]);
    }
    Ok(words)
}

/// How a hub came to be there.
pub(crate) enum Began {
    /// It was there.
    Already,
    /// It was started.
    Now,
}

/// Sees to it that a hub is there.
pub(crate) async fn ensure(hub: &HubClient) -> Result<(), ExpectedError> {
    begin(hub, &[]).await.map(|_| ())
}

async fn begin(hub: &HubClient, given: &[String]) -> Result<Began, ExpectedError> {
    match look(hub).await {
        Found::Answers => return Ok(Began::Already),
        Found::Silent => return Err(silent(hub)),
        Found::Absent => {}
    }
    // What stems from an agent is turned away by its hub, or finds none behind its wall: that is no reason for another.
    if std::env::var_os(plexus_agent::SESSION_ID_VARIABLE).is_some() {
        return Err(ExpectedError::NoHub(hub.dir.clone()));
    }
    let unusable =
        |error: io::Error| ExpectedError::Settings(format!("cannot use {}: {error}", hub.dir.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(&hub.dir).map_err(unusable)?;
    let lock = private(&hub.dir.join("up.lock")).map_err(unusable)?;
    lock.lock().map_err(system)?;
    // Whoever had the lock before has started one.
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
        "plexus: started a hub in the background (process {pid}, log in {}); `plexus down` ends it",
        log.display()
    ));
    Ok(Began::Now)
}

/// What there is in a data directory.
enum Found {
    /// A hub that answers.
    Answers,
    /// One that takes connections and does not answer: stopped, or overloaded.
    Silent,
    /// None.
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

/// Whether a hub answers.
pub(crate) async fn answers(hub: &HubClient) -> bool {
    matches!(look(hub).await, Found::Answers)
}

/// The process that the running hub has noted.
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
    // The hub's environment is that of its agents: it is not to depend on which shell came first.
    command.envs(environment::chosen(std::env::vars_os(), &[]).map_err(system)?);
    command.envs(SETTINGS.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(system)?).stderr(log);
    command.spawn().map_err(system)
}

/// Waits until the hub answers; one that ends before is told with its last words.
async fn wait_for(hub: &HubClient, mut child: Child, log: &Path, written: u64) -> Result<(), ExpectedError> {
    let started = Instant::now();
    loop {
        if answers(hub).await {
            return Ok(());
        }
        let ended = child.try_wait().map_err(system)?;
        // 1: another hub has the directory, and is just coming or going.
        let other = ended.is_none_or(|status| status.code() == Some(1));
        if !other || started.elapsed() > PATIENCE {
            let said = std::fs::read(log).unwrap_or_default();
            let said = said.get(usize::try_from(written).unwrap_or(usize::MAX)..).unwrap_or_default();
            let said = String::from_utf8_lossy(said);
            let last = said.lines().last().unwrap_or("it said nothing");
            let message = format!("the hub did not start: {last} (its log is {})", log.display());
            return Err(ExpectedError::Refused(message));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
