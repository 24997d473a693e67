//! Recovery: a new hub continues a session where the earlier hub stopped. It adopts the process if it still runs, the
//! turn, the open approvals, and every decision that was committed but may not have been sent.

use std::collections::{HashMap, HashSet};

use plexus_claude::SentId;
use plexus_protocol::{ApprovalKind, ApprovalStatus, Event, NodeId};
use plexus_store::{ApprovalRow, CallRow, Change, RunRow, RunState, TurnRow};
use serde_json::json;

use super::answers::{OpenApproval, mode_set_by};
use super::approvals::Call;
use super::process::{EXIT_WITHIN, Phase};
use super::progress::Progress;
use super::turn::{PromptTarget, Turn};
use super::{Effect, Machine};
use crate::attachments::Attachments;
use crate::policy as gate;

/// The state that an earlier hub left, as the store and the run directory have it.
pub(in crate::session) struct Snapshot {
    /// The latest turn.
    pub(in crate::session) turn: Option<TurnRow>,
    /// The latest events of that turn, if it has not ended.
    pub(in crate::session) events: Vec<Event>,
    /// The runs that have not ended.
    pub(in crate::session) runs: Vec<RecoveredRun>,
    /// The files of prompts and messages that the child has not confirmed, by node.
    pub(in crate::session) unread_files: HashMap<NodeId, Attachments>,
}

/// A run that has not ended.
pub(in crate::session) struct RecoveredRun {
    pub(in crate::session) row: RunRow,
    /// Its calls without a result.
    pub(in crate::session) calls: Vec<CallRow>,
    /// The approvals of those calls.
    pub(in crate::session) approvals: Vec<ApprovalRow>,
    /// The ids of the lines that were sent to it, for a run that has files.
    pub(in crate::session) sent: HashSet<SentId>,
}

impl Machine {
    pub(super) fn recover(&mut self, snapshot: Snapshot) {
        let Snapshot { turn, events, runs, unread_files } = snapshot;
        events.iter().for_each(|event| self.said.read(event));
        self.unread_files = unread_files;
        if let Some(turn) = turn {
            self.recover_turn(turn);
        }
        let mut given_up = Vec::new();
        let mut adopted = None;
        for run in runs {
            match run.row.state {
                RunState::External => {
                    self.remember(&run);
                    self.external.push(run.row.key);
                }
                // Its keeper was never released, so Claude Code was never started. The next run gets the next number.
                RunState::Starting | RunState::Ended => {
                    given_up.push(Change::EndRun(run.row.key, json!({"reason": "given up"})));
                }
                RunState::Running | RunState::Ending => {
                    self.remember(&run);
                    self.adopt(&run);
                    adopted = Some(run);
                }
            }
        }
        self.commit(given_up);
        if let Some(adopted) = adopted {
            return self.resume(adopted);
        }
        // No process is left that could still read the prompt.
        match self.turn.as_mut() {
            Some(turn) if turn.progress.acknowledged => {
                self.fail_turn("orphaned", "the agent exited while no hub was running".to_owned());
            }
            Some(turn) => {
                turn.bound = None;
                self.ensure_process();
            }
            None => {}
        }
    }

    fn recover_turn(&mut self, row: TurnRow) {
        let progress: Progress = serde_json::from_value(row.progress).unwrap_or_default();
        if row.ended_at.is_some() {
            self.last_progress = progress;
            return;
        }
        let prompt_uuid = Some(row.prompt_uuid).filter(|uuid| !uuid.is_empty());
        let bound = row.run.map(|run| PromptTarget { run, prompt_uuid });
        self.turn = Some(Turn { number: row.turn, prompt: row.prompt, bound, stopped: None, progress });
    }

    fn remember(&mut self, run: &RecoveredRun) {
        for call in &run.calls {
            let answer = gate::from_verdict(&call.verdict);
            self.running_tools.insert(call.tool_use_id.clone(), call.tool_name.clone());
            let call_of_run = Call { answer, digest: call.digest.clone(), cwd: None, run: run.row.key.run };
            self.calls.insert(call.tool_use_id.clone(), call_of_run);
        }
        self.remember_held(run.calls.clone());
        for row in run.approvals.iter().filter(|row| row.approval.kind != ApprovalKind::Budget) {
            let applied = self.progress_mut().modes_applied.contains(&row.approval.id);
            if let Some(mode) = mode_set_by(row).filter(|_| !applied) {
                self.row.config.permission_mode = mode;
            }
            let open = OpenApproval {
                id: row.approval.id,
                digest: row.approval.digest.clone().unwrap_or_default(),
                status: row.approval.status,
                decision: row.approval.decision.clone(),
                request_id: row.request_id.clone(),
                run: row.run,
            };
            self.approvals.insert(row.approval.tool_use_id.clone(), open);
        }
    }

    fn adopt(&mut self, run: &RecoveredRun) {
        let (key, now) = (run.row.key, self.now.instant);
        let mut process = self.new_process(key, run.sent.clone());
        let progress = self.turn.as_ref().map_or(&self.last_progress, |turn| &turn.progress);
        if run.row.state == RunState::Ending {
            process.phase = Phase::Closing { by: now + EXIT_WITHIN };
        } else if progress.ready == Some(key.run) {
            process.phase = Phase::Ready;
        } else if progress.initialized == Some(key.run) {
            process.phase = Phase::Connecting { again: Some(now) };
        }
        self.process = Some(process);
        // A prompt of an earlier run was being moved to this run when the hub exited.
        if let Some(turn) = self.turn.as_mut() {
            turn.bound.take_if(|bound| bound.run != key.run);
        }
    }

    /// Sends what the earlier hub decided and may not have sent.
    fn resume(&mut self, run: RecoveredRun) {
        let RecoveredRun { row, calls, approvals, sent } = run;
        let replied = |request_id: &String| sent.contains(&SentId::Reply(request_id.clone()));
        for call in calls {
            let held = self.held.iter().any(|held| held.tool_use_id() == call.tool_use_id);
            if !held && !replied(&call.request_id) {
                self.send(plexus_claude::reply_gate(&call.request_id, &gate::from_verdict(&call.verdict)));
            }
        }
        let mut changes = Vec::new();
        for row in &approvals {
            let answered = row.request_id.as_ref().is_some_and(&replied);
            if row.approval.status != ApprovalStatus::Pending && !answered {
                changes.extend(self.deliver(row));
            }
        }
        self.commit(changes);
        self.recover_hooks(row.key, |id| sent.contains(id));
        match self.process.as_ref().map(|process| process.phase) {
            // A keeper ignores a second release.
            Some(Phase::Initializing) if sent.is_empty() => self.release(),
            Some(Phase::Ready) => {
                self.send_prompt();
                self.send_messages();
                self.send_interrupt();
                // Without a gate the running tools are unknown until the next line.
                if self.row.config.loopback_enabled {
                    self.restart_stall_timer();
                }
            }
            Some(Phase::Closing { .. }) => self.effects.push(Effect::CloseStdin),
            Some(Phase::Initializing | Phase::Connecting { .. }) | None => {}
        }
        self.load_budget_approvals();
    }
}
