//! The configuration of a hub. It does not change while the hub runs.

use std::path::PathBuf;
use std::time::Duration;

use plexus_protocol::SessionId;

use crate::{Limits, Tracing};

/// How children on the `mcp` channel that the hub starts itself reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildMcp {
    /// Through `plexus mcp` on stdio: it outlives any absence of the hub.
    Relay,
    /// Over HTTP, as children started elsewhere do.
    Http,
}

/// How callers reach this hub, and how they know it. It is known when the hub listens.
#[derive(Debug, Clone)]
pub struct Address {
    /// Where the hub listens, such as `http://127.0.0.1:4445`.
    pub url: String,
    /// The public key by which a relay recognises the hub.
    pub hub_key: String,
    /// The token of the operator.
    pub operator_token: String,
}

/// The configuration of a hub.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where everything lives.
    pub data_dir: PathBuf,
    /// Where worktrees are created; beside the data directory unless given.
    pub worktrees_dir: Option<PathBuf>,
    /// The Claude Code program: a path, or a name to look up in `PATH`.
    pub claude: PathBuf,
    /// This program, for keepers, file helpers and relays.
    pub plexus: PathBuf,
    /// Children inherit nothing of the hub's environment; for tests.
    pub clean_env: bool,
    /// The user's home directory: what `~` means to a session that is not given another.
    pub home: Option<PathBuf>,
    /// Environment variables that a session may give to those it makes, besides harmless ones.
    pub session_env: Vec<String>,
    /// The user's own Claude Code settings, of which children get a little; `None` for nothing of them.
    pub user_settings: Option<PathBuf>,
    /// Where the user's hubs list their data directories, so that each hides all of them from its children.
    pub hubs_list: Option<PathBuf>,
    /// Whether children are kept from the hub's own files.
    pub sandbox: SandboxSetting,
    /// Whether the processes of a child may trace each other.
    pub tracing: Tracing,
    /// How children on the `mcp` channel reach the hub.
    pub child_mcp: ChildMcp,
    /// How often a waiting MCP call shows that it is alive.
    pub progress_every: Duration,
    /// How long a client of a lost stream waits before it comes back; it tries twice.
    pub sse_retry: Duration,
    /// How long a child may take until it answers `initialize`.
    pub initialize_within: Duration,
    /// How long a child without a turn is kept; `None` for good.
    pub idle_after: Option<Duration>,
    /// How long a child without a turn is kept while there is no hub; `None` for good.
    pub orphan_after: Option<Duration>,
    /// How long whoever is asked has before a question goes on to the next above, in seconds.
    pub escalate_after_secs: u64,
    /// How long somebody counts as there after a call.
    pub present_for: Duration,
    /// How long a child may hear nothing from its model before it is said to have stalled.
    pub stalled_after: Duration,
    /// How much there may be of everything.
    pub limits: Limits,
    /// What is kept, and for how long.
    pub retention: Retention,
    /// What the operator is told when not looking; `None` for nothing.
    pub notify: Option<NotifySettings>,
    /// A file, elsewhere, that is told how far the record goes.
    pub audit_head_file: Option<PathBuf>,
}

impl Settings {
    /// The defaults, which are the safe choices. `plexus` is this program.
    pub fn defaults(data_dir: PathBuf, plexus: PathBuf) -> Self {
        Self {
            data_dir,
            worktrees_dir: None,
            claude: "claude".into(),
            plexus,
            clean_env: false,
            home: None,
            session_env: Vec::new(),
            user_settings: None,
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
            audit_head_file: None,
        }
    }

    /// Where everything of a session lives that is no row of the store.
    pub fn session_dir(&self, session: SessionId) -> PathBuf {
        self.data_dir.join("sessions").join(session.to_string())
    }

    /// Where worktrees are created: `DIR-worktrees` unless given. An agent works in a worktree, so a worktree may neither
    /// contain the data directory nor lie in it.
    pub(crate) fn worktrees_dir(&self) -> PathBuf {
        let beside = || {
            let mut name = self.data_dir.as_os_str().to_owned();
            name.push("-worktrees");
            name.into()
        };
        self.worktrees_dir.clone().unwrap_or_else(beside)
    }

    /// Where the runs of a session live.
    pub fn run_dir(&self, key: plexus_store::RunKey) -> PathBuf {
        self.session_dir(key.session).join("runs").join(key.run.to_string())
    }

    /// How long a permit over HTTP may be without a stream: the client's two tries, and a little.
    pub fn permit_window(&self) -> Duration {
        self.sse_retry * 2 + self.sse_retry / 2
    }
}

/// Whether children are kept from the hub's own files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxSetting {
    /// Where the system grants it; elsewhere they are started without.
    #[default]
    Wanted,
    /// Else they are not started.
    Required,
    /// No.
    Off,
}

/// What is kept, and for how long. `None` is for good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retention {
    /// How often it is looked for what has grown old.
    pub every: Duration,
    /// The files of runs that are over: what the agent wrote and was sent, in the form it was.
    pub run_files_for: Option<Duration>,
    /// How many bytes of those files, all together, are kept; those that ended first go first.
    pub run_files_bytes: Option<u64>,
    /// Events of turns that are over.
    pub events_for: Option<Duration>,
    /// The record of decisions: approvals that came to their end, and the calls that the gate saw.
    pub decisions_for: Option<Duration>,
}

impl Default for Retention {
    /// What is not the record goes after a month, or sooner when it grows large; the record stays.
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

/// Which ends of turns are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnNotices {
    /// Every one.
    All,
    /// Those that failed.
    Failed,
    /// None.
    Off,
}

/// A way to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotifyBy {
    /// A program and its arguments; it reads the notice as JSON from its stdin.
    Command(Vec<String>),
    /// `notify-send`, where there is one.
    Desktop,
}

/// What is told, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifySettings {
    /// How.
    pub by: Vec<NotifyBy>,
    /// How long a question has to have been open, in seconds.
    pub approval_after_secs: u64,
    /// Which ends of turns.
    pub turns: TurnNotices,
}
