//! `plexus up`: starts the hub in the background, with its log in the data directory. Verbs that need a hub call it as well. A lock
//! ensures that of several concurrent callers one starts the hub; the hub's own lock is authoritative.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use plexus_core::Launcher;
use serde_json::{Value, json};

use crate::error::{ExpectedError, system};
use crate::hub::{ANSWERED_WITHIN, HubClient, JsonArg, block_on};
use crate::settings::DataDirArg;
use crate::settings::claude::launcher_parser;
use crate::terminal::one_line;
use crate::{environment, output, systemd};

/// How long a hub may take to start.
const START_WITHIN: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A larger log is rotated.
const LOG_BYTES: u64 = 16 * 1024 * 1024;
/// Environment variables that configure the hub.
const SETTINGS: [&str; 6] = [
    "PLEXUS_LISTEN",
    "PLEXUS_CLAUDE",
    "PLEXUS_LOG",
    "PLEXUS_STORE",
    "PLEXUS_STORE_PASSWORD_FILE",
    "PGPASSFILE",
];

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
    /// The Claude Code program, or a JSON array of a program and its first arguments [default: as `plexus serve`].
    #[arg(long, value_name = "COMMAND", value_parser = launcher_parser())]
    pub(crate) claude: Option<Launcher>,
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
    let outcome = block_on(start(&hub, &serve_args(args)?))?;
    if matches!(outcome, StartOutcome::AlreadyRunning) {
        check_settings(&hub, args)?;
    }
    let pid = pid(&hub.dir);
    if args.json.json {
        output::json(
            &json!({"started": matches!(outcome, StartOutcome::Started), "pid": pid, "data_dir": hub.dir}),
        );
    } else if matches!(outcome, StartOutcome::AlreadyRunning) {
        output::print(&format!("a hub is running in {}{}", hub.dir.display(), process(pid)));
    }
    Ok(())
}

