//! The settings of a hub. A flag overrides the environment, which overrides `DIR/plexus.toml`, which overrides the defaults.

pub(crate) mod claude;
mod console;
mod doors;
mod notify;
mod store;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use plexus_core::{ChildMcp, Launcher, Limits, Retention, SandboxSetting, Settings, Tracing, check_person};
use plexus_protocol::claudecode::Person;
use plexus_server::{Config, DataDir, ServeError, StoreSetting};
use plexus_store::Durability;
use serde::Deserialize;

use crate::cli::ServeArgs;
use crate::error::{ExpectedError, system};
use console::ConsoleTable;
use doors::DoorsTable;
use notify::NotifyTable;
use store::StoreTable;

pub(crate) use store::{StoreArgs, StoreUrl};

/// The data directory of a hub.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DataDirArg {
    /// The data directory of the hub [default: the platform's data directory, such as ~/.local/share/plexus].
    #[arg(long, env = "PLEXUS_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

impl DataDirArg {
    /// The absolute path of the directory, checked so that no agent can replace a part of it.
    pub(crate) fn resolve(&self) -> Result<PathBuf, ExpectedError> {
        let dir = match &self.data_dir {
            Some(dir) => dir.clone(),
            None => directories::ProjectDirs::from("", "", "plexus")
                .map(|dirs| dirs.data_dir().to_owned())
                .ok_or_else(|| {
                ExpectedError::Settings("no home directory was found; use --data-dir".to_owned())
            })?,
        };
        let dir = std::path::absolute(&dir).map_err(system)?;
        DataDir::check_path(&dir).map_err(ServeError::from)?;
        Ok(dir)
    }
}

/// `DIR/plexus.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<SocketAddr>,
    claude: Option<Launcher>,
    worktrees_dir: Option<PathBuf>,
    clean_env: bool,
    session_env: Vec<String>,
    user_settings: Option<bool>,
    #[serde(rename = "wall")]
    sandbox: SandboxName,
    tracing: Tracing,
    child_mcp: ChildMcpName,
    progress_secs: Option<f64>,
    sse_retry_ms: Option<u64>,
    initialize_secs: Option<f64>,
    idle_secs: Option<f64>,
    orphan_secs: Option<f64>,
    stalled_secs: Option<f64>,
    escalate_after_secs: Option<u64>,
    present_secs: Option<f64>,
    durability: DurabilityName,
    limits: LimitsTable,
    doors: DoorsTable,
    retention: RetentionTable,
    audit: AuditTable,
    git: GitTable,
    notify: NotifyTable,
    console: ConsoleTable,
    store: StoreTable,
}

const MIB: u64 = 1024 * 1024;

/// `[limits]`.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsTable {
    sessions: Option<usize>,
    depth: Option<usize>,
    descendants: Option<usize>,
    open_approvals: Option<usize>,
    open_approvals_mb: Option<usize>,
    open_approvals_per_session: Option<usize>,
    asks_per_minute: Option<u32>,
    event_kb: Option<usize>,
    journal_mb: Option<u64>,
    reserve_mb: Option<u64>,
}

impl LimitsTable {
    fn limits(self) -> Result<Limits, ExpectedError> {
        let usual = Limits::default();
        Ok(Limits {
            sessions: at_least_one("sessions", self.sessions, usual.sessions)?,
            // 0 is valid: no session may have children.
            depth: self.depth.unwrap_or(usual.depth),
            descendants: self.descendants.unwrap_or(usual.descendants),
            open_approvals: at_least_one("open_approvals", self.open_approvals, usual.open_approvals)?,
            open_approvals_bytes: at_least_one(
                "open_approvals_mb",
                self.open_approvals_mb,
                usual.open_approvals_bytes / MIB as usize,
            )?
            .saturating_mul(MIB as usize),
            open_approvals_per_session: at_least_one(
                "open_approvals_per_session",
                self.open_approvals_per_session,
                usual.open_approvals_per_session,
            )?,
            asks_per_minute: at_least_one("asks_per_minute", self.asks_per_minute, usual.asks_per_minute)?,
            event_bytes: at_least_one("event_kb", self.event_kb, usual.event_bytes / 1024)?
                .saturating_mul(1024),
            journal_bytes: at_least_one("journal_mb", self.journal_mb, usual.journal_bytes / MIB)?
                .saturating_mul(MIB),
            // 0 is valid: nothing is reserved.
            reserve_bytes: self.reserve_mb.unwrap_or(usual.reserve_bytes / MIB).saturating_mul(MIB),
        })
    }
}

