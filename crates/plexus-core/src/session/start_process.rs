//! Starts a process: the checks before it, its files and its keeper. `plexus-agent` builds the command line. The keeper waits until the
//! run is durable and the hub releases it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_agent::{
    Conversation, JournalLimits, Keeper, Launch, LaunchLine, PromptTool, RunDir, SlashCommands, Streams,
};
use plexus_protocol::claudecode::Channel;
use plexus_store::{BudgetRow, OnBehalf, RunKey};
use serde_json::{Value, json};

use super::child::Child;
use super::machine::{Prepared, StartFailure, Started, cost_budget, dollars_left};
use super::owner::{Closing, Owner};
use super::resume::Found;
use crate::ChildMcp;
use crate::callers::secret::{new_token, token_hash};
use crate::loading::{HUB_SERVER, Loaded, changed};
use crate::processes::child_mcp::{CALL_TIMEOUT_MS, http_server};
use crate::processes::environment::environment;
use crate::processes::run_process;
use plexus_book::kill_point;

/// The pause before another try to release a keeper.
const RELEASE_PAUSE: Duration = Duration::from_millis(200);

/// With what a process is started, apart from its run.
pub(super) struct LaunchPlan {
    loaded: Loaded,
    env: BTreeMap<OsString, OsString>,
    conversation: Conversation,
    slash_commands: SlashCommands,
    token: String,
}

#[cfg(test)]
impl Default for LaunchPlan {
    fn default() -> Self {
        let loaded =
            Loaded { model: None, env: BTreeMap::new(), mcp_servers: BTreeMap::new(), api_key_helper: None };
        Self {
            loaded,
            env: BTreeMap::new(),
            conversation: Conversation::New(String::new()),
            slash_commands: SlashCommands::Disabled,
            token: String::new(),
        }
    }
}

impl Owner {
    /// Checks whether a process may be started, and with what.
    pub(super) async fn prepare(&self) -> Result<Prepared, StartFailure> {
        let config = self.machine.config();
        let cannot_start = |why: String| StartFailure {
            reason: "cannot_start",
            message: format!("the agent could not start: {why}"),
        };
        // A hanging file system of an agent uses up the share of that agent, not of the operator.
        let behalf = OnBehalf::caller(&format!("session:{}", self.machine.id()));
        if let Some(message) = behalf.clone().perform(self.project_changed()).await {
            return Err(StartFailure { reason: "project_changed", message });
        }
        let user = self.parts.user_settings.effective().map_err(|why| StartFailure {
            reason: "bad_user_settings",
            message: format!(
                "no agent can start while the user's settings are invalid, because they may deny calls: \
                 {why}; fix them and call claudecode.user_settings with `accept: true`"
            ),
        })?;
        let loaded = Loaded::of(config, user);
        let env = environment(&self.parts.settings, self.machine.id(), &loaded.env);
        let Found { conversation, spent_usd } =
            behalf.perform(self.conversation(&env)).await.map_err(cannot_start)?;
        let slash_commands = self.machine.slash_commands();
        if slash_commands == SlashCommands::BuiltIn && matches!(conversation, Conversation::New(_)) {
            let message = "the session has no conversation to compact yet".to_owned();
            return Err(StartFailure { reason: "not_compacted", message });
        }
        let token = new_token()
            .map_err(|error| cannot_start(format!("the system provides no random bytes: {error}")))?;
        let id = self.machine.id();
        let budgets = self.parts.commits.retry(|| self.parts.store.budget(id)).await;
        Ok(Prepared {
            token_hash: token_hash(&token),
            spent_usd,
            cost_budget: cost_budget(&budgets).cloned(),
            launch: LaunchPlan { loaded, env, conversation, slash_commands, token },
        })
    }

    /// The message for a project whose trusted files have changed: nothing is started with the changed files.
    async fn project_changed(&self) -> Option<String> {
        let config = self.machine.config();
        let project = config.project.as_ref()?;
        let changed = changed(&self.parts.files, project, Path::new(&config.working_dir)).await;
        if changed.is_empty() {
            return None;
        }
        Some(format!(
            "files of the project have changed since the operator trusted them ({}): review them and call \
             claudecode.trust_project again, or call it with `trust: false` to continue without them",
            changed.join(", ")
        ))
    }

