//! The child process in the state machine: its phases, its deadlines and its start. `ending` handles the end of a
//! process.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use plexus_claude::{Gate, Initialize, ResumedSystemPrompt, SentId, Version};
use plexus_store::{Change, RunKey, RunState};
use serde_json::json;

use super::quiet_lines::Unstored;
use super::running_cost::CostRequest;
use super::settings::Setting;
use super::{Cause, Effect, Machine, Prepared, StartFailure, Started};
use crate::hooks::events_of;
use crate::limits::Limit;
use crate::loading::agents_of;

/// The pause before the child is asked again whether its permission tool is connected; it cannot report that itself.
pub(super) const CONNECTING_PAUSE: Duration = Duration::from_millis(100);

/// The time a child has to exit once its stdin is closed.
pub(super) const EXIT_WITHIN: Duration = Duration::from_secs(10);

/// The phase of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// `initialize` is sent.
    Initializing,
    /// The child is asked whether its permission tool is connected.
    Connecting {
        /// When to ask again, once the child has answered "not yet".
        again: Option<Instant>,
    },
    /// Prompts can be sent.
    Ready,
    /// Its stdin is closed; prompts go to the next process.
    Closing {
        /// When it must have exited.
        by: Instant,
    },
}

/// The process of a session.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) key: RunKey,
    pub(super) phase: Phase,
    /// The ids of the lines that were sent.
    pub(super) sent: HashSet<SentId>,
    /// When it must be ready.
    pub(super) ready_by: Instant,
    /// When an interrupted turn must be over.
    pub(super) interrupt_by: Option<Instant>,
    /// When it has been without a turn for long enough.
    pub(super) idle_by: Option<Instant>,
    /// When its model has been silent for long enough to report it.
    pub(super) stall_by: Option<Instant>,
    /// Its version of Claude Code, once it has reported one.
    pub(super) version: Option<Version>,
    /// Whether it can be asked for its cost.
    pub(super) cost_request: CostRequest,
    /// What was read from it since the last commit.
    pub(super) unstored: Unstored,
    /// The settings it was started with; empty when an earlier hub started it.
    pub(super) launched_with: Vec<Setting>,
}

impl Process {
    pub(super) fn initialize_id(&self) -> String {
        format!("plexus-initialize-{}", self.key.run)
    }

    /// When the process has to be looked at.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Ready => self.interrupt_by.or(self.idle_by).into_iter().chain(self.stall_by).min(),
            Phase::Closing { by } => Some(by),
            Phase::Connecting { again: Some(again) } => Some(again.min(self.ready_by)),
            Phase::Connecting { again: None } | Phase::Initializing => Some(self.ready_by),
        }
    }
}

impl Machine {
    /// A process in its first phase.
    pub(super) fn new_process(&self, key: RunKey, sent: HashSet<SentId>) -> Process {
        let settings = &self.shared.settings;
        Process {
            key,
            phase: Phase::Initializing,
            sent,
            ready_by: self.now.instant + settings.initialize_within,
            interrupt_by: None,
            idle_by: self.idle_deadline(),
            stall_by: None,
            version: None,
            cost_request: CostRequest::default(),
            unstored: Unstored::default(),
            launched_with: Vec::new(),
        }
    }

    /// Ends the process if it has no turn for the configured time, counted from now. A process for a command ends at once.
    pub(super) fn restart_idle_timer(&mut self) {
        let is_for_command = self
            .process
            .as_ref()
            .is_some_and(|process| self.last_progress.command_run == Some(process.key.run));
        let idle_by = if is_for_command { Some(self.now.instant) } else { self.idle_deadline() };
        if let Some(process) = self.process.as_mut() {
            process.idle_by = idle_by;
        }
    }

