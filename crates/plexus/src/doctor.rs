//! `plexus doctor`: looks at what Plexus needs and says of each thing whether it is well, and if not, how to mend it. It
//! changes nothing and starts no hub.

use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use plexus_core::WallSetting;
use plexus_server::{Config, DataDir};
use plexus_testkit::PINNED;
use serde::Serialize;
use serde_json::Value;

use crate::cli::ServeArgs;
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::settings::{self, DataDirArg};
use crate::terminal::one_line;
use crate::{environment, output};

/// How long a program may take to say its version.
const VERSION_WITHIN: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const MIB: u64 = 1024 * 1024;

/// Arguments of `plexus doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Ends with 0 when nothing is wrong, with 1 else; what is merely worth knowing does not count.\n\nExample:\n  plexus doctor"
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
                "mend plexus.toml; see docs/configuration.md",
            )]);
        }
    };
    let file = dir.join("plexus.toml");
    let settings =
        if file.exists() { format!("{} is read", file.display()) } else { "the usual ones".to_owned() };
    let mut findings = vec![ok("settings", settings), claude(&config.claude), data_dir(&dir)];
    findings.extend(private_files(&dir));
    findings.extend(block_on(hub(&HubClient::of(&args.data_dir)?, &config))?);
    findings.push(wall(&config, &dir));
    findings.push(disk(&config, &dir));
    Ok(findings)
}

fn claude(program: &Path) -> Finding {
    let Some(path) = in_path(program) else {
        let mend = "install Claude Code, or name it with PLEXUS_CLAUDE or `claude` in plexus.toml";
        return wrong("claude", format!("there is no `{}` in PATH", program.display()), mend);
    };
    let said = match version(&path) {
        Ok(said) => said,
        Err(why) => {
            return wrong("claude", format!("{}: {why}", path.display()), "run `claude --version` by hand");
        }
    };
    let found = format!("{}: {said}", path.display());
    let number = said.split_whitespace().next().and_then(numbers);
    let [first, last] =
        [PINNED.first(), PINNED.last()].map(|version| version.and_then(|version| numbers(version)));
    let tested = PINNED.join(" and ");
    match number {
        Some(number) if Some(number) < first => {
            wrong("claude", found, format!("update it; Plexus is tested with {tested}"))
        }
        Some(number) if Some(number) > last => {
            note("claude", found, format!("newer than what Plexus is tested with ({tested})"))
        }
        Some(_) => ok("claude", found),
        None => note("claude", found, format!("no version that we know; Plexus is tested with {tested}")),
    }
}

fn in_path(program: &Path) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    if program.components().count() > 1 {
        return Some(program.to_owned()).filter(is_program);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(is_program)
}

fn version(program: &Path) -> Result<String, String> {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .env_clear()
        .envs(environment::chosen(std::env::vars_os(), &[]).unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if started.elapsed() > VERSION_WITHIN => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("does not say its version".to_owned());
            }
            None => std::thread::sleep(LOOK_AGAIN),
        }
    };
    let mut said = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        let _ = stdout.read_to_string(&mut said);
    }
    if status.success() { Ok(one_line(&said, 100)) } else { Err(format!("ended with {status}")) }
}

fn numbers(version: &str) -> Option<[u32; 3]> {
    let parts: Vec<u32> = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

fn data_dir(dir: &Path) -> Finding {
    const WHAT: &str = "data directory";
    match dir.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            ok(WHAT, format!("{} is made at the first start", dir.display()))
        }
        Err(error) => wrong(WHAT, format!("{}: {error}", dir.display()), "choose another with --data-dir"),
        Ok(found) if !found.is_dir() => {
            wrong(WHAT, format!("{} is no directory", dir.display()), "choose another with --data-dir")
        }
        Ok(found) => open_to_others(&found).map_or_else(
            || ok(WHAT, dir.display().to_string()),
            |(found, mend)| {
                wrong(WHAT, format!("{} {found}", dir.display()), format!("{mend} {}", dir.display()))
            },
        ),
    }
}

/// What is wrong with who owns something, or may get at it, and the command that mends it.
fn open_to_others(found: &Metadata) -> Option<(String, &'static str)> {
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Some(("belongs to another user".to_owned(), "sudo chown \"$USER\""));
    }
    let mode = found.mode() & 0o777;
    (mode & 0o077 != 0).then(|| (format!("is open to others (mode {mode:o})"), "chmod go="))
}