    /// Starts the keeper of a run.
    pub(super) fn start(&mut self, key: RunKey, prepared: Prepared) -> Result<Started, String> {
        let Prepared { cost_budget, launch, .. } = prepared;
        let (child, keeper) =
            self.start_keeper(key, launch, cost_budget.as_ref()).map_err(|error| error.to_string())?;
        kill_point("start", "keeper started");
        self.parts.keepers.insert(self.machine.id(), keeper.pid);
        self.child = Some(child);
        Ok(Started { identity: run_process::to_stored(keeper), cost_budget })
    }

    fn start_keeper(
        &self,
        key: RunKey,
        plan: LaunchPlan,
        cost_budget: Option<&BudgetRow>,
    ) -> io::Result<(Child, plexus_agent::ProcessIdentity)> {
        let settings = &self.parts.settings;
        let config = self.machine.config();
        let LaunchPlan { loaded, env, conversation, slash_commands, token } = plan;
        let dir = RunDir::new(settings.run_dir(key));
        dir.create()?;
        write_private(&dir.mcp_config(), &self.mcp_config(&token, &loaded))?;
        let line = LaunchLine {
            working_dir: PathBuf::from(&config.working_dir),
            permission_mode: config.permission_mode.as_str().to_owned(),
            prompt_tool: config.loopback_enabled.then_some(match config.channel {
                Channel::Control => PromptTool::Stdio,
                Channel::Mcp => PromptTool::Mcp,
            }),
            mcp_config: dir.mcp_config(),
            conversation,
            model: loaded.model,
            api_key_helper: loaded.api_key_helper,
            system_prompt: config.system_prompt.clone(),
            append_system_prompt: config.append_system_prompt.clone(),
            partial_messages: config.deltas,
            slash_commands,
            max_budget_usd: cost_budget.map(dollars_left),
        };
        let launch = Launch {
            program: settings.claude.program().to_owned(),
            args: settings.claude.args_before(line.args()),
            cwd: line.working_dir.clone(),
            nonce: nonce(key),
            streams: Streams::Lines,
            journal: JournalLimits {
                most_bytes: settings.limits.journal_bytes,
                reserve_bytes: settings.limits.reserve_bytes,
            },
            sandbox: self.parts.sandbox.around(Some(&dir.mcp_config())),
            tracing: settings.tracing,
            idle_without_hub: settings.orphan_after,
        };
        let keeper = Keeper::start(&self.parts.own_program, &dir, &launch, &env)?;
        let identity = keeper.identity().clone();
        let (child, _) = Child::open(key, dir, Some(keeper), 0, &self.parts.watch)?;
        Ok((child, identity))
    }

    /// Lets the keeper start Claude Code. Retries until the disk has space for the message.
    pub(super) async fn release(&mut self) -> Result<(), Closing> {
        while let Some(Child { key, outbox: Some(outbox), .. }) = self.child.as_mut() {
            match outbox.go(&nonce(*key)) {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(session = %self.machine.id(), %error, "cannot start an agent, because its \
                        outbox cannot be written; trying again");
                    tokio::time::sleep(RELEASE_PAUSE).await;
                }
            }
        }
        Ok(())
    }

    /// The MCP servers of the child: the ones it loads, and the hub's if the child requests approvals through it or has the hub's
    /// tools.
    fn mcp_config(&self, token: &str, loaded: &Loaded) -> Value {
        let (settings, config) = (&self.parts.settings, self.machine.config());
        let mut servers = json!(loaded.mcp_servers);
        let asks = config.loopback_enabled && config.channel == Channel::Mcp;
        if !asks && !config.hub_tools {
            return json!({"mcpServers": servers});
        }
        servers[HUB_SERVER] = match settings.child_mcp {
            ChildMcp::Relay => json!({
                "type": "stdio",
                "command": settings.plexus,
                "args": ["mcp"],
                "env": {
                    "PLEXUS_HUB_URL": self.parts.address.url,
                    "PLEXUS_HUB_KEY": self.parts.address.hub_key,
                    "PLEXUS_TOKEN": token,
                    "PLEXUS_HUB_TOOLS": if config.hub_tools { "1" } else { "0" },
                    "PLEXUS_PROGRESS_MS": settings.progress_every.as_millis().to_string(),
                },
                "timeout": CALL_TIMEOUT_MS,
                "alwaysLoad": true,
            }),
            ChildMcp::Http => http_server(&self.parts.address.url, token),
        };
        json!({"mcpServers": servers})
    }
}

/// The word that releases a keeper.
fn nonce(key: RunKey) -> String {
    format!("{}-{}", key.session, key.run)
}

fn write_private(path: &Path, value: &Value) -> io::Result<()> {
    use std::io::Write;
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(value.to_string().as_bytes())
}
