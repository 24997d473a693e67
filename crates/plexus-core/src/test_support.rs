//! Values for unit tests: a session, its configuration, and the settings of a hub without background work.

use std::path::PathBuf;
use std::time::Duration;

use plexus_protocol::{AskedOf, NodeId, SessionId, SessionName, TreeId};
use plexus_store::{SessionConfig, SessionRow};

use crate::Settings;

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
        title: None,
        archived_at: None,
        host: None,
    }
}

pub(crate) fn session_config() -> SessionConfig {
    plexus_store::samples::config("/w")
}

pub(crate) fn settings() -> Settings {
    Settings {
        clean_env: true,
        idle_after: Some(Duration::from_secs(900)),
        ..Settings::defaults(PathBuf::from("/data"), PathBuf::from("plexus"))
    }
}