fn private_files(dir: &Path) -> impl Iterator<Item = Finding> {
    let paths = ["operator.token", "hub.sock"].map(|name| dir.join(name));
    paths.into_iter().filter_map(|path| {
        let (found, mend) = open_to_others(&path.symlink_metadata().ok()?)?;
        Some(wrong("files", format!("{} {found}", path.display()), format!("{mend} {}", path.display())))
    })
}

async fn hub(hub: &HubClient, config: &Config) -> Result<Vec<Finding>, ExpectedError> {
    let socket = DataDir::socket(&hub.dir);
    let Ok((_, health)) = hub.client.get("/health").await else {
        let port = match config.listen.port() {
            0 => ok("port", "a free one is taken"),
            _ => match std::net::TcpListener::bind(config.listen) {
                Ok(_) => ok("port", format!("{} is free", config.listen)),
                Err(error) => {
                    let mend = "set another with PLEXUS_LISTEN or `listen` in plexus.toml";
                    wrong("port", format!("{}: {error}", config.listen), mend)
                }
            },
        };
        let left =
            if socket.exists() { "none runs; one that ended badly left its socket" } else { "none runs" };
        return Ok(vec![
            note("hub", left, "`plexus up` starts one, and so does any verb that needs it"),
            port,
        ]);
    };
    let health: Value = serde_json::from_slice(&health).unwrap_or_default();
    let version = health["version"].as_str().unwrap_or("unknown");
    let mut findings = vec![if version == env!("CARGO_PKG_VERSION") {
        ok("hub", format!("runs, version {version}, and answers on {}", socket.display()))
    } else {
        let found = format!("runs, version {version}; this program is {}", env!("CARGO_PKG_VERSION"));
        note(
            "hub",
            found,
            "end it with Ctrl-C or `systemctl --user restart plexus`; its agents wait for the next one",
        )
    }];
    let note: Value = std::fs::read(hub.dir.join("hub.json"))
        .ok()
        .and_then(|note| serde_json::from_slice(&note).ok())
        .unwrap_or_default();
    let authority =
        note["url"].as_str().and_then(|url| url.strip_prefix("http://")).unwrap_or_default().to_owned();
    findings.push(match tokio::net::TcpStream::connect(&authority).await {
        Ok(_) => ok("port", format!("the hub listens on {authority}")),
        Err(error) => {
            let mend = "agents on the mcp channel cannot reach it: look into hub.log, and start it anew";
            wrong("port", format!("the hub does not answer on {authority}: {error}"), mend)
        }
    });
    Ok(findings)
}

fn wall(config: &Config, dir: &Path) -> Finding {
    let mend = "see \"The wall\" in docs/configuration.md";
    let elsewhere = if dir.is_dir() { None } else { tempfile::tempdir().ok() };
    let tried = elsewhere.as_ref().map_or(dir, |elsewhere| elsewhere.path());
    match (config.wall, plexus_agent::try_wall(tried)) {
        (WallSetting::Off, _) => {
            note("wall", "`wall` in plexus.toml is \"off\": agents can read the operator's token", mend)
        }
        (_, Ok(())) => ok("wall", "agents are kept from the data directory"),
        (WallSetting::Required, Err(why)) => {
            wrong("wall", format!("required, and this system grants none: {why}"), mend)
        }
        (WallSetting::Wanted, Err(why)) => note(
            "wall",
            format!("this system grants none, so agents can read the operator's token: {why}"),
            mend,
        ),
    }
}

fn disk(config: &Config, dir: &Path) -> Finding {
    let reserve = config.limits.reserve_bytes;
    let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    match std::fs::File::open(there).and_then(plexus_agent::free_bytes) {
        Ok(free) if free < reserve => {
            let found = format!(
                "{} MiB are free, and {} are kept for decisions: no turn begins",
                free / MIB,
                reserve / MIB
            );
            wrong("disk", found, "make room, or set `reserve_mb` under [limits] in plexus.toml")
        }
        Ok(free) if free < reserve.saturating_mul(4) => {
            note("disk", format!("{} MiB are free", free / MIB), "make room")
        }
        Ok(free) => ok("disk", format!("{} MiB are free", free / MIB)),
        Err(error) => {
            wrong("disk", format!("{}: {error}", there.display()), "choose another place with --data-dir")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(numbers("2.1.98") < numbers("2.1.197"));
        assert_eq!(numbers("2.1"), None);
        assert_eq!(numbers("two"), None);
    }

    #[test]
    fn a_claude_that_is_not_there_is_wrong_and_says_how_to_mend_it() {
        let finding = claude(Path::new("/nowhere/claude"));
        assert_eq!(finding.health, Health::Wrong);
        assert!(finding.mend.unwrap().contains("PLEXUS_CLAUDE"));
    }
}
