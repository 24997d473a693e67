//! `plexus doctor`: looks at what Plexus needs and says of each thing whether it is well, and if not, how to mend it. It
//! changes nothing and starts no hub. Each thing it looks at has a file of its own.

mod claude;
mod hub;
mod places;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cli::ServeArgs;
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::settings::{self, DataDirArg};
use crate::terminal::one_line;

/// Arguments of `plexus doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 if nothing is wrong, else with 1; notes do not count.\n\nExample:\n  plexus doctor"
)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Ok,
    /// It works, and could be better.
    Note,
    Wrong,
}

/// What was found of one thing.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

fn ok(what: &'static str, found: impl Into<String>) -> Finding {
    Finding { what, health: Health::Ok, found: found.into(), mend: None }
}

fn note(what: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding { what, health: Health::Note, found: found.into(), mend: Some(mend.into()) }
}

fn wrong(what: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding { what, health: Health::Wrong, found: found.into(), mend: Some(mend.into()) }
}

/// Looks at everything.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), ExpectedError> {
    let findings = looked(args)?;
    let ill = findings.iter().filter(|finding| finding.health == Health::Wrong).count();
    if args.json.json {
        output::json(&findings);
    } else {
        for Finding { what, health, found, mend } in &findings {
            let mark = match health {
                Health::Ok => "ok   ",
                Health::Note => "note ",
                Health::Wrong => "WRONG",
            };
            output::print(&format!("{mark}  {what:<14} {}", one_line(found, 300)));
            if let Some(mend) = mend {
                output::print(&format!("       {:<14} -> {mend}", ""));
            }
        }
    }
    match ill {
        0 => Ok(()),
        1 => Err(ExpectedError::Refused("one thing is wrong".to_owned())),
        several => Err(ExpectedError::Refused(format!("{several} things are wrong"))),
    }
}

fn looked(args: &DoctorArgs) -> Result<Vec<Finding>, ExpectedError> {
    let dir = args.data_dir.resolve()?;
    let serve = ServeArgs { listen: None, data_dir: args.data_dir.clone(), claude: None, background: false };
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let serve = ServeArgs {
        listen: given("PLEXUS_LISTEN").and_then(|listen| listen.to_str()?.parse().ok()),
        claude: given("PLEXUS_CLAUDE").map(PathBuf::from),
        ..serve
    };
    let config = match settings::config(serve) {
        Ok(config) => config,
        Err(error) => {
            return Ok(vec![wrong(
                "settings",
                error.to_string(),
                "fix plexus.toml; see docs/configuration.md",
            )]);
        }
    };
    let file = dir.join("plexus.toml");
    let settings = if file.exists() { file.display().to_string() } else { "defaults".to_owned() };
    let mut findings =
        vec![ok("settings", settings), claude::look(&config.hub.claude), places::data_dir(&dir)];
    findings.extend(places::private_files(&dir));
    findings.extend(block_on(hub::look(&HubClient::of(&args.data_dir)?, &config))?);
    findings.extend(places::sandbox(&config, &dir));
    findings.push(places::inotify());
    findings.push(places::shell());
    findings.push(places::disk(&config, &dir));
    Ok(findings)
}