    fn idle_deadline(&self) -> Option<Instant> {
        self.shared.settings.idle_after.map(|idle| self.now.instant + idle)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.phase == Phase::Ready)
    }

    /// Starts a process for the running turn, unless there is one.
    pub(super) fn ensure_process(&mut self) {
        if self.process.is_none() {
            self.effects.push(Effect::Prepare);
        }
    }

    /// The run is durable before its process is started: a hub that dies in between gives the run up.
    pub(super) fn on_prepared(&mut self, prepared: Result<Box<Prepared>, StartFailure>) {
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(StartFailure { reason, message }) => return self.fail_turn(reason, message),
        };
        let key = RunKey { session: self.row.id, run: self.row.latest_run + 1 };
        let token_hash = Some(prepared.token_hash.clone());
        let mut changes = vec![Change::StartRun { key, state: RunState::Starting, token_hash }];
        if let Some(turn) = self.turn.as_mut() {
            // Newer versions of Claude Code continue the cost of the transcript; older ones record none and start at 0.
            turn.progress.cost_before = prepared.spent_usd;
            turn.progress.cost_now = prepared.spent_usd;
            changes.push(self.progress());
        }
        self.row.latest_run = key.run;
        self.commit(changes);
        self.kill_point("start", "begun");
        self.effects.push(Effect::Start(key, prepared));
    }

    pub(super) fn on_started(&mut self, key: RunKey, started: Result<Started, String>) {
        let Started { identity, cost_budget } = match started {
            Ok(started) => started,
            Err(error) => {
                self.commit(vec![Change::EndRun(key, json!({"error": error}))]);
                return self.fail_turn("cannot_start", format!("the agent could not start: {error}"));
            }
        };
        self.progress_mut().command_run = self.is_compacting().then_some(key.run);
        self.progress_mut().cost_limit = cost_budget.map(|row| (key.run, row.granted));
        let mut process = self.new_process(key, HashSet::new());
        let config = &self.row.config;
        process.launched_with =
            vec![Setting::Mode(config.permission_mode), Setting::Model(config.model.clone())];
        self.process = Some(process);
        self.commit(vec![Change::RunProcess(key, Some(identity)), self.progress()]);
        self.kill_point("start", "keeper known");
        self.release();
    }

    /// The keeper is durable: it may start Claude Code.
    pub(super) fn release(&mut self) {
        self.effects.push(Effect::Release);
        self.kill_point("start", "released");
        let Some(process) = &self.process else { return };
        let id = process.initialize_id();
        let config = &self.row.config;
        let initialize = Initialize {
            gate: if config.loopback_enabled { Gate::Callback } else { Gate::Disabled },
            hooks: &events_of(config.hooks.as_ref()),
            agents: &agents_of(config),
            // The transcript of an adopted conversation records the system prompt that the user had.
            system_prompt: match config.resumed_from {
                Some(_) if config.system_prompt.is_some() || config.append_system_prompt.is_some() => {
                    ResumedSystemPrompt::Own
                }
                _ => ResumedSystemPrompt::Recorded,
            },
        };
        self.send(initialize.line(&id));
        self.kill_point("start", "initialize sent");
    }

    /// A deadline of the process has passed.
    pub(super) fn on_process_late(&mut self) {
        let now = self.now.instant;
        let within = self.shared.settings.initialize_within.as_secs();
        let Some(process) = self.process.as_mut() else { return };
        let message = match process.phase {
            Phase::Closing { .. } => return self.end_process(Cause::Ended),
            Phase::Ready if self.turn.is_none() => return self.close_idle_process(),
            Phase::Ready => {
                process.idle_by = None;
                if process.interrupt_by.take_if(|by| *by <= now).is_some() {
                    return self.end_process(Cause::Stopped("the turn was interrupted".to_owned()));
                }
                return self.on_silence();
            }
            Phase::Connecting { again: Some(again) } if again <= now && process.ready_by > now => {
                process.phase = Phase::Connecting { again: None };
                let id = format!("plexus-mcp-status-{}", uuid::Uuid::new_v4());
                return self.send(plexus_claude::mcp_status(&id));
            }
            Phase::Connecting { .. } => {
                format!("the agent did not reach Plexus's permission tool within {within} s")
            }
            Phase::Initializing => format!("the agent did not answer within {within} s"),
        };
        self.end_process(Cause::Failed("no_answer", message));
    }

    /// Ends a process that has nothing to do. From here on prompts go to the next one.
    fn close_idle_process(&mut self) {
        let by = self.now.instant + EXIT_WITHIN;
        let Some(process) = self.process.as_mut() else { return };
        process.phase = Phase::Closing { by };
        let key = process.key;
        self.commit(vec![Change::RunState(key, RunState::Ending)]);
        self.kill_point("idle end", "committed");
        self.effects.push(Effect::CloseStdin);
        self.kill_point("idle end", "stdin closed");
    }

    /// Ends a child that has written as much as it may: its keeper takes no more.
    pub(super) fn on_journal_full(&mut self) {
        self.shared.metrics.refused(Limit::Journal);
        let limit_mb = self.shared.settings.limits.journal_bytes / (1024 * 1024);
        let message = format!(
            "the agent wrote {limit_mb} MB in one run, which is the limit, so its process was stopped; \
             prompt it to continue in a new run, or raise `journal_mb` under [limits] in plexus.toml"
        );
        self.end_process(Cause::Failed("journal_full", message));
    }
}
