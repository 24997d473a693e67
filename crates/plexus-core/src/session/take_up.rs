//! Taking a session up where an earlier hub left it: its process, if it still lives, its turn, its open questions,
//! and every answer that was decided but may not have been passed on.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use plexus_agent::{Keeper, RunDir};
use plexus_claude::SentId;
use plexus_protocol::{ApprovalKind, ApprovalStatus, SessionId};
use plexus_store::{ApprovalRow, CallRow, Change, RunRow, RunState};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Command;
use super::asks::{Ask, Call};
use super::owner::{Closing, Owner};
use super::run::{ENDING_WITHIN, Phase};
use super::time::Time;
use super::turn::{Progress, Turn};
use crate::Hub;
use crate::gate;
use crate::limits::Pace;
use crate::run_process;

impl Owner {
    /// What the store knows of a session. While it cannot be read, nothing is done with the session.
    pub(super) async fn load(
        hub: Arc<Hub>,
        id: SessionId,
        inbox: mpsc::UnboundedReceiver<Command>,
    ) -> Option<Self> {
        let row = hub.book().held(|| hub.store().session(id)).await?;
        let lineage = hub.book().held(|| hub.known_lineage(row.clone())).await;
        Some(Self {
            hub,
            row,
            lineage,
            inbox,
            deferred: VecDeque::new(),
            run: None,
            turn: None,
            last_progress: Progress::default(),
            calls: HashMap::new(),
            asks: HashMap::new(),
            held: Vec::new(),
            time: Time::default(),
            pace: Pace::default(),
            message: None,
            requests: HashMap::new(),
            interrupting: Vec::new(),
            external: Vec::new(),
            asked_for: false,
            at_work: HashMap::new(),
            ungated: HashSet::new(),
        })
    }

    /// Goes on where the last hub stopped.
    pub(super) async fn take_up(&mut self) -> Result<(), Closing> {
        let given_up = loop {
            match self.try_take_up().await {
                Ok(given_up) => break given_up,
                Err(error) => {
                    tracing::warn!(session = %self.row.id, %error, "a session cannot be taken up; tried again");
                    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                }
            }
        };
        self.commit_held(given_up).await?;
        if self.run.is_some() {
            return self.resume().await;
        }
        // No process is left that could have read the prompt, unless it said so before it ended.
        match self.turn.as_mut() {
            Some(turn) if turn.progress.acknowledged => {
                self.fail_turn("orphaned", "the agent ended while the hub was away".to_owned()).await
            }
            Some(turn) => {
                turn.bound = None;
                self.ensure_run().await
            }
            None => Ok(()),
        }
    }

    /// Remembers all that the store knows; what is to be stored about runs that are given up.
    async fn try_take_up(&mut self) -> Result<Vec<Change>, Box<dyn std::error::Error + Send + Sync>> {
        let hub = Arc::clone(&self.hub);
        let store = hub.store();
        if let Some(turn) = store.turn(self.row.id, self.row.latest_turn).await? {
            let progress: Progress = serde_json::from_value(turn.progress).unwrap_or_default();
            if turn.ended_at.is_none() {
                let bound = turn.run.map(|run| (run, turn.prompt_uuid));
                self.turn =
                    Some(Turn { number: turn.turn, prompt: turn.prompt, bound, stopped: None, progress });
            } else {
                self.last_progress = progress;
            }
        }
        let runs = store.open_runs().await?;
        let mine = self.row.id;
        let mut given_up = Vec::new();
        self.external.clear();
        for run in runs.into_iter().filter(|run| run.key.session == mine) {
            match run.state {
                RunState::External => {
                    self.remember(&run).await?;
                    self.external.push(run.key);
                }
                // Its keeper was never told to go: no claude was started. The next number is used.
                RunState::Starting | RunState::Ended => {
                    given_up.push(Change::EndRun(run.key, json!({"reason": "given up"})));
                }
                RunState::Running | RunState::Ending => {
                    self.remember(&run).await?;
                    self.attach(&run)?;
                }
            }
        }
        // Bound to a run that is over, the prompt was on its way from that one to this when the hub went away.
        let run = self.run.as_ref().map(|run| run.key.run);
        if let Some(turn) = self.turn.as_mut() {
            turn.bound.take_if(|(bound, _)| run.is_some_and(|run| run != *bound));
        }
        Ok(given_up)
    }

