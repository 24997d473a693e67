//! The configuration of a hub. It does not change while the hub runs.

use std::path::PathBuf;
use std::time::Duration;

use plexus_agent::Launcher;
use plexus_protocol::SessionId;
use plexus_protocol::claudecode::Person;

use crate::{Limits, Tracing};

/// How children that the hub starts on the `mcp` channel connect to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildMcp {
    /// Through `plexus mcp` on stdio: the relay survives any downtime of the hub.
    Relay,
    /// Over HTTP, like children that are started elsewhere.
    Http,
}

/// How callers connect to this hub and recognise it. It is known once the hub listens.
#[derive(Debug, Clone)]
pub struct Address {
    /// The URL that the hub listens on, such as `http://127.0.0.1:4445`.
    pub url: String,
    /// The public key by which a relay recognises the hub.
    pub hub_key: String,
    /// The operator's token.
    pub operator_token: String,
}

/// The configuration of a hub.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The data directory: it contains everything that the hub stores.
    pub data_dir: PathBuf,
    /// The directory for worktrees; by default next to the data directory.
    pub worktrees_dir: Option<PathBuf>,
    /// The command that starts Claude Code.
    pub claude: Launcher,
    /// The path of this program, to start keepers, file helpers and relays.
    pub plexus: PathBuf,
    /// Whether children start without the hub's environment; for tests.
    pub clean_env: bool,
    /// The user's home directory. It is what `~` stands for in a session without a `HOME` of its own.
    pub home: Option<PathBuf>,
    /// Environment variables that a session may give to the sessions it creates, in addition to harmless ones.
    pub session_env: Vec<String>,
    /// The user's own Claude Code settings. Children get a small part of them, or nothing if this is `None`.
    pub user_settings: Option<PathBuf>,
    /// The file in which the user's Claude Code keeps MCP servers, for imports.
    pub user_state: Option<PathBuf>,
    /// The file in which the user's hubs list their data directories, so that each hub hides all of them from its
    /// children.
    pub hubs_list: Option<PathBuf>,
    /// Whether children run in a sandbox that hides the hub's own files.
    pub sandbox: SandboxSetting,
    /// Whether the processes of a child may trace each other.
    pub tracing: Tracing,
    /// How children on the `mcp` channel connect to the hub.
    pub child_mcp: ChildMcp,
    /// The interval at which a waiting MCP call reports progress, to show that it is alive.
    pub progress_every: Duration,
    /// How long a client waits before it reconnects a lost stream; it tries twice.
    pub sse_retry: Duration,
    /// The time within which a child must answer `initialize`.
    pub initialize_within: Duration,
    /// How long a child without a turn keeps running; `None` for no limit.
    pub idle_after: Option<Duration>,
    /// How long a child without a turn keeps running while no hub does; `None` for no limit.
    pub orphan_after: Option<Duration>,
    /// How long an approver has before an approval escalates, in seconds.
    pub escalate_after_secs: u64,
    /// How long a caller counts as available after a call.
    pub present_for: Duration,
    /// How long a child may receive nothing from its model before it counts as stalled.
    pub stalled_after: Duration,
    /// The hub-wide limits.
    pub limits: Limits,
    /// What the hub keeps, and for how long.
    pub retention: Retention,
    /// Notifications for an operator who is not watching; `None` for no notifications.
    pub notify: Option<NotifySettings>,
    /// The author of commits that the operator makes in worktrees; by default the author of the base commit.
    pub git_author: Option<Person>,
    /// A file outside the data directory that receives heads of the audit log.
    pub audit_head_file: Option<PathBuf>,
}

impl Settings {
    /// The default settings, which are the safe choices. `plexus` is the path of this program.
    pub fn defaults(data_dir: PathBuf, plexus: PathBuf) -> Self {
        Self {
            data_dir,
            worktrees_dir: None,
            claude: Launcher::default(),
            plexus,
            clean_env: false,
            home: None,
            session_env: Vec::new(),
            user_settings: None,
            user_state: None,
            hubs_list: None,
            sandbox: SandboxSetting::default(),
            tracing: Tracing::default(),
            child_mcp: ChildMcp::Relay,
            progress_every: Duration::from_secs(20),
            sse_retry: Duration::from_secs(5),
            initialize_within: Duration::from_secs(60),
            idle_after: Some(Duration::from_secs(600)),
            orphan_after: Some(Duration::from_secs(24 * 60 * 60)),
            escalate_after_secs: 120,
            present_for: Duration::from_secs(120),
            stalled_after: Duration::from_secs(300),
            limits: Limits::default(),
            retention: Retention::default(),
            notify: None,
            git_author: None,
            audit_head_file: None,
        }
    }

    /// The directory for the files of a session.
    pub fn session_dir(&self, session: SessionId) -> PathBuf {
        self.data_dir.join("sessions").join(session.to_string())
    }

    /// The directory for worktrees, by default `DIR-worktrees`. An agent works in a worktree, so a worktree must
    /// neither contain the data directory nor lie in it.
    pub(crate) fn worktrees_dir(&self) -> PathBuf {
        let beside = || {
            let mut name = self.data_dir.as_os_str().to_owned();
            name.push("-worktrees");
            name.into()
        };
        self.worktrees_dir.clone().unwrap_or_else(beside)
    }

    /// The directory of a run.
    pub fn run_dir(&self, key: plexus_store::RunKey) -> PathBuf {
        self.session_dir(key.session).join("runs").join(key.run.to_string())
    }

    /// How long a permit over HTTP may have no stream: the client's two tries, and half an interval more.
    pub fn permit_window(&self) -> Duration {
        self.sse_retry * 2 + self.sse_retry / 2
    }
}

/// Whether children run in a sandbox that hides the hub's own files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxSetting {
    /// If the system grants a sandbox; otherwise children are started without one.
    #[default]
    Wanted,
    /// Always: without a sandbox, children are not started.
    Required,
    /// Never.
    Off,
}

/// What the hub keeps, and for how long. `None` means forever.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retention {
    /// The interval between two searches for old files and entries.
    pub every: Duration,
    /// Files of finished runs: the raw input and output of the agent.
    pub run_files_for: Option<Duration>,
    /// The maximum total size of those files; the files of the runs that ended first are deleted first.
    pub run_files_bytes: Option<u64>,
    /// Events of finished turns.
    pub events_for: Option<Duration>,
    /// The history of decisions: resolved approvals, and the calls that the gate saw.
    pub decisions_for: Option<Duration>,
}

impl Default for Retention {
    /// Run files are deleted after 30 days, or sooner if they grow large; events and decisions are kept.
    fn default() -> Self {
        Self {
            every: Duration::from_secs(600),
            run_files_for: Some(Duration::from_secs(30 * 24 * 3600)),
            run_files_bytes: Some(8 << 30),
            events_for: None,
            decisions_for: None,
        }
    }
}

/// Which finished turns cause a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnNotices {
    /// All of them.
    All,
    /// Only failed ones.
    Failed,
    /// None.
    Off,
}

/// How a notification is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotifyBy {
    /// A program with its arguments. It reads the notice as JSON from its stdin.
    Command(Vec<String>),
    /// The program `notify-send`, if it is installed.
    Desktop,
}

/// What causes a notification, and how it is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifySettings {
    /// The ways of delivery; all of them are used.
    pub by: Vec<NotifyBy>,
    /// How long an approval must be open before a notification, in seconds.
    pub approval_after_secs: u64,
    /// Which finished turns cause one.
    pub turns: TurnNotices,
}