/// `[retention]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetentionTable {
    every_secs: Option<f64>,
    run_files_days: Option<f64>,
    run_files_mb: Option<u64>,
    events_days: Option<f64>,
    decisions_days: Option<f64>,
}

impl RetentionTable {
    fn retention(&self) -> Result<Retention, ExpectedError> {
        let usual = Retention::default();
        Ok(Retention {
            every: seconds("every_secs", self.every_secs, usual.every.as_secs_f64())?,
            run_files_for: days("run_files_days", self.run_files_days, usual.run_files_for)?,
            run_files_bytes: match self.run_files_mb {
                Some(0) => None,
                Some(mb) => Some(mb.saturating_mul(MIB)),
                None => usual.run_files_bytes,
            },
            events_for: days("events_days", self.events_days, usual.events_for)?,
            decisions_for: days("decisions_days", self.decisions_days, usual.decisions_for)?,
        })
    }
}

/// `[audit]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AuditTable {
    head_file: Option<PathBuf>,
    head_webhook: Option<String>,
}

/// `[git]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GitTable {
    name: Option<String>,
    email: Option<String>,
}

impl GitTable {
    fn author(self) -> Result<Option<Person>, ExpectedError> {
        let wrong = |why: &str| ExpectedError::Settings(format!("[git] in plexus.toml: {why}"));
        match (self.name, self.email) {
            (None, None) => Ok(None),
            (Some(name), Some(email)) => {
                let person = Person { name, email };
                check_person(&person).map_err(|why| wrong(&why))?;
                Ok(Some(person))
            }
            _ => Err(wrong("set both `name` and `email`")),
        }
    }
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChildMcpName {
    #[default]
    Relay,
    Http,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SandboxName {
    #[default]
    Wanted,
    Required,
    Off,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DurabilityName {
    #[default]
    Full,
    Normal,
}

/// Where `plexus serve` with these arguments stores the state of a data directory.
pub(crate) fn store(data_dir: &Path, args: StoreArgs) -> Result<StoreSetting, ExpectedError> {
    read(&data_dir.join("plexus.toml"))?.store.setting(args, pgpass())
}

/// The whole configuration of `plexus serve`.
pub(crate) fn config(args: ServeArgs) -> Result<Config, ExpectedError> {
    let data_dir = args.data_dir.resolve()?;
    let file = read(&data_dir.join("plexus.toml"))?;
    let Config { hub: usual, listen, .. } = Config::defaults(data_dir.clone()).map_err(system)?;
    let of = |key, given, usual: Duration| seconds(key, given, usual.as_secs_f64());
    let console = file.console.checked()?;
    let users = match file.clean_env || file.user_settings == Some(false) {
        true => None,
        false => users_own(),
    };
    Ok(Config {
        allowed_hosts: console.allowed_hosts,
        tls: console.tls,
        listen: args.listen.or(file.listen).unwrap_or(listen),
        store: file.store.setting(args.store, pgpass())?,
        durability: match file.durability {
            DurabilityName::Full => Durability::Full,
            DurabilityName::Normal => Durability::Normal,
        },
        doors: file.doors.limits()?,
        head_webhook: file.audit.head_webhook.map(webhook).transpose()?,
        hub: Settings {
            claude: claude::chosen(args.claude.or(file.claude).unwrap_or(usual.claude))?,
            worktrees_dir: file.worktrees_dir.map(|dir| apart(dir, &data_dir)).transpose()?,
            plexus: usual.plexus,
            home: usual.home,
            clean_env: file.clean_env,
            session_env: file.session_env,
            user_settings: users.as_ref().map(|users| users.settings.clone()),
            user_state: users.map(|users| users.state),
            hubs_list: hubs_list(),
            sandbox: match file.sandbox {
                SandboxName::Wanted => SandboxSetting::Wanted,
                SandboxName::Required => SandboxSetting::Required,
                SandboxName::Off => SandboxSetting::Off,
            },
            tracing: file.tracing,
            child_mcp: match file.child_mcp {
                ChildMcpName::Relay => ChildMcp::Relay,
                ChildMcpName::Http => ChildMcp::Http,
            },
            progress_every: of("progress_secs", file.progress_secs, usual.progress_every)?,
            sse_retry: file.sse_retry_ms.map_or(usual.sse_retry, Duration::from_millis),
            initialize_within: of("initialize_secs", file.initialize_secs, usual.initialize_within)?,
            idle_after: match file.idle_secs {
                None => usual.idle_after,
                Some(0.0) => None,
                given => Some(seconds("idle_secs", given, 0.0)?),
            },
            orphan_after: match file.orphan_secs {
                None => usual.orphan_after,
                Some(0.0) => None,
                given => Some(seconds("orphan_secs", given, 0.0)?),
            },
            stalled_after: of("stalled_secs", file.stalled_secs, usual.stalled_after)?,
            escalate_after_secs: at_least_one(
                "escalate_after_secs",
                file.escalate_after_secs,
                usual.escalate_after_secs,
            )?,
            present_for: of("present_secs", file.present_secs, usual.present_for)?,
            limits: file.limits.limits()?,
            retention: file.retention.retention()?,
            notify: file.notify.settings()?,
            git_author: file.git.author()?,
            audit_head_file: file.audit.head_file.map(|file| outside(file, &data_dir)).transpose()?,
            data_dir,
        },
    })
}

fn read(path: &Path) -> Result<File, ExpectedError> {
    let wrong = |error: String| ExpectedError::Settings(format!("cannot use {}: {error}", path.display()));
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text).map_err(|error| wrong(error.to_string())),
        // A missing data directory is reported when it is opened.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(File::default())
        }
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// The files of the user's own Claude Code.
struct UsersOwn {
    settings: PathBuf,
    /// `.claude.json`, which has the MCP servers. It is in `$CLAUDE_CONFIG_DIR` if that is set, else in the home directory.
    state: PathBuf,
}

fn users_own() -> Option<UsersOwn> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let (folder, state) = match of("CLAUDE_CONFIG_DIR") {
        Some(folder) => (folder.clone(), folder),
        None => of("HOME").map(|home| (home.join(".claude"), home))?,
    };
    Some(UsersOwn { settings: folder.join("settings.json"), state: state.join(".claude.json") })
}

/// The file with passwords of databases that libpq reads.
fn pgpass() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("PGPASSFILE").or_else(|| of("HOME").map(|home| home.join(".pgpass")))
}

