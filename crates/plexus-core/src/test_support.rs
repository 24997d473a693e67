//! Values for unit tests: a session, its configuration, and the settings of a hub that does nothing by itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use plexus_protocol::claudecode::{Channel, PermissionMode, PolicyName};
use plexus_protocol::{AskedOf, NodeId, SessionId, SessionName, TreeId};
use plexus_store::{SessionConfig, SessionRow};

use crate::{ChildMcp, Limits, Retention, Settings, Tracing, WallSetting};

/// A session that answers to the operator and works in `/w`.
pub(crate) fn session_row(name: &str) -> SessionRow {
    SessionRow {
        id: SessionId::random(),
        name: SessionName::try_from(name.to_owned()).expect("a valid name"),
        answers_to: AskedOf::Operator,
        config: session_config(),
        tree: TreeId::random(),
        beginning: NodeId::random(),
        head: NodeId::random(),
        latest_turn: 0,
        latest_run: 0,
        created_at: 0,
        deleted_at: None,
        cost_usd: 0.0,
        woken_to: 0,
    }
}

pub(crate) fn session_config() -> SessionConfig {
    SessionConfig {
        working_dir: "/w".to_owned(),
        worktree: None,
        model: None,
        system_prompt: None,
        loopback_enabled: true,
        channel: Channel::Control,
        permission_mode: PermissionMode::Default,
        policy: PolicyName::OwnCourse,
        deltas: false,
        env: BTreeMap::new(),
        mcp_servers: BTreeMap::new(),
        project: None,
        hub_tools: false,
        approve_scope: Vec::new(),
        approval_timeout_secs: None,
        escalate_after_secs: None,
        wake: false,
        metadata: None,
        forked: None,
    }
}

pub(crate) fn settings() -> Settings {
    Settings {
        data_dir: PathBuf::from("/data"),
        worktrees_dir: PathBuf::from("/data-worktrees"),
        claude: PathBuf::from("claude"),
        plexus: PathBuf::from("plexus"),
        url: "http://127.0.0.1:1".to_owned(),
        hub_key: String::new(),
        operator_token: "operator".to_owned(),
        clean_env: true,
        home: None,
        session_env: Vec::new(),
        user_settings: None,
        hubs_list: None,
        wall: WallSetting::Off,
        tracing: Tracing::Allowed,
        child_mcp: ChildMcp::Relay,
        progress_every: Duration::from_secs(10),
        sse_retry: Duration::from_secs(1),
        initialize_within: Duration::from_secs(60),
        idle_after: Some(Duration::from_secs(900)),
        orphan_after: None,
        escalate_after_secs: 120,
        present_for: Duration::from_secs(60),
        stalled_after: Duration::from_secs(300),
        limits: Limits::default(),
        retention: Retention::default(),
        notify: None,
        audit_head_file: None,
    }
}
