//! The session state machine: everything the hub knows about one session, and every decision about it.
//!
//! [`Machine::step`] takes one [`Input`] (a command, lines from the child, the result of an effect) and returns the
//! [`Effect`]s that follow from it, in order. The machine performs no I/O and reads no clock, so a test drives it with a
//! table of inputs. `owner` is the shell around it: it waits for inputs and carries out effects.

mod answers;
mod approvals;
mod call_results;
mod commands;
mod control_responses;
mod conversation;
mod effect;
mod ending;
mod held_calls;
mod hooks;
mod lines;
mod model_trouble;
mod process;
mod progress;
mod quiet_lines;
mod recovery;
mod request;
mod risks;
mod running_cost;
mod said;
mod settings;
mod stop;
mod system_lines;
#[cfg(test)]
mod tests;
mod truncate;
mod turn;
mod turn_clock;
mod wake;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use plexus_agent::SlashCommands;
use plexus_protocol::arbor::Position;
use plexus_protocol::{NodeId, SessionId, UnixSeconds};
use plexus_store::{Change, RunKey, SessionConfig, SessionRow};
use tokio::sync::oneshot;

use crate::Settings;
use crate::attachments::Attachments;
use crate::escalation::Escalation;
use crate::limits::{RateLimit, Reservations};
use crate::lineage::Lineage;
use crate::metrics::Metrics;
use crate::policy::Policies;
use crate::session::PromptFormat;

use answers::OpenApproval;
use approvals::Call;
use conversation::Message;
use held_calls::HeldCall;
use process::Process;
use progress::Progress;
use said::Said;
use settings::PendingRequest;
use turn::Turn;
use turn_clock::TimeLimit;

pub(super) use effect::{
    AfterCommit, AfterTry, BudgetUse, Cause, Effect, Exited, Input, Next, Prepared, Reply, StartFailure,
    Started,
};
pub(crate) use held_calls::waits_for_budget;
pub(super) use held_calls::{cost_budget, dollars_left};
pub(crate) use model_trouble::trouble_of;
pub(crate) use progress::has_read_prompt;
pub(super) use progress::unread_files;
pub(super) use recovery::{RecoveredRun, Snapshot};
pub(crate) use running_cost::cost_so_far;

/// The time at which an input arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) instant: Instant,
    pub(super) unix_ms: u64,
}

impl Now {
    fn unix_secs(self) -> UnixSeconds {
        self.unix_ms / 1000
    }
}

/// The in-memory parts of the hub that a session shares with all others.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) reservations: Arc<Reservations>,
    pub(crate) escalation: Arc<Escalation>,
    pub(crate) metrics: Arc<Metrics>,
}

/// The state of one session.
pub(super) struct Machine {
    shared: Shared,
    row: SessionRow,
    /// The session and all its ancestors.
    lineage: Lineage,
    now: Now,
    /// The effects of the current step, so far.
    effects: Vec<Effect>,
    process: Option<Process>,
    turn: Option<Turn>,
    /// The progress of the latest finished turn: the next turn inherits part of it.
    last_progress: Progress,
    /// Calls that passed the gate and have no result yet, by `tool_use_id`.
    calls: HashMap<String, Call>,
    /// Approvals of calls that have no result yet, by `tool_use_id`.
    approvals: HashMap<String, OpenApproval>,
    /// Calls held at the gate until the budget grows.
    held: Vec<HeldCall>,
    time: TimeLimit,
    rate_limit: RateLimit,
    /// The assistant message being received.
    message: Option<Message>,
    /// Control requests of the hub that the child has not answered.
    requests: HashMap<String, PendingRequest>,
    /// Callers that wait for the end of an interrupted turn.
    interrupting: Vec<oneshot::Sender<()>>,
    /// Runs whose processes the hub did not start.
    external: Vec<RunKey>,
    wake: wake::Wake,
    /// Running tool calls, and the name of each tool.
    running_tools: HashMap<String, String>,
    /// Calls of this turn that Claude Code never shows to its hooks.
    ungated: HashSet<String>,
    /// The agents' latest texts in this turn.
    said: Said,
    /// The files of prompts and messages that the child has not confirmed, by node.
    unread_files: HashMap<NodeId, Attachments>,
}

impl Machine {
    pub(super) fn new(shared: Shared, row: SessionRow, lineage: Lineage, now: Now) -> Self {
        Self {
            shared,
            row,
            lineage,
            now,
            effects: Vec::new(),
            process: None,
            turn: None,
            last_progress: Progress::default(),
            calls: HashMap::new(),
            approvals: HashMap::new(),
            held: Vec::new(),
            time: TimeLimit::default(),
            rate_limit: RateLimit::default(),
            message: None,
            requests: HashMap::new(),
            interrupting: Vec::new(),
            external: Vec::new(),
            wake: wake::Wake::No,
            running_tools: HashMap::new(),
            ungated: HashSet::new(),
            said: Said::default(),
            unread_files: HashMap::new(),
        }
    }