/// The file in which the hubs of this user list their data directories.
fn hubs_list() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = of("XDG_STATE_HOME").or_else(|| of("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("plexus/hubs"))
}

/// Checks that the directory for worktrees is separate from the data directory.
fn apart(dir: PathBuf, data_dir: &Path) -> Result<PathBuf, ExpectedError> {
    if !dir.is_absolute() {
        let message =
            format!("`worktrees_dir` in plexus.toml is relative ({}); use an absolute path", dir.display());
        return Err(ExpectedError::Settings(message));
    }
    if dir.starts_with(data_dir) || data_dir.starts_with(&dir) {
        let message =
            "`worktrees_dir` in plexus.toml contains the data directory or is inside it; choose another";
        return Err(ExpectedError::Settings(message.to_owned()));
    }
    Ok(dir)
}

/// Checks that the file is outside the data directory, so that rewriting the data directory does not change it.
fn outside(file: PathBuf, data_dir: &Path) -> Result<PathBuf, ExpectedError> {
    if !file.is_absolute() || file.starts_with(data_dir) {
        let message = format!(
            "`head_file` under [audit] in plexus.toml is {}; use an absolute path outside the data directory",
            file.display()
        );
        return Err(ExpectedError::Settings(message));
    }
    Ok(file)
}

fn seconds(key: &str, given: Option<f64>, usual: f64) -> Result<Duration, ExpectedError> {
    Duration::try_from_secs_f64(given.unwrap_or(usual))
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| ExpectedError::Settings(format!("`{key}` in plexus.toml must be a time above 0")))
}

fn at_least_one<T: PartialEq + From<u8>>(key: &str, given: Option<T>, usual: T) -> Result<T, ExpectedError> {
    let given = given.unwrap_or(usual);
    if given == T::from(0) {
        return Err(ExpectedError::Settings(format!(
            "`{key}` under [limits] in plexus.toml must be at least 1"
        )));
    }
    Ok(given)
}

