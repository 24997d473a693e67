//! A run: one process of the session, from the held start on. What is settled when it is over is in `ending`.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_agent::{
    Conversation, Journal, JournalLimits, Keeper, Launch, LaunchLine, Outbox, PromptTool, RunDir, Streams,
};
use plexus_claude::SentId;
use plexus_protocol::claudecode::Channel;
use plexus_store::{BudgetRow, Change, OnBehalf, RunKey, RunState};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::budget::dollars_left;
use super::changes::Setting;
use super::ending::Cause;
use super::owner::{Closing, Owner};
use crate::ChildMcp;
use crate::disk::Disk;
use crate::environment::environment;
use crate::kill_point::kill_point;
use crate::limits::Limit;
use crate::loading::{HUB_SERVER, Loaded, agents_of, changed};
use crate::run_process;
use crate::secret::{new_token, token_hash};

/// How soon a child is asked again whether its permission tool is there; it has no way to say so by itself.
pub(super) const CONNECTING_PAUSE: Duration = Duration::from_millis(100);

/// How long a child may take to go once its stdin is closed.
pub(super) const ENDING_WITHIN: Duration = Duration::from_secs(10);

/// How far a process has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// `initialize` is out.
    Initializing,
    /// It is asked whether its permission tool is there.
    Connecting {
        /// When to ask again, once it has said `not yet`.
        again: Option<Instant>,
    },
    /// It may be sent prompts.
    Ready,
    /// Its stdin is closed: prompts go to the next run.
    Ending {
        /// When it has to be gone.
        by: Instant,
    },
}

/// The process of a session.
pub(super) struct LiveRun {
    pub(super) key: RunKey,
    pub(super) dir: RunDir,
    /// `None` when a new hub found it gone.
    pub(super) keeper: Option<Keeper>,
    pub(super) journal: Journal,
    pub(super) outbox: Outbox,
    /// The ids of the lines in the outbox.
    pub(super) sent: HashSet<SentId>,
    pub(super) phase: Phase,
    /// When it has to be ready.
    pub(super) ready_by: Instant,
    /// The journal may hold more than was read.
    pub(super) more: bool,
    /// When a turn that someone interrupted has to be over.
    pub(super) interrupt_by: Option<Instant>,
    /// When it has been without a turn for long enough.
    pub(super) idle_by: Option<Instant>,
    /// When it has heard nothing from its model for long enough to say so.
    pub(super) stall_by: Option<Instant>,
    /// What it was started with; nothing where an earlier hub started it.
    pub(super) launched_with: Vec<Setting>,
}

impl LiveRun {
    pub(super) fn initialize_id(&self) -> String {
        format!("plexus-initialize-{}", self.key.run)
    }
}

/// What a child's files and process can say by themselves.
pub(super) enum Stir {
    /// There may be more in the journal.
    Wrote,
    /// The keeper has ended.
    Ended,
    /// Something should have happened by now.
    Late,
}

/// Waits for the child; for good when there is none.
pub(super) async fn child_stirs(run: &mut Option<LiveRun>, disk: &Disk) -> Stir {
    let Some(run) = run else { return std::future::pending().await };
    if run.more && disk.has_room() {
        return Stir::Wrote;
    }
    let late = match run.phase {
        Phase::Ready => run.interrupt_by.or(run.idle_by).into_iter().chain(run.stall_by).min(),
        Phase::Ending { by } => Some(by),
        Phase::Connecting { again: Some(again) } => Some(again.min(run.ready_by)),
        Phase::Connecting { again: None } | Phase::Initializing => Some(run.ready_by),
    };
    tokio::select! {
        biased;
        () = wrote(&mut run.journal, run.more, disk) => Stir::Wrote,
        () = ended(run.keeper.as_ref()) => Stir::Ended,
        () = at(late) => Stir::Late,
    }
}

/// There may be more in the journal, and there is room on the disk to store it.
async fn wrote(journal: &mut Journal, more: bool, disk: &Disk) {
    if !more {
        journal.changed().await;
    }
    // What has changed stays so until it is read.
    disk.room().await;
}

