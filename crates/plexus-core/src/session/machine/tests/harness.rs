//! The in-memory shell of the machine: a ledger, a child that is a list of lines, and a clock that only tests move.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plexus_agent::Entry;
use plexus_protocol::claudecode::PolicyName;
use plexus_protocol::loopback::PermitParams;
use plexus_protocol::{ApprovalId, ApprovalStatus, AskedOf, Decision, Error};
use plexus_store::{
    ApprovalRow, BudgetRow, CallInput, CallRow, Change, Committed, HeldForBudget, NewApproval, RunKey,
    RunProcess, SessionRow, StoreError, Verdict,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::super::{Effect, Exited, Input, Machine, Now, Prepared, Shared, Snapshot, StartFailure, Started};
use super::fixtures::{budget, object};
use super::log::{cause_name, name_of, sent};
use crate::attachments::Attachments;
use crate::escalation::Escalation;
use crate::limits::Limits;
use crate::lineage::Lineage;
use crate::session::Permitted;
use crate::session::start_process::LaunchPlan;
use crate::session::{Command, PermitCommand, Prompt, PromptFormat};
use crate::test_support::{session_row, settings};

/// A machine and everything around it.
pub(super) struct Harness {
    pub(super) machine: Machine,
    pub(super) shared: Shared,
    pub(super) now: Now,
    /// What happened, in order, without requests for the cost.
    log: Vec<String>,
    /// The step before each request for the cost.
    pub(super) cost_requests: Vec<String>,
    /// All changes that were stored.
    pub(super) stored: Vec<Change>,
    /// The lines that the child wrote and the hub has not read.
    pub(super) unread: VecDeque<Value>,
    offset: u64,
    /// The store refuses every commit that is tried once.
    pub(super) store_fails: bool,
    /// The store holds every call, for this budget approval.
    pub(super) holds: Option<ApprovalId>,
    /// The rules have changed since the gate has judged any call.
    pub(super) rules_are_outdated: bool,
    pub(super) held_rows: Vec<CallRow>,
    pub(super) budgets: Vec<BudgetRow>,
    pub(super) open_approvals: Vec<ApprovalRow>,
    /// The stored state of budget approvals.
    pub(super) budget_approval: Option<ApprovalRow>,
    /// Why the next process is not started.
    pub(super) start_failure: Option<StartFailure>,
    pub(super) exit: Option<plexus_agent::Exit>,
}

/// What a test changes before the machine exists.
pub(super) struct Setup {
    pub(super) row: SessionRow,
    pub(super) ancestors: Vec<SessionRow>,
    pub(super) limits: Limits,
}

impl Default for Setup {
    fn default() -> Self {
        Self { row: session_row("worker"), ancestors: Vec::new(), limits: Limits::default() }
    }
}

impl Setup {
    pub(super) fn policy(policy: PolicyName) -> Self {
        let mut setup = Self::default();
        setup.row.config.policy = policy;
        setup
    }

    pub(super) fn build(self) -> Harness {
        let mut settings = settings();
        settings.limits = self.limits;
        let settings = Arc::new(settings);
        let shared = Shared {
            escalation: Arc::new(Escalation::new(&settings)),
            settings,
            policies: Arc::default(),
            reservations: Arc::default(),
            metrics: Arc::default(),
        };
        let now = Now { instant: Instant::now(), unix_ms: 1_000_000_000 };
        let lineage =
            Lineage::of(self.ancestors.iter().cloned().chain(std::iter::once(self.row.clone())).collect());
        let machine = Machine::new(shared.clone(), self.row, lineage, now);
        Harness {
            machine,
            shared,
            now,
            log: Vec::new(),
            cost_requests: Vec::new(),
            stored: Vec::new(),
            unread: VecDeque::new(),
            offset: 0,
            store_fails: false,
            holds: None,
            rules_are_outdated: false,
            held_rows: Vec::new(),
            budgets: Vec::new(),
            open_approvals: Vec::new(),
            budget_approval: None,
            start_failure: None,
            exit: None,
        }
    }

    /// A machine whose child is ready and works on the prompt "go".
    pub(super) fn working(self) -> Harness {
        let mut harness = self.build();
        harness.prompt("go").expect("no turn is running");
        harness.initialized();
        harness.take_log();
        harness
    }
}

impl Harness {
    pub(super) fn step(&mut self, input: Input) {
        let effects = self.machine.step(self.now, input);
        self.perform(effects);
        loop {
            let effects = self.machine.step(self.now, Input::Idle);
            if effects.is_empty() {
                break;
            }
            self.perform(effects);
        }
    }

    pub(super) fn command(&mut self, command: Command) {
        self.step(Input::Command(command));
    }

    /// The child writes a line, and it is read.
    pub(super) fn line(&mut self, line: Value) {
        self.lines([line]);
    }

    /// The child writes lines, and they are read together.
    pub(super) fn lines(&mut self, lines: impl IntoIterator<Item = Value>) {
        let entries = lines.into_iter().map(|line| self.entry(&line)).collect();
        self.step(Input::Lines(entries));
    }

    fn entry(&mut self, line: &Value) -> Entry {
        let text = line.to_string();
        let start = self.offset;
        self.offset += text.len() as u64 + 1;
        Entry { message: plexus_claude::parse(text.as_bytes()), start, end: self.offset }
    }

    pub(super) fn prompt(&mut self, text: &str) -> Result<u64, Error> {
        let (reply, mut answer) = oneshot::channel();
        let prompt = Prompt {
            text: text.to_owned(),
            format: PromptFormat::Plain,
            attachments: Attachments::default(),
        };
        self.command(Command::Prompt { prompt, reply });
        answer.try_recv().expect("a prompt is answered at once")
    }

    /// The child answers `initialize` and reads the prompt.
    pub(super) fn initialized(&mut self) {
        let run = self.machine.row.latest_run;
        self.line(json!({"type": "control_response", "response":
            {"subtype": "success", "request_id": format!("plexus-initialize-{run}"), "response": {}}}));
    }

    /// Moves the clock, and lets the machine handle every deadline on the way.
    pub(super) fn wait(&mut self, duration: Duration) {
        let end = Now {
            instant: self.now.instant + duration,
            unix_ms: self.now.unix_ms + u64::try_from(duration.as_millis()).expect("a short wait"),
        };
        while let Some(deadline) = self.machine.deadline().filter(|deadline| *deadline <= end.instant) {
            let passed = deadline.saturating_duration_since(self.now.instant);
            self.now.unix_ms += u64::try_from(passed.as_millis()).expect("a short wait");
            self.now.instant = deadline.max(self.now.instant);
            self.step(Input::Due);
        }
        self.now = end;
    }

    /// Requests an approval over MCP.
    pub(super) fn permit(
        &mut self,
        run: u32,
        tool_use_id: &str,
        command: &str,
    ) -> oneshot::Receiver<Permitted> {
        let (reply, answer) = oneshot::channel();
        let params = PermitParams {
            tool_name: "Bash".to_owned(),
            tool_use_id: tool_use_id.to_owned(),
            input: object(json!({"command": command})),
        };
        self.command(Command::Permit(Box::new(PermitCommand { run, params, stream: None, reply })));
        answer
    }

    /// Resolves the open approval of a call as the approval book would.
    pub(super) fn resolve(&mut self, tool_use_id: &str, status: ApprovalStatus, decision: Decision) {
        let row = self.approval_row(tool_use_id, status, Some(decision));
        self.command(Command::Resolved(Box::new(row)));
    }

    /// The stored approval of a call, in another state.
    pub(super) fn approval_row(
        &self,
        tool_use_id: &str,
        status: ApprovalStatus,
        decision: Option<Decision>,
    ) -> ApprovalRow {
        let mut row = self.asked(tool_use_id).stored(1, AskedOf::Operator);
        row.approval.status = status;
        row.approval.decision = decision;
        row
    }

    /// The approval that was stored for a call.
    pub(super) fn asked(&self, tool_use_id: &str) -> &NewApproval {
        let asked = self.stored.iter().rev().find_map(|change| match change {
            Change::Ask(new) if new.approval.tool_use_id == tool_use_id => Some(&**new),
            _ => None,
        });
        asked.expect("an approval was stored")
    }

    pub(super) fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Compares the log with what is expected, and clears it.
    #[track_caller]
    pub(super) fn expect(&mut self, expected: &[&str]) {
        assert_eq!(self.take_log(), expected);
    }

    /// The lines that were sent to the child since the last look, decoded.
    #[track_caller]
    pub(super) fn expect_sent(&mut self, expected: &[&str]) {
        let sent: Vec<String> = self
            .take_log()
            .into_iter()
            .filter_map(|step| step.strip_prefix("send ").map(str::to_owned))
            .collect();
        assert_eq!(sent, expected);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Some(input) = self.carry_out(effect) {
                let next = self.machine.step(self.now, input);
                self.perform(next);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Send(line) => match sent(&line) {
                cost if cost == "get_session_cost" => {
                    self.cost_requests.push(self.log.last().cloned().unwrap_or_default());
                }
                other => self.log.push(format!("send {other}")),
            },
            Effect::Commit(changes, next) => {
                let committed = self.apply(changes);
                return Some(Input::Committed(next, Box::new(committed)));
            }
            Effect::TryCommit(_, next) if self.store_fails => {
                let error = StoreError::Unavailable("disk full".to_owned());
                return Some(Input::Tried(next, Err(error)));
            }
            Effect::TryCommit(changes, next) => {
                self.apply(changes);
                return Some(Input::Tried(next, Ok(())));
            }
            Effect::Then(next) => return Some(Input::Next(next)),
            Effect::LoadBudget(usage) => return Some(Input::Budget(usage, self.budgets.clone())),
            Effect::LoadHeldCalls(_, ids) => {
                let rows = self.held_rows.iter().filter(|row| ids.contains(&row.tool_use_id));
                return Some(Input::HeldCalls(rows.cloned().collect()));
            }
            Effect::LoadBudgetApproval(_) => {
                return Some(Input::BudgetApproval(self.budget_approval.clone().map(Box::new)));
            }
            Effect::LoadOpenApprovals => return Some(Input::OpenApprovals(self.open_approvals.clone())),
            Effect::Reply(reply) => {
                self.log.push("reply".to_owned());
                reply.send();
            }
            Effect::Publish(_) => self.log.push("publish".to_owned()),
            Effect::ReadAll => self.read_all(),
            Effect::Prepare => {
                return Some(Input::Prepared(match self.start_failure.take() {
                    Some(failure) => Err(failure),
                    None => Ok(Box::new(Prepared {
                        token_hash: "hash".to_owned(),
                        spent_usd: 0.0,
                        cost_budget: None,
                        launch: LaunchPlan::default(),
                    })),
                }));
            }
            Effect::Start(key, prepared) => {
                self.log.push(format!("start run {}", key.run));
                let cost_budget = prepared.cost_budget;
                let started = Started {
                    identity: RunProcess { pid: 1, start_time: 0, boot_id: String::new() },
                    cost_budget,
                };
                return Some(Input::Started(key, Ok(started)));
            }
            Effect::Release => self.log.push("release".to_owned()),
            Effect::ReportSandbox | Effect::KillPoint(..) => {}
            Effect::CloseStdin => self.log.push("close stdin".to_owned()),
            Effect::InterruptBriefly(_) => self.log.push("interrupt briefly".to_owned()),
            Effect::Kill => self.log.push("kill".to_owned()),
            Effect::StopProcess => self.log.push("stop process".to_owned()),
            Effect::CollectExit(cause) => {
                self.read_all();
                self.log.push(format!("collect exit: {}", cause_name(&cause)));
                let exited = Exited { exit: self.exit.take(), stderr: Vec::new() };
                return Some(Input::Exited(cause, exited));
            }
            Effect::CleanUp => self.log.push("clean up".to_owned()),
            Effect::RunHooks(request_id, run) => {
                let commands: Vec<&str> = run.commands.iter().map(|hook| hook.command.as_str()).collect();
                self.log.push(format!("run {request_id}: {}", commands.join(", ")));
            }
            Effect::CancelHooks(ids) => self.log.push(format!("cancel {}", ids.join(", "))),
        }
        None
    }

    fn read_all(&mut self) {
        let lines: Vec<Value> = self.unread.drain(..).collect();
        if !lines.is_empty() {
            let entries = lines.iter().map(|line| self.entry(line)).collect();
            let effects = self.machine.step(self.now, Input::Lines(entries));
            self.perform(effects);
        }
    }

    fn apply(&mut self, changes: Vec<Change>) -> Committed {
        let mut committed = Committed::default();
        for change in &changes {
            if let Change::Call(row, _) | Change::Release(row, _) = change
                && self.rules_are_outdated
            {
                committed.outdated_calls.push(row.tool_use_id.clone());
            }
            if let Change::Call(row, seen) | Change::Release(row, seen) = change
                && let Some(approval) = self.holds
                && !matches!(row.verdict, Verdict::Deny { .. })
            {
                let mut row = (**row).clone();
                let CallInput { input, cwd, mode, .. } = seen.clone();
                row.verdict = Verdict::Held { approval, input, cwd, mode };
                let held = HeldForBudget {
                    session: row.key.session,
                    tool_use_id: Some(row.tool_use_id.clone()),
                    approval,
                    limit: budget(row.key, 0),
                };
                committed.held.push(held);
                self.held_rows.retain(|held| held.tool_use_id != row.tool_use_id);
                self.held_rows.push(row);
            }
            if let (Change::AskBudget(session), Some(approval)) = (change, self.holds) {
                let limit = budget(RunKey { session: *session, run: 0 }, 0);
                committed.held.push(HeldForBudget { session: *session, tool_use_id: None, approval, limit });
            }
        }
        let names: Vec<String> = changes.iter().filter_map(name_of).collect();
        if !names.is_empty() {
            self.log.push(format!("store {}", names.join(", ")));
        }
        self.stored.extend(changes);
        committed
    }

    pub(super) fn recover(&mut self, snapshot: Snapshot) {
        self.step(Input::Recovered(Box::new(snapshot)));
    }
}