/// A number of days; `0` means without limit.
fn days(key: &str, given: Option<f64>, usual: Option<Duration>) -> Result<Option<Duration>, ExpectedError> {
    match given {
        None => Ok(usual),
        Some(0.0) => Ok(None),
        Some(days) => seconds(key, Some(days * 24.0 * 3600.0), 0.0).map(Some),
    }
}

/// Checks an HTTP address. It may contain a secret, so the error does not repeat it.
fn webhook(url: String) -> Result<String, ExpectedError> {
    let uri: Option<hyper::Uri> = url.parse().ok();
    let scheme = uri.as_ref().filter(|uri| uri.host().is_some()).and_then(hyper::Uri::scheme_str);
    if matches!(scheme, Some("http" | "https")) {
        return Ok(url);
    }
    let message =
        "`head_webhook` under [audit] in plexus.toml is not an HTTP address such as https://host/path";
    Err(ExpectedError::Settings(message.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(dir: &Path) -> ServeArgs {
        ServeArgs {
            listen: None,
            data_dir: DataDirArg { data_dir: Some(dir.to_owned()) },
            store: StoreArgs::default(),
            claude: None,
            background: false,
        }
    }

    #[test]
    fn a_flag_overrides_the_file_and_the_file_overrides_the_default() {
        let dir = tempfile::tempdir().unwrap();
        let usual = config(args(dir.path())).unwrap();
        assert_eq!(usual.listen.to_string(), "127.0.0.1:4445");
        assert_eq!(
            (usual.hub.tracing, usual.hub.orphan_after),
            (Tracing::Denied, Some(Duration::from_secs(86_400)))
        );
        let text = "listen = \"127.0.0.1:5000\"\nprogress_secs = 0.5\nchild_mcp = \"http\"\ndurability = \"normal\"\nwall = \"required\"\n\
                    tracing = \"allowed\"\norphan_secs = 0\n";
        std::fs::write(dir.path().join("plexus.toml"), text).unwrap();
        let from_file = config(args(dir.path())).unwrap();
        assert_eq!(from_file.listen.to_string(), "127.0.0.1:5000");
        assert_eq!(from_file.hub.progress_every, Duration::from_millis(500));
        assert_eq!(from_file.hub.child_mcp, ChildMcp::Http);
        assert_eq!(from_file.hub.sandbox, SandboxSetting::Required);
        assert_eq!((from_file.hub.tracing, from_file.hub.orphan_after), (Tracing::Allowed, None));
        let flagged = ServeArgs { listen: Some("127.0.0.1:0".parse().unwrap()), ..args(dir.path()) };
        assert_eq!(config(flagged).unwrap().listen.to_string(), "127.0.0.1:0");
    }

    #[test]
    fn claude_is_a_program_or_an_array() {
        let dir = tempfile::tempdir().unwrap();
        let with = |value: &str| {
            std::fs::write(dir.path().join("plexus.toml"), format!("claude = {value}\n")).unwrap();
            config(args(dir.path())).map(|config| config.hub.claude).map_err(|error| error.to_string())
        };
        assert_eq!(with("\"/opt/claude\"").unwrap(), Launcher::program_only("/opt/claude").unwrap());
        let npx = with("[\"npx\", \"-y\", \"a package\"]").unwrap();
        assert_eq!(
            (npx.program(), npx.first_args().join("|")),
            (Path::new("npx"), "-y|a package".to_owned())
        );
        let flag = Launcher::parse("[\"env\",\"claude\"]".into()).unwrap();
        let flagged = ServeArgs { claude: Some(flag.clone()), ..args(dir.path()) };
        assert_eq!(config(flagged).unwrap().hub.claude, flag, "the flag overrides the file");
        for (bad, why) in [
            ("[]", "the array is empty"),
            ("[\"npx\", \"\"]", "an empty string"),
            ("\"\"", "an empty string"),
            ("\"a\\u0000b\"", "a NUL byte"),
            ("[\"npx\", 1]", "string"),
            ("7", "a program, or an array of a program and its first arguments"),
            ("\"npx -y x\"", "[\"npx\",\"-y\",\"x\"]"),
        ] {
            assert!(with(bad).unwrap_err().contains(why), "{bad}: {:?}", with(bad));
        }
    }

    #[test]
    fn an_unknown_key_is_rejected_by_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("plexus.toml"), "lisen = \"127.0.0.1:5000\"\n").unwrap();
        let refused = config(args(dir.path())).unwrap_err().to_string();
        assert!(refused.contains("lisen") && refused.contains("plexus.toml"), "{refused}");
        std::fs::write(dir.path().join("plexus.toml"), "progress_secs = -1\n").unwrap();
        assert!(config(args(dir.path())).unwrap_err().to_string().contains("progress_secs"));
    }

    #[test]
    fn worktrees_are_separate_from_the_data_directory() {
        let dir = tempfile::tempdir().unwrap();
        let with = |worktrees: &str| {
            let text = format!("worktrees_dir = \"{worktrees}\"\n");
            std::fs::write(dir.path().join("plexus.toml"), text).unwrap();
            config(args(dir.path())).map(|config| config.hub.worktrees_dir).map_err(|error| error.to_string())
        };
        assert_eq!(with("/elsewhere"), Ok(Some("/elsewhere".into())));
        let (inside, around) = (dir.path().join("in"), dir.path().parent().unwrap());
        for bad in ["relative", inside.to_str().unwrap(), around.to_str().unwrap()] {
            assert!(with(bad).unwrap_err().contains("worktrees_dir"), "{bad}");
        }
    }

    #[test]
    fn events_and_decisions_are_kept_unless_configured() {
        let dir = tempfile::tempdir().unwrap();
        let kept = config(args(dir.path())).unwrap().hub.retention;
        assert_eq!((kept.events_for, kept.decisions_for), (None, None));
        let text =
            "[retention]\nrun_files_days = 0\nrun_files_mb = 0\nevents_days = 90\ndecisions_days = 0.5\n";
        std::fs::write(dir.path().join("plexus.toml"), text).unwrap();
        let kept = config(args(dir.path())).unwrap().hub.retention;
        assert_eq!((kept.run_files_for, kept.run_files_bytes), (None, None));
        assert_eq!(kept.events_for, Some(Duration::from_secs(90 * 24 * 3600)));
        assert_eq!(kept.decisions_for, Some(Duration::from_secs(12 * 3600)));
        for (wrong, named) in [("events_days = -1", "events_days"), ("approval_days = 3", "approval_days")] {
            std::fs::write(dir.path().join("plexus.toml"), format!("[retention]\n{wrong}\n")).unwrap();
            assert!(config(args(dir.path())).unwrap_err().to_string().contains(named));
        }
    }

    #[test]
    fn the_author_of_commits_needs_a_name_and_an_address() {
        let with = |table: &str| {
            let table: GitTable = toml::from_str(table).unwrap();
            table.author().map_err(|error| error.to_string())
        };
        assert_eq!(with(""), Ok(None));
        let person = Person { name: "Ada".to_owned(), email: "ada@example.org".to_owned() };
        assert_eq!(with("name = 'Ada'\nemail = 'ada@example.org'"), Ok(Some(person)));
        assert!(with("name = 'Ada'").unwrap_err().contains("both `name` and `email`"));
        assert!(with("name = 'A <b>'\nemail = 'x'").unwrap_err().contains("`name`"));
    }

    #[test]
    fn the_head_of_the_audit_log_is_stored_outside_the_data_directory() {
        let dir = tempfile::tempdir().unwrap();
        let with = |line: &str| {
            std::fs::write(dir.path().join("plexus.toml"), format!("[audit]\n{line}\n")).unwrap();
            config(args(dir.path()))
                .map(|config| config.hub.audit_head_file)
                .map_err(|error| error.to_string())
        };
        assert_eq!(with(""), Ok(None));
        assert_eq!(with("head_file = \"/elsewhere/heads\""), Ok(Some("/elsewhere/heads".into())));
        let inside = format!("head_file = \"{}\"", dir.path().join("heads").display());
        for bad in
            ["head_file = \"heads\"", &inside, "head_webhook = \"ftp://127.0.0.1\"", "head_webhook = \"/x\""]
        {
            assert!(with(bad).unwrap_err().contains("head_"), "{bad}");
        }
    }
}