async fn ended(keeper: Option<&Keeper>) {
    if let Some(keeper) = keeper {
        keeper.ended().await;
    }
}

pub(super) async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

impl Owner {
    /// Starts a process for the turn in progress, unless there is one.
    pub(super) async fn ensure_run(&mut self) -> Result<(), Closing> {
        if self.run.is_some() {
            return Ok(());
        }
        // What an agent makes hang is its own share, not the operator's.
        let behalf = OnBehalf::caller(&format!("session:{}", self.row.id));
        if let Some(message) = behalf.clone().perform(self.project_changed()).await {
            return self.fail_turn("project_changed", message).await;
        }
        let user = match self.hub.user_settings().counting() {
            Ok(user) => user,
            Err(why) => {
                let message = format!(
                    "no agent is started while the user's settings cannot be used, as they may deny things: {why}; mend \
                     them and call claudecode.user_settings with `accept: true`"
                );
                return self.fail_turn("bad_user_settings", message).await;
            }
        };
        let loaded = Loaded::of(&self.row.config, user);
        let env = environment(self.hub.settings(), self.row.id, &loaded.env);
        let found = match behalf.perform(self.conversation(&env)).await {
            Ok(found) => found,
            Err(why) => {
                return self
                    .fail_turn("cannot_start", format!("the agent could not be started: {why}"))
                    .await;
            }
        };
        let key = RunKey { session: self.row.id, run: self.row.latest_run + 1 };
        let token = match new_token() {
            Ok(token) => token,
            Err(error) => {
                return self.fail_turn("cannot_start", format!("no randomness to be had: {error}")).await;
            }
        };
        let state = RunState::Starting;
        let mut changes = vec![Change::StartRun { key, state, token_hash: Some(token_hash(&token)) }];
        changes.extend(self.begin_counting_cost(&found));
        self.commit_held(changes).await?;
        self.row.latest_run = key.run;
        kill_point("start", "begun");
        let cost = self.cost_limit().await;
        match self.start_process(key, &token, loaded, &env, found.conversation, cost.as_ref()) {
            Ok(run) => {
                self.note_cost_limit(key, cost.as_ref());
                kill_point("start", "keeper started");
                let identity = run.keeper.as_ref().map(|keeper| keeper.identity().clone());
                self.hub.keeper_is(self.row.id, identity.as_ref().map(|identity| identity.pid));
                self.run = Some(run);
                let process = identity.map(run_process::to_stored);
                self.commit_held(vec![Change::RunProcess(key, process), self.progress()]).await?;
                kill_point("start", "keeper known");
                self.go().await
            }
            Err(error) => {
                self.commit_held(vec![Change::EndRun(key, json!({"error": error.to_string()}))]).await?;
                self.fail_turn("cannot_start", format!("the agent could not be started: {error}")).await
            }
        }
    }

    /// What the operator trusted is there no more: nothing is started on the strength of it.
    async fn project_changed(&self) -> Option<String> {
        let config = &self.row.config;
        let project = config.project.as_ref()?;
        let changed = changed(self.hub.files(), project, Path::new(&config.working_dir)).await;
        if changed.is_empty() {
            return None;
        }
        Some(format!(
            "files of the project are not as they were when the operator trusted them ({}): the operator looks at them \
             and calls claudecode.trust_project again, or with `trust: false` to go on without them",
            changed.join(", ")
        ))
    }