fn process(pid: Option<u64>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// An error if the flags ask for other settings than those of the running hub, which keeps its own. Variables of the shell only cause a
/// warning, because they are often set for every command.
fn check_settings(hub: &HubClient, args: &UpArgs) -> Result<(), ExpectedError> {
    let announced = announced(&hub.dir);
    let flags = differences(&announced, args.listen, args.claude.as_ref())?;
    let keeps = format!(
        "the hub that is running in {}{} keeps its own settings",
        hub.dir.display(),
        process(announced["pid"].as_u64())
    );
    let restart = "to change them, stop it and its agents with `plexus down` and run this command again";
    if !flags.is_empty() {
        return Err(ExpectedError::Refused(format!("{keeps}: {}; {restart}", flags.join(", and "))));
    }
    let listen = std::env::var("PLEXUS_LISTEN").ok().and_then(|listen| listen.parse().ok());
    let claude = std::env::var_os("PLEXUS_CLAUDE").and_then(|claude| Launcher::parse(claude).ok());
    // A flag takes precedence over its variable.
    let listen = listen.filter(|_| args.listen.is_none());
    let claude = claude.filter(|_| args.claude.is_none());
    let variables = differences(&announced, listen, claude.as_ref())?;
    if !variables.is_empty() {
        let variables = variables.join(", and ");
        output::say(&format!("plexus: warning: {keeps}: {variables}, as in the environment; {restart}"));
    }
    Ok(())
}

/// What differs in the running hub.
fn differences(
    announced: &Value,
    listen: Option<SocketAddr>,
    claude: Option<&Launcher>,
) -> Result<Vec<String>, ExpectedError> {
    let mut differences = Vec::new();
    if let Some(wanted) = listen {
        let url = announced["url"].as_str().unwrap_or_default();
        let address = url.strip_prefix("http://").unwrap_or(url);
        // Port 0 stands for any port.
        let same = address.parse::<SocketAddr>().is_ok_and(|address| {
            address.ip() == wanted.ip() && (wanted.port() == 0 || address.port() == wanted.port())
        });
        if !same {
            differences.push(format!("it listens on {}, not on {wanted}", one_line(address, 60)));
        }
    }
    if let Some(wanted) = claude {
        let wanted = wanted.clone().located().map_err(system)?;
        let running = serde_json::from_value::<Launcher>(announced["claude"].clone()).ok();
        if running.as_ref() != Some(&wanted) {
            let running = running.map_or("unknown".to_owned(), |running| running.to_setting());
            let [running, wanted] = [running, wanted.to_setting()].map(|text| one_line(&text, 200));
            differences.push(format!("its --claude is `{running}`, not `{wanted}`"));
        }
    }
    Ok(differences)
}

/// The arguments of `plexus serve` besides the data directory.
pub(crate) fn serve_args(args: &UpArgs) -> Result<Vec<String>, ExpectedError> {
    let mut words = Vec::new();
    if let Some(listen) = args.listen {
        words.extend(["--listen".to_owned(), listen.to_string()]);
    }
    if let Some(claude) = &args.claude {
        if claude.program().to_str().is_none() {
            return Err(ExpectedError::Usage("--claude is not UTF-8".to_owned()));
        }
        // The hub may start in another directory.
        let claude = claude.clone().located().map_err(system)?;
        words.extend(["--claude".to_owned(), claude.to_setting()]);
    }
    Ok(words)
}

/// Whether this call started the hub.
pub(crate) enum StartOutcome {
    /// It was already running.
    AlreadyRunning,
    /// This call started it.
    Started,
}

/// Starts the hub unless it is running.
pub(crate) async fn ensure(hub: &HubClient) -> Result<(), ExpectedError> {
    start(hub, &[]).await.map(|_| ())
}

async fn start(hub: &HubClient, serve_args: &[String]) -> Result<StartOutcome, ExpectedError> {
    match probe(hub).await {
        HubState::Responding => return Ok(StartOutcome::AlreadyRunning),
        HubState::Silent => return Err(silent_error(hub)),
        HubState::Absent => {}
    }
    // A process of an agent is rejected by its hub or cannot see it in its sandbox. It must not start another hub.
    if std::env::var_os(plexus_agent::SESSION_ID_VARIABLE).is_some() {
        return Err(ExpectedError::NoHub(hub.dir.clone()));
    }
    let unusable = |error: io::Error| ExpectedError::DataDir { dir: hub.dir.clone(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(&hub.dir).map_err(unusable)?;
    let lock = private(&hub.dir.join("up.lock")).map_err(unusable)?;
    lock.lock().map_err(system)?;
    // The previous holder of the lock may have started one.
    if is_responding(hub).await {
        return Ok(StartOutcome::AlreadyRunning);
    }
    let log = hub.dir.join("hub.log");
    if log.metadata().is_ok_and(|log| log.len() > LOG_BYTES) {
        std::fs::rename(&log, hub.dir.join("hub.log.1")).map_err(system)?;
    }
    let written = log.metadata().map_or(0, |log| log.len());
    let child = spawn(&hub.dir, private(&log).map_err(unusable)?, serve_args)?;
    let pid = child.id();
    wait_for(hub, child, &log, written).await?;
    output::say(&format!(
        "plexus: started a hub in the background (process {pid}, log in {}); `plexus down` stops it",
        log.display()
    ));
    Ok(StartOutcome::Started)
}

/// The state of a data directory.
enum HubState {
    /// A hub responds.
    Responding,
    /// A hub accepts connections but does not respond: it is stopped or overloaded.
    Silent,
    /// No hub is running.
    Absent,
}

async fn probe(hub: &HubClient) -> HubState {
    match tokio::time::timeout(ANSWERED_WITHIN, hub.client.get("/health")).await {
        Ok(Ok(_)) => HubState::Responding,
        Ok(Err(_)) => HubState::Absent,
        Err(_) => HubState::Silent,
    }
}

fn silent_error(hub: &HubClient) -> ExpectedError {
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
pub(crate) async fn is_responding(hub: &HubClient) -> bool {
    matches!(probe(hub).await, HubState::Responding)
}

/// The process id of the running hub, from its `hub.json`.
pub(crate) fn pid(dir: &Path) -> Option<u64> {
    announced(dir)["pid"].as_u64()
}

/// The `hub.json` that the hub of this directory wrote at its start; null if there is none.
pub(crate) fn announced(dir: &Path) -> Value {
    let note = std::fs::read(dir.join("hub.json")).ok();
    note.and_then(|note| serde_json::from_slice(&note).ok()).unwrap_or_default()
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn spawn(dir: &Path, log: File, serve_args: &[String]) -> Result<Child, ExpectedError> {
    let program = std::env::current_exe().map_err(system)?;
    let mut command = Command::new(program);
    command.args(["serve", "--background", "--data-dir"]).arg(dir).args(serve_args).env_clear();
    // Agents inherit the hub's environment, so it must not depend on the shell that started the hub.
    command.envs(environment::chosen(std::env::vars_os(), &[]).map_err(system)?);
    command.envs(SETTINGS.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(system)?).stderr(log);
    command.spawn().map_err(system)
}

/// The last message of a log: from the last line that starts with the name of the program, because an error may have several
/// lines; otherwise the last line that is not blank.
fn last_message(log: &str) -> String {
    let lines: Vec<&str> = log.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    // The program that reports it has the same name.
    let from = lines.iter().rposition(|line| line.starts_with("plexus: ")).or(lines.len().checked_sub(1));
    let Some(from) = from else { return "it printed nothing".to_owned() };
    let message = lines[from..].join("\n");
    message.strip_prefix("plexus: ").map_or(message.clone(), str::to_owned)
}

/// Waits until the hub responds. If it exits, the error contains the last message of its log and its exit code.
async fn wait_for(hub: &HubClient, mut child: Child, log: &Path, written: u64) -> Result<(), ExpectedError> {
    let started = Instant::now();
    loop {
        if is_responding(hub).await {
            return Ok(());
        }
        let ended = child.try_wait().map_err(system)?;
        // 1: another hub holds the directory and is starting or stopping.
        let code = ended.and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
        let other = ended.is_none() || code == Some(1);
        if !other || started.elapsed() > START_WITHIN {
            let log_text = std::fs::read(log).unwrap_or_default();
            let log_text = log_text.get(usize::try_from(written).unwrap_or(usize::MAX)..).unwrap_or_default();
            let log_text = String::from_utf8_lossy(log_text);
            let message = format!("{} (log: {})", last_message(&log_text), log.display());
            return Err(ExpectedError::NotStarted { message, code });
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_of_a_log_may_have_several_lines() {
        let log =
            "started\nplexus: plexus.toml: TOML parse error\n  |\n1 | lisen = 1\nunknown field `lisen`\n\n";
        let message = last_message(log);
        assert!(
            message.starts_with("plexus.toml: TOML") && message.ends_with("unknown field `lisen`"),
            "{message}"
        );
        assert_eq!(last_message("one\ntwo\n\n"), "two");
        assert_eq!(last_message("\n"), "it printed nothing");
    }
}
