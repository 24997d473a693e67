//! `plexus doctor`: checks what Plexus needs and says how to fix what is wrong. It changes nothing and starts no hub. Each group of
//! checks has a file of its own.

mod claude;
mod hub;
mod login;
mod namespaces;
mod system;

use clap::Args;
use plexus_core::Launcher;
use serde::Serialize;

use crate::cli::ServeArgs;
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::plural::counted;
use crate::settings::{self, DataDirArg, StoreArgs};
use crate::terminal::one_line;
use claude::ChosenBy;
use hub::RunningHub;

/// Arguments of `plexus doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 if all checks pass, otherwise with 1. Notes are not failures.\n\nExample:\n  plexus doctor"
)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Ok,
    /// It works, but could be better.
    Note,
    #[serde(rename = "wrong")]
    Problem,
}

/// One check: what was examined, the result, and how to fix it.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// The earlier name of `fix`, for scripts.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

impl Finding {
    fn new(what: &'static str, health: Health, found: String, fix: Option<String>) -> Self {
        Self { what, health, found, mend: fix.clone(), fix }
    }
}

fn ok(what: &'static str, found: impl Into<String>) -> Finding {
    Finding::new(what, Health::Ok, found.into(), None)
}

fn note(what: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding::new(what, Health::Note, found.into(), Some(fix.into()))
}

fn problem(what: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding::new(what, Health::Problem, found.into(), Some(fix.into()))
}

/// Runs all checks.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), ExpectedError> {
    let findings = check_all(args)?;
    let problems = findings.iter().filter(|finding| finding.health == Health::Problem).count();
    if args.json.json {
        output::json(&findings);
    } else {
        for Finding { what, health, found, fix, .. } in &findings {
            let mark = match health {
                Health::Ok => "ok   ",
                Health::Note => "note ",
                Health::Problem => "WRONG",
            };
            output::print(&format!("{mark}  {what:<14} {}", one_line(found, 300)));
            if let Some(fix) = fix {
                output::print(&format!("       {:<14} -> {fix}", ""));
            }
        }
    }
    match problems {
        0 => Ok(()),
        some => Err(ExpectedError::Refused(format!("{} failed", counted(some, "check", "checks")))),
    }
}

fn check_all(args: &DoctorArgs) -> Result<Vec<Finding>, ExpectedError> {
    let dir = args.data_dir.resolve()?;
    let serve = ServeArgs {
        listen: None,
        data_dir: args.data_dir.clone(),
        store: StoreArgs::from_environment(),
        claude: None,
        background: false,
    };
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let unusable = |why: String| {
        vec![problem("settings", why, "fix plexus.toml or the variable; see docs/configuration.md")]
    };
    let claude = match given("PLEXUS_CLAUDE").map(Launcher::parse).transpose() {
        Ok(claude) => claude,
        Err(error) => return Ok(unusable(format!("PLEXUS_CLAUDE is not a command: {error}"))),
    };
    let serve = ServeArgs {
        listen: given("PLEXUS_LISTEN").and_then(|listen| listen.to_str()?.parse().ok()),
        claude,
        ..serve
    };
    let config = match settings::config(serve) {
        Ok(config) => config,
        Err(error) => return Ok(unusable(error.to_string())),
    };
    let file = dir.join("plexus.toml");
    let settings = if file.exists() { file.display().to_string() } else { "defaults".to_owned() };
    let hub = HubClient::of(&args.data_dir)?;
    let running = block_on(async { Ok(RunningHub::of(&hub).await) })?;
    let claude = match running.as_ref().and_then(RunningHub::claude) {
        Some(launcher) => claude::check(&launcher, ChosenBy::RunningHub),
        None => claude::check(&config.hub.claude, ChosenBy::Settings),
    };
    let login = login::check(|name| std::env::var_os(name), config.hub.user_settings.as_deref());
    let mut findings = vec![ok("settings", settings), claude, login, system::data_dir(&dir)];
    findings.extend(system::private_files(&dir));
    findings.extend(block_on(async { Ok(hub::check(&hub, running.as_ref(), &config).await) })?);
    findings.extend(system::sandbox(&config, &dir));
    findings.push(system::inotify());
    findings.push(system::shell());
    findings.push(system::disk(&config, &dir));
    Ok(findings)
}
