//! Dispatches the commands of callers to the modules that handle them.

use plexus_protocol::Error;
use plexus_store::{BudgetRow, Change, Committed, RunKey, RunState, StoreError};
use tokio::sync::oneshot;

use super::wake::Wake;
use super::{AfterCommit, AfterTry, BudgetUse, Cause, Effect, Machine, Next, Reply};
use crate::callers::secret::token_hash;
use crate::errors::store_error;
use crate::session::{Command, Prompt};

/// A turn to start.
pub(in crate::session) struct TurnRequest {
    pub(super) prompt: Prompt,
    pub(super) origin: Origin,
}

/// Why a turn starts.
pub(super) enum Origin {
    /// A caller gave a prompt.
    Caller(oneshot::Sender<Result<u64, Error>>),
    /// Approvals up to this number of the feed wait for the session.
    Wake { to: u64 },
}

impl Machine {
    pub(super) fn on_command(&mut self, command: Command) {
        match command {
            Command::Prompt { prompt, reply } => {
                self.check_cost_then_start(TurnRequest { prompt, origin: Origin::Caller(reply) });
            }
            Command::Permit(permit) => self.on_permit(permit),
            Command::PermitLost(approval) => {
                // The lines that the child wrote meanwhile may show that it no longer waits.
                self.effects.extend([Effect::ReadAll, Effect::Then(Next::PermitLost(approval))]);
            }
            Command::Resolved(row) => self.on_resolved(*row),
            Command::Budget(row) => self.on_budget_resolved(&row),
            Command::LimitsChanged => {
                self.time.expire();
                // The budget approval may be that of a session on another host, whose answer this hub has missed.
                self.load_budget_approvals();
            }
            Command::Configure { token, reply } => self.register_external(token, reply),
            Command::SetMode { mode, reply } => self.set_mode(mode, reply),
            Command::SetModel { model, reply } => self.set_model(model, reply),
            Command::Trust { project, changes, reply } => {
                self.trust(project.map(|project| *project), changes, reply);
            }
            Command::Send { text, attachments, reply } => {
                let sent = self.add_message(text, &attachments);
                self.effects.push(Effect::Reply(Reply::Turn(reply, sent)));
            }
            Command::Wake => {
                self.wake = if self.row.config.wake { Wake::Wanted } else { Wake::No };
            }
            Command::Interrupt { reply } => self.interrupt(reply),
            Command::Stop { why, reply } => self.stop(why, reply),
            Command::Retire => {}
        }
    }

    pub(super) fn on_committed(&mut self, next: AfterCommit, committed: &Committed) {
        match next {
            AfterCommit::Nothing => {}
            AfterCommit::Lines(after) => self.on_lines_stored(*after, committed),
            AfterCommit::HeldCallsReleased(released) => self.on_released(released, committed),
            AfterCommit::TimeCounted => self.on_time_counted(committed),
        }
    }

    pub(super) fn on_tried(&mut self, next: AfterTry, result: Result<(), StoreError>) {
        match next {
            AfterTry::StartTurn(new) => self.on_turn_tried(*new, result),
            AfterTry::Configure(config, after) => self.on_configure_tried(*config, after, result),
            AfterTry::RegisterExternal { key, token, reply } => {
                if result.is_ok() {
                    self.row.latest_run = key.run;
                    self.external.push(key);
                }
                let result = result.map(|()| token).map_err(store_error);
                self.effects.push(Effect::Reply(Reply::Token(reply, result)));
            }
        }
    }

    pub(super) fn on_budget_loaded(&mut self, usage: BudgetUse, rows: Vec<BudgetRow>) {
        match usage {
            BudgetUse::TimeLimit => self.on_time_limit(rows),
            BudgetUse::CostBefore(request) => self.on_cost_before(request, &rows),
        }
    }

    /// Registers a run whose process the hub did not start: all it has is a token.
    fn register_external(&mut self, token: String, reply: oneshot::Sender<Result<String, Error>>) {
        let key = RunKey { session: self.row.id, run: self.row.latest_run + 1 };
        let token_hash = Some(token_hash(&token));
        let request = Change::StartRun { key, state: RunState::External, token_hash };
        let next = AfterTry::RegisterExternal { key, token, reply };
        self.effects.push(Effect::TryCommit(vec![request], next));
    }

    /// A process that was started under another cost budget would end the turn too early or too late: it is replaced.
    pub(super) fn check_cost_then_start(&mut self, request: TurnRequest) {
        if self.process.is_some() && self.turn.is_none() {
            self.effects.push(Effect::LoadBudget(BudgetUse::CostBefore(Box::new(request))));
        } else {
            self.start_turn(request);
        }
    }

    fn on_cost_before(&mut self, request: Box<TurnRequest>, rows: &[BudgetRow]) {
        if self.cost_budget_changed(rows) {
            self.end_process(Cause::Stopped("the cost budget has changed".to_owned()));
        }
        self.effects.push(Effect::Then(Next::StartTurn(request)));
    }
}
