//! The configuration that a child loads in addition to Claude Code's own: MCP servers that the session was given by
//! name, project files that the operator trusts, imports, and a few of the user's settings. The hub passes all of it to
//! the child from its own copies. Claude Code discovers none of it by itself.

mod agents;
mod imports;
mod private_file;
mod project;
mod servers;
mod user;
mod user_file;

use std::collections::BTreeMap;
use std::path::Path;

use plexus_protocol::claudecode::{ImportedView, LoadsView, McpServer};
use plexus_protocol::{Error, ErrorKind, Object, Principal};
use plexus_store::SessionConfig;

pub(crate) use imports::{Candidate, Content, Imports, rule_state};
pub(crate) use project::{LoadedProject, changed, view as project_view};
pub(crate) use servers::{HUB_SERVER, given};
pub(crate) use user::UserSettings;
pub(crate) use user_file::FromUser;

use crate::callers::access::Admitted;
use crate::processes::files::Files;

/// Whether a session loads the configuration of its project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Loads the project's current configuration.
    Project,
    /// Loads nothing.
    Nothing,
}

impl Trust {
    /// The trust that the caller requests. Only the operator can trust files in the working directory.
    pub(crate) fn requested(caller: &Admitted, trust_project: Option<bool>) -> Result<Self, Error> {
        match (trust_project, &caller.principal) {
            (Some(true), Principal::Operator) => Ok(Self::Project),
            (Some(true), _) => {
                let message = "only the operator can trust the files of a project";
                Err(Error::new(ErrorKind::Forbidden, message).with("field", "trust_project"))
            }
            (Some(false) | None, _) => Ok(Self::Nothing),
        }
    }
}

/// The configuration with which one run of a session starts.
pub(crate) struct Loaded {
    /// The model; `None` for Claude Code's default.
    pub(crate) model: Option<String>,
    /// Variables in addition to the inherited environment.
    pub(crate) env: BTreeMap<String, String>,
    /// MCP servers in addition to the hub's own.
    pub(crate) mcp_servers: BTreeMap<String, McpServer>,
    /// The user's program that returns the API key of the model.
    pub(crate) api_key_helper: Option<String>,
}

impl Loaded {
    /// The session's own configuration overrides the project's, and the project's overrides the user's, including
    /// imports.
    pub(crate) fn of(config: &SessionConfig, user: FromUser) -> Self {
        let FromUser { model, api_key_helper, env, deny: _ } = user;
        let mut loaded = Self { model, env, mcp_servers: BTreeMap::new(), api_key_helper };
        if let Some(imported) = &config.imported {
            loaded.mcp_servers.extend(imported.mcp_servers.clone());
        }
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

/// The agents that a session loads, by name: the imported ones and, in preference, those of its project.
pub(crate) fn agents_of(config: &SessionConfig) -> Object {
    let mut agents = config.imported.as_ref().map(|imported| imported.agents.clone()).unwrap_or_default();
    agents.extend(config.project.iter().flat_map(|project| project.agents.clone()));
    agents
}

/// The names of everything that a session loads; `None` if it loads nothing.
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
        user_settings: user_settings.effective().map(|user| user.names()).unwrap_or_default(),
        mcp_servers: config.mcp_servers.keys().cloned().collect(),
        project,
        imported: config.imported.as_ref().map(|imported| ImportedView {
            mcp_servers: imported.mcp_servers.keys().cloned().collect(),
            agents: imported.agents.keys().cloned().collect(),
        }),
        hooks: config.hooks.clone(),
    };
    (loads != LoadsView::default()).then_some(loads)
}