    async fn remember(&mut self, run: &RunRow) -> Result<(), plexus_store::StoreError> {
        let hub = Arc::clone(&self.hub);
        let calls = hub.store().living_calls(run.key).await?;
        let held = calls.clone();
        for call in calls {
            let answer = gate::from_verdict(&call.verdict);
            self.at_work.insert(call.tool_use_id.clone(), call.tool_name.clone());
            let kept = Call { answer, digest: call.digest, cwd: None, run: run.key.run };
            self.calls.insert(call.tool_use_id, kept);
        }
        self.forget_held(run.key);
        self.remember_held(held.into_iter());
        let of_calls = |row: &ApprovalRow| row.approval.kind != ApprovalKind::Budget;
        for row in hub.store().living_approvals(run.key).await?.into_iter().filter(of_calls) {
            let decision = row.approval.decision.as_ref().filter(|decision| decision.approve);
            if let Some(mode) = decision.and_then(|decision| decision.mode) {
                // An earlier hub may not have come to take note of it, and the child will say that it is in it.
                self.row.config.permission_mode = mode;
            }
            let ask = Ask {
                approval: row.approval.id,
                digest: row.approval.digest.clone().unwrap_or_default(),
                status: row.approval.status,
                decision: row.approval.decision.clone(),
                request_id: row.request_id,
                run: row.run,
            };
            self.asks.insert(row.approval.tool_use_id, ask);
        }
        Ok(())
    }

    fn attach(&mut self, run: &RunRow) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let dir = RunDir::new(self.hub.settings().run_dir(run.key));
        let identity = run.process.clone().map(run_process::from_stored).ok_or("the run has no keeper")?;
        // One that has ended meanwhile is settled from what it left behind, like any other.
        let keeper = Keeper::attach(&identity)?;
        match &keeper {
            Some(_) => self.hub.keeper_is(self.row.id, Some(identity.pid)),
            None => dir.restore()?,
        }
        let mut live = self.live_run(run.key, dir, keeper, run.journal_offset)?;
        let progress = self.turn.as_ref().map_or(&self.last_progress, |turn| &turn.progress);
        if run.state == RunState::Ending {
            live.phase = Phase::Ending { by: Instant::now() + ENDING_WITHIN };
        } else if progress.ready == Some(run.key.run) {
            live.phase = Phase::Ready;
        } else if progress.initialized == Some(run.key.run) {
            live.phase = Phase::Connecting { again: Some(Instant::now()) };
        }
        self.run = Some(live);
        Ok(())
    }

    /// Passes on what the earlier hub decided and may not have passed on, and sends what it may not have sent.
    async fn resume(&mut self) -> Result<(), Closing> {
        let Some(run) = &self.run else { return Ok(()) };
        let key = run.key;
        let replied: HashSet<String> = run
            .sent
            .iter()
            .filter_map(|sent| match sent {
                SentId::Reply(id) => Some(id.clone()),
                SentId::Request(_) | SentId::Prompt(_) => None,
            })
            .collect();
        let hub = Arc::clone(&self.hub);
        let (calls, asks) = loop {
            match (hub.store().living_calls(key).await, hub.store().living_approvals(key).await) {
                (Ok(calls), Ok(asks)) => break (calls, asks),
                _ => tokio::time::sleep(std::time::Duration::from_millis(200)).await,
            }
        };
        let is_held = |call: &CallRow| self.held.iter().any(|held| held.tool_use_id() == call.tool_use_id);
        let unsaid: Vec<_> =
            calls.into_iter().filter(|call| !replied.contains(&call.request_id) && !is_held(call)).collect();
        for call in unsaid {
            let line = plexus_claude::reply_gate(&call.request_id, &gate::from_verdict(&call.verdict));
            self.send(&line).await?;
        }
        let mut changes = Vec::new();
        for row in &asks {
            let answered = row.request_id.as_ref().is_some_and(|id| replied.contains(id));
            if row.approval.status != ApprovalStatus::Pending && !answered {
                self.deliver(row, &mut changes).await?;
            }
        }
        self.commit_held(changes).await?;
        match self.run.as_ref().map(|run| run.phase) {
            Some(Phase::Initializing) => self.resume_start().await?,
            Some(Phase::Ready) => {
                self.send_prompt().await?;
                self.send_messages().await?;
                self.send_interrupt().await?;
                // Without a gate nobody remembers what tools are at work; the next line will tell.
                if self.row.config.loopback_enabled {
                    self.listen_for_quiet();
                }
            }
            Some(Phase::Ending { .. }) => self.close_stdin(),
            Some(Phase::Connecting { .. }) | None => {}
        }
        self.resume_held().await
    }

    /// A start that was cut off between two steps: the keeper hears `go`, and the child `initialize`, if it has not.
    async fn resume_start(&mut self) -> Result<(), Closing> {
        match &self.run {
            // A keeper that has heard it passes over a second one.
            Some(run) if run.sent.is_empty() => self.go().await,
            _ => Ok(()),
        }
    }
}