    /// Takes one input. The effects are carried out in order; the effects that follow from the result of one come
    /// before the rest.
    pub(super) fn step(&mut self, now: Now, input: Input) -> Vec<Effect> {
        self.now = now;
        match input {
            Input::Recovered(snapshot) => self.recover(*snapshot),
            Input::Command(command) => self.on_command(command),
            Input::Lines(lines) => self.on_lines(lines),
            Input::Due => self.on_due(),
            Input::ProcessEnded => self.finish_process(Cause::Ended),
            Input::JournalFull => self.on_journal_full(),
            Input::Idle => self.on_idle(),
            Input::Next(next) => self.on_next(next),
            Input::Committed(next, committed) => self.on_committed(next, &committed),
            Input::Tried(next, result) => self.on_tried(next, result),
            Input::Budget(usage, rows) => self.on_budget_loaded(usage, rows),
            Input::HeldCalls(rows) => self.on_held_calls(rows),
            Input::BudgetApproval(row) => self.on_budget_approval_loaded(row.map(|row| *row)),
            Input::OpenApprovals(rows) => self.on_open_approvals(&rows),
            Input::Prepared(prepared) => self.on_prepared(prepared),
            Input::Started(key, started) => self.on_started(key, started),
            Input::Exited(cause, exited) => self.on_exited(cause, exited),
            Input::HooksEnded(request_id, outcome) => self.on_hooks_ended(&request_id, *outcome),
        }
        std::mem::take(&mut self.effects)
    }

    /// Records an answer that is in the inbox, before the lines that follow from it are read. The command itself comes
    /// later.
    pub(super) fn answer_arrived(&mut self, row: &plexus_store::ApprovalRow) {
        self.apply_answer(row);
    }

    pub(super) fn id(&self) -> SessionId {
        self.row.id
    }

    pub(super) fn latest_turn(&self) -> u64 {
        self.row.latest_turn
    }

    /// The node of the conversation where the session starts.
    pub(super) fn beginning(&self) -> NodeId {
        self.row.beginning
    }

    /// The commands that the process for the running turn needs.
    pub(super) fn slash_commands(&self) -> SlashCommands {
        if self.is_compacting() { SlashCommands::BuiltIn } else { SlashCommands::Disabled }
    }

    fn is_compacting(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.progress.format == PromptFormat::Compact)
    }

    pub(super) fn config(&self) -> &SessionConfig {
        &self.row.config
    }

    /// When [`Input::Due`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let of_process = self.process.as_ref().and_then(Process::deadline);
        let of_lines = self.process.as_ref().and_then(|process| process.unstored.store_by);
        [of_process, of_lines, self.time.deadline, self.wake.deadline()].into_iter().flatten().min()
    }

    fn on_due(&mut self) {
        let due = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= self.now.instant);
        if due(self.process.as_ref().and_then(|process| process.unstored.store_by)) {
            self.store_quiet_lines();
        } else if due(self.process.as_ref().and_then(Process::deadline)) {
            self.on_process_late();
        } else if due(self.time.deadline) {
            self.on_time_due();
        } else if due(self.wake.deadline()) {
            self.wake = wake::Wake::Wanted;
        }
    }

    /// Nothing else is to be done at the moment.
    fn on_idle(&mut self) {
        if self.turn.is_none() {
            let interrupted = std::mem::take(&mut self.interrupting);
            self.effects.extend(interrupted.into_iter().map(|reply| Effect::Reply(Reply::Done(reply))));
        }
        if self.wake == wake::Wake::Wanted && self.turn.is_none() {
            self.wake = wake::Wake::No;
            self.effects.push(Effect::LoadOpenApprovals);
            return;
        }
        self.refresh_time_limit();
    }

    fn on_next(&mut self, next: Next) {
        match next {
            Next::StartTurn(request) => self.start_turn(*request),
            Next::Permit(permit, origin) => self.on_permit_read(*permit, origin),
            Next::PermitLost(approval) => self.on_permit_lost_read(approval),
            Next::StopExternal { why, reply } => self.stop_external(&why, reply),
            Next::Interrupt => self.send_interrupt(),
        }
    }

    /// Sends a line to the child, once. After a restart the same line may follow from the journal, the store and a new
    /// decision alike.
    fn send(&mut self, line: String) {
        let Some(process) = self.process.as_mut() else { return };
        let id = plexus_claude::sent_id(line.as_bytes());
        if id.as_ref().is_some_and(|id| process.sent.contains(id)) {
            return;
        }
        process.sent.extend(id);
        self.effects.push(Effect::Send(line));
    }

    /// Stores changes before anything that follows.
    fn commit(&mut self, changes: Vec<Change>) {
        self.commit_then(changes, AfterCommit::Nothing);
    }

    fn commit_then(&mut self, changes: Vec<Change>, next: AfterCommit) {
        if !changes.is_empty() || !matches!(next, AfterCommit::Nothing) {
            self.effects.push(Effect::Commit(changes, next));
        }
    }

    fn kill_point(&mut self, operation: &'static str, step: &'static str) {
        if cfg!(debug_assertions) {
            self.effects.push(Effect::KillPoint(operation, step));
        }
    }

    /// The turn that events belong to: the running one, or the latest.
    fn event_turn(&self) -> u64 {
        self.turn.as_ref().map_or(self.row.latest_turn, |turn| turn.number)
    }

    /// The change that stores the progress of the running turn, or of the latest.
    fn progress(&self) -> Change {
        match &self.turn {
            Some(turn) => turn.progress.change(self.row.id, turn.number),
            None => self.last_progress.change(self.row.id, self.row.latest_turn),
        }
    }

    /// The progress of the running turn, or of the latest.
    fn progress_mut(&mut self) -> &mut Progress {
        self.turn.as_mut().map_or(&mut self.last_progress, |turn| &mut turn.progress)
    }

    fn head(&self) -> Position {
        Position { tree_id: self.row.tree, node_id: self.row.head }
    }
}
