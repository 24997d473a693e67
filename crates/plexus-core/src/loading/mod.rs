//! What a child loads besides Claude Code itself: MCP servers that it was given by name, what of its project's own files the
//! operator trusts, and a little of the user's settings. All of it is handed over by the hub, from what it keeps; Claude Code
//! looks for none of it by itself.

mod agents;
mod project;
mod servers;
mod user;
mod user_file;

use std::collections::BTreeMap;
use std::path::Path;

use plexus_protocol::claudecode::{LoadsView, McpServer};
use plexus_protocol::{Error, ErrorKind, Object, Principal};
use plexus_store::SessionConfig;

pub(crate) use project::{Taken, changed, view as project_view};
pub(crate) use servers::{HUB_SERVER, given};
pub(crate) use user::UserSettings;
pub(crate) use user_file::FromUser;

use crate::access::Admitted;
use crate::files::Files;

/// Whether a session is to load what its project brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// What is there now.
    Project,
    /// Nothing of it.
    Nothing,
}

impl Trust {
    /// What this caller asks for; only the operator can say that files of the working directory may be trusted.
    pub(crate) fn asked(caller: &Admitted, trust_project: Option<bool>) -> Result<Self, Error> {
        match (trust_project, &caller.principal) {
            (Some(true), Principal::Operator) => Ok(Self::Project),
            (Some(true), _) => {
                let message = "only the operator can trust what a project brings along";
                Err(Error::new(ErrorKind::Forbidden, message).with("field", "trust_project"))
            }
            (Some(false) | None, _) => Ok(Self::Nothing),
        }
    }
}

/// What one run of a session is started with.
pub(crate) struct Loaded {
    /// The model, unless Claude Code's own choice will do.
    pub(crate) model: Option<String>,
    /// Environment on top of what it inherits.
    pub(crate) env: BTreeMap<String, String>,
    /// MCP servers besides the hub's own.
    pub(crate) mcp_servers: BTreeMap<String, McpServer>,
    /// The user's program that gives out the key to the model.
    pub(crate) api_key_helper: Option<String>,
}

impl Loaded {
    /// What was said to the session itself stands before what its project says, and that before what the user says.
    pub(crate) fn of(config: &SessionConfig, user: FromUser) -> Self {
        let FromUser { model, api_key_helper, env, deny: _ } = user;
        let mut loaded = Self { model, env, mcp_servers: BTreeMap::new(), api_key_helper };
        if let Some(project) = &config.project {
            loaded.model = project.model.clone().or(loaded.model);
            loaded.env.extend(project.env.clone());
            loaded.mcp_servers.extend(project.mcp_servers.clone());
        }
        loaded.model = config.model.clone().or(loaded.model);
        loaded.env.extend(config.env.clone());
        loaded.mcp_servers.extend(config.mcp_servers.clone());
        loaded
    }
}

/// The agents of its project that a session has, by name.
pub(crate) fn agents_of(config: &SessionConfig) -> Object {
    config.project.as_ref().map(|project| project.agents.clone()).unwrap_or_default()
}

/// What a session loads, by name; `None` for nothing.
pub(crate) async fn shown(
    files: &Files,
    user_settings: &UserSettings,
    config: &SessionConfig,
) -> Option<LoadsView> {
    let project = match &config.project {
        Some(project) => Some(project_view(files, project, Path::new(&config.working_dir)).await),
        None => None,
    };
    let loads = LoadsView {
        user_settings: user_settings.counting().map(|user| user.names()).unwrap_or_default(),
        mcp_servers: config.mcp_servers.keys().cloned().collect(),
        project,
    };
    (loads != LoadsView::default()).then_some(loads)
}