    /// The keeper is known and durable: claude may start.
    pub(super) async fn go(&mut self) -> Result<(), Closing> {
        loop {
            let Some(run) = self.run.as_mut() else { return Ok(()) };
            match run.outbox.go(&nonce(run.key)) {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(session = %self.row.id, %error, "a start is held until it can be said");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
        kill_point("start", "told to go");
        self.send_initialize().await
    }

    async fn send_initialize(&mut self) -> Result<(), Closing> {
        let Some(run) = &self.run else { return Ok(()) };
        let id = run.initialize_id();
        let agents = agents_of(&self.row.config);
        let line = if self.row.config.loopback_enabled {
            plexus_claude::initialize(&id, &agents)
        } else {
            plexus_claude::initialize_ungated(&id, &agents)
        };
        self.send(&line).await?;
        kill_point("start", "initialize sent");
        Ok(())
    }

    fn start_process(
        &self,
        key: RunKey,
        token: &str,
        loaded: Loaded,
        env: &BTreeMap<OsString, OsString>,
        conversation: Conversation,
        cost: Option<&BudgetRow>,
    ) -> io::Result<LiveRun> {
        let settings = self.hub.settings();
        let dir = RunDir::new(settings.run_dir(key));
        dir.create()?;
        write_private(&dir.mcp_config(), &self.mcp_config(token, &loaded))?;
        let line = LaunchLine {
            program: settings.claude.clone(),
            working_dir: PathBuf::from(&self.row.config.working_dir),
            permission_mode: self.row.config.permission_mode.as_str().to_owned(),
            prompt_tool: self.row.config.loopback_enabled.then_some(match self.row.config.channel {
                Channel::Control => PromptTool::Stdio,
                Channel::Mcp => PromptTool::Mcp,
            }),
            mcp_config: dir.mcp_config(),
            conversation,
            model: loaded.model,
            api_key_helper: loaded.api_key_helper,
            system_prompt: self.row.config.system_prompt.clone(),
            partial_messages: self.row.config.deltas,
            max_budget_usd: cost.map(dollars_left),
        };
        let launch = Launch {
            program: line.program.clone(),
            args: line.args(),
            cwd: line.working_dir.clone(),
            nonce: nonce(key),
            streams: Streams::Lines,
            journal: JournalLimits {
                most_bytes: settings.limits.journal_bytes,
                reserve_bytes: settings.limits.reserve_bytes,
            },
            wall: self.hub.walls().around(Some(&dir.mcp_config())),
            tracing: settings.tracing,
            idle_without_hub: settings.orphan_after,
        };
        let keeper = Keeper::start(self.hub.own_program(), &dir, &launch, env)?;
        let mut run = self.live_run(key, dir, Some(keeper), 0)?;
        let config = &self.row.config;
        run.launched_with = vec![Setting::Mode(config.permission_mode), Setting::Model(config.model.clone())];
        Ok(run)
    }

    pub(super) fn live_run(
        &self,
        key: RunKey,
        dir: RunDir,
        keeper: Option<Keeper>,
        offset: u64,
    ) -> io::Result<LiveRun> {
        let journal = Journal::open(&dir, offset, self.hub.watch())?;
        let (outbox, sent) = Outbox::open(&dir)?;
        Ok(LiveRun {
            key,
            dir,
            keeper,
            journal,
            outbox,
            sent,
            phase: Phase::Initializing,
            ready_by: Instant::now() + self.hub.settings().initialize_within,
            more: true,
            interrupt_by: None,
            idle_by: self.hub.settings().idle_after.map(|idle| Instant::now() + idle),
            stall_by: None,
            launched_with: Vec::new(),
        })
    }

    /// The MCP servers of the child: those it loads, and ours if it asks through it or was given the hub's tools.
    fn mcp_config(&self, token: &str, loaded: &Loaded) -> Value {
        let settings = self.hub.settings();
        let mut servers = json!(loaded.mcp_servers);
        let asks = self.row.config.loopback_enabled && self.row.config.channel == Channel::Mcp;
        if !asks && !self.row.config.hub_tools {
            return json!({"mcpServers": servers});
        }
        let server = match settings.child_mcp {
            ChildMcp::Relay => json!({
                "type": "stdio",
                "command": settings.plexus,
                "args": ["mcp"],
                "env": {
                    "PLEXUS_HUB_URL": settings.url,
                    "PLEXUS_HUB_KEY": settings.hub_key,
                    "PLEXUS_TOKEN": token,
                    "PLEXUS_HUB_TOOLS": if self.row.config.hub_tools { "1" } else { "0" },
                    "PLEXUS_PROGRESS_MS": settings.progress_every.as_millis().to_string(),
                },
                "timeout": crate::activations::CALL_TIMEOUT_MS,
                "alwaysLoad": true,
            }),
            ChildMcp::Http => crate::activations::http_server(&settings.url, token),
        };
        servers[HUB_SERVER] = server;
        json!({"mcpServers": servers})
    }

    /// The child has not done in time what it had to.
    pub(super) async fn on_late(&mut self) -> Result<(), Closing> {
        let Some(run) = self.run.as_mut() else { return Ok(()) };
        if let Phase::Connecting { again: Some(again) } = run.phase
            && again <= Instant::now()
            && run.ready_by > Instant::now()
        {
            run.phase = Phase::Connecting { again: None };
            return self.ask_mcp_status().await;
        }
        match run.phase {
            Phase::Ending { .. } => return self.end_run(Cause::Ended).await,
            Phase::Ready if self.turn.is_some() => {
                run.idle_by = None;
                if run.interrupt_by.take_if(|by| *by <= Instant::now()).is_some() {
                    return self.end_run(Cause::Stopped("the turn was interrupted".to_owned())).await;
                }
                return self.on_quiet().await;
            }
            Phase::Ready => return self.end_idle_run().await,
            Phase::Initializing | Phase::Connecting { .. } => {}
        }
        let within = self.hub.settings().initialize_within;
        let message = match run.phase {
            Phase::Initializing => format!("the agent did not answer within {} s", within.as_secs()),
            _ => format!("the agent did not reach Plexus's permission tool within {} s", within.as_secs()),
        };
        self.end_run(Cause::Failed("no_answer", message)).await
    }

    /// Lets a process go that has nothing to do. From here on prompts go to the next one.
    async fn end_idle_run(&mut self) -> Result<(), Closing> {
        let Some(run) = self.run.as_mut() else { return Ok(()) };
        run.phase = Phase::Ending { by: Instant::now() + ENDING_WITHIN };
        let key = run.key;
        self.commit_held(vec![Change::RunState(key, RunState::Ending)]).await?;
        kill_point("idle end", "committed");
        self.close_stdin();
        kill_point("idle end", "stdin closed");
        Ok(())
    }

    /// One that cannot be told is ended when its time is over.
    pub(super) fn close_stdin(&mut self) {
        if let Some(run) = self.run.as_mut()
            && let Err(error) = run.outbox.close_stdin()
        {
            tracing::warn!(session = %self.row.id, %error, "an idle child could not be told to end");
        }
    }

    pub(super) async fn ask_mcp_status(&mut self) -> Result<(), Closing> {
        let line = plexus_claude::mcp_status(&format!("plexus-mcp-status-{}", uuid::Uuid::new_v4()));
        self.send(&line).await
    }

    /// Ends a child that has written as much as it may: its keeper takes no more.
    pub(super) async fn check_journal(&mut self) -> Result<(), Closing> {
        let most = self.hub.settings().limits.journal_bytes;
        let full = |run: &LiveRun| run.journal.size().is_ok_and(|size| size >= most);
        if !self.run.as_ref().is_some_and(full) {
            return Ok(());
        }
        self.hub.metrics().refused(Limit::Journal);
        let message = format!(
            "the agent wrote {} MB in one run, and more is not kept, so it was ended; prompt it to go on in a new run, \
             or raise `journal_mb` under [limits] in plexus.toml",
            most / (1024 * 1024)
        );
        self.end_run(Cause::Failed("journal_full", message)).await
    }
}

/// What a keeper has to hear before it starts anything.
fn nonce(key: RunKey) -> String {
    format!("{}-{}", key.session, key.run)
}

fn write_private(path: &Path, value: &Value) -> io::Result<()> {
    use std::io::Write;
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(value.to_string().as_bytes())
}
