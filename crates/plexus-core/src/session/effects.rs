//! Carries out the effects of the state machine, in order. If the result of an effect causes further effects, they are
//! carried out before the next one.

use std::time::Duration;

use plexus_agent::{SandboxState, read_sandbox};
use plexus_book::{Meter as _, kill_point};
use plexus_claude::Incoming;
use plexus_protocol::AskedOf;
use plexus_store::OpenFilter;

use super::child::Child;
use super::machine::{Cause, Effect, Exited, Input};
use super::owner::{BATCH_BYTES, Closing, FIRST_PAUSE, MAX_PAUSE, Owner, now};

/// The number of lines of stderr that a failed turn shows.
const STDERR_LINES: usize = 20;

/// The time a child that is stopped has to end its turn, before it receives signals.
const INTERRUPT_BRIEFLY: Duration = Duration::from_millis(500);

impl Owner {
    pub(super) async fn perform(&mut self, effects: Vec<Effect>) -> Result<(), Closing> {
        for effect in effects {
            if let Some(result) = Box::pin(self.carry_out(effect)).await? {
                let next = self.machine.step(now(), result);
                Box::pin(self.perform(next)).await?;
            }
        }
        Ok(())
    }

    /// Carries out one effect; returns its result, if the machine waits for one.
    async fn carry_out(&mut self, effect: Effect) -> Result<Option<Input>, Closing> {
        let parts = self.parts.clone();
        let id = self.machine.id();
        Ok(match effect {
            Effect::Send(line) => {
                self.send(&line).await?;
                None
            }
            Effect::Commit(changes, next) => {
                let committed = self.commit(changes).await?;
                Some(Input::Committed(next, Box::new(committed)))
            }
            Effect::TryCommit(changes, next) => {
                Some(Input::Tried(next, parts.commit(changes).await.map(drop)))
            }
            Effect::Then(next) => Some(Input::Next(next)),
            Effect::LoadBudget(usage) => {
                Some(Input::Budget(usage, parts.commits.retry(|| parts.store.budget(id)).await))
            }
            Effect::LoadHeldCalls(key, ids) => {
                let mut rows = parts.commits.retry(|| parts.store.calls_without_result(key)).await;
                rows.retain(|row| ids.contains(&row.tool_use_id));
                Some(Input::HeldCalls(rows))
            }
            Effect::LoadBudgetApproval(approval) => {
                let row = parts.commits.retry(|| parts.store.approval(approval)).await;
                Some(Input::BudgetApproval(row.map(Box::new)))
            }
            Effect::LoadOpenApprovals => {
                let asked_of = AskedOf::Session { id }.key();
                let which = || OpenFilter::AskedOf(asked_of.clone());
                Some(Input::OpenApprovals(parts.commits.retry(|| parts.store.open_approvals(which())).await))
            }
            Effect::Reply(reply) => {
                reply.send();
                None
            }
            Effect::Publish(delta) => {
                parts.deltas.publish(id, delta);
                None
            }
            Effect::ReadAll => {
                self.read_all().await?;
                None
            }
            Effect::Prepare => Some(Input::Prepared(self.prepare().await.map(Box::new))),
            Effect::Start(key, prepared) => Some(Input::Started(key, self.start(key, *prepared))),
            Effect::Release => {
                self.release().await?;
                None
            }
            Effect::ReportSandbox => {
                self.report_sandbox();
                None
            }
            Effect::CloseStdin => {
                self.close_stdin();
                None
            }
            Effect::InterruptBriefly(line) => {
                self.interrupt_briefly(&line).await;
                None
            }
            Effect::Kill => {
                self.kill();
                None
            }
            Effect::StopProcess => {
                if let Some(Child { dir, keeper: Some(keeper), .. }) = &self.child {
                    keeper.stop(dir, &id.to_string()).await;
                }
                None
            }
            Effect::CollectExit(cause) => self.collect_exit(cause).await?,
            Effect::CleanUp => {
                self.clean_up().await;
                None
            }
            Effect::RunHooks(request_id, run) => {
                self.hooks.start(parts, request_id, *run);
                None
            }
            Effect::CancelHooks(request_ids) => {
                self.hooks.cancel(&request_ids);
                None
            }
            Effect::KillPoint(operation, step) => {
                kill_point(operation, step);
                None
            }
        })
    }

    /// Sends a line to the child. Retries until the disk has space for it.
    async fn send(&mut self, line: &str) -> Result<(), Closing> {
        let mut pause = FIRST_PAUSE;
        let mut held = None;
        while let Some(outbox) = self.child.as_mut().and_then(|child| child.outbox.as_mut()) {
            match outbox.append(line) {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(session = %self.machine.id(), %error, "cannot send a message to an agent; \
                        trying again");
                    held.get_or_insert_with(|| self.parts.metrics.hold());
                }
            }
            tokio::select! {
                () = self.parts.tasks.closing().cancelled() => return Err(Closing),
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(MAX_PAUSE),
            }
        }
        Ok(())
    }

    fn report_sandbox(&self) {
        if let Some(child) = &self.child
            && let Some(SandboxState::None { reason }) = read_sandbox(&child.dir)
        {
            tracing::warn!(session = %self.machine.id(), reason, "an agent started without a sandbox");
        }
    }

    /// A child whose stdin cannot be closed is stopped at its deadline.
    fn close_stdin(&mut self) {
        if let Some(outbox) = self.child.as_mut().and_then(|child| child.outbox.as_mut())
            && let Err(error) = outbox.close_stdin()
        {
            tracing::warn!(session = %self.machine.id(), %error, "cannot close the stdin of an idle agent");
        }
    }

    /// Asks a child to end its turn, and waits a moment for the result. The journal is read separately: the owner's own
    /// reading waits for the store.
    async fn interrupt_briefly(&mut self, line: &str) {
        let Some(child) = self.child.as_mut().filter(|child| child.keeper.is_some()) else { return };
        let Ok(mut journal) = child.journal.beside(&child.dir, &self.parts.watch) else { return };
        if child.outbox.as_mut().is_none_or(|outbox| outbox.append(line).is_err()) {
            return;
        }
        let turn_ends = async {
            loop {
                journal.changed().await;
                match journal.read(BATCH_BYTES) {
                    Ok(entries)
                        if !entries.iter().any(|entry| matches!(entry.message, Incoming::Result(_))) => {}
                    _ => return,
                }
            }
        };
        let _ = tokio::time::timeout(INTERRUPT_BRIEFLY, turn_ends).await;
    }

    fn kill(&self) {
        if let Some(Child { keeper: Some(keeper), .. }) = &self.child
            && let Err(error) = keeper.kill()
        {
            tracing::error!(session = %self.machine.id(), %error, "cannot kill an agent that must stop at \
                once");
        }
    }

    /// Reads the rest of the journal. A line in it may end the process first; then nothing is left to collect.
    async fn collect_exit(&mut self, cause: Cause) -> Result<Option<Input>, Closing> {
        Box::pin(self.read_all()).await?;
        let Some(child) = &self.child else { return Ok(None) };
        self.parts.keepers.remove(self.machine.id());
        let exit = plexus_agent::read_exit(&child.dir);
        let stderr = plexus_agent::stderr_tail(&child.dir, STDERR_LINES);
        Ok(Some(Input::Exited(cause, Exited { exit, stderr })))
    }

    /// Removes the secrets of an ended run, and the processes that its keeper could not end.
    async fn clean_up(&mut self) {
        let session = self.machine.id();
        if let Some(child) = self.child.take()
            && let Err(error) = child.dir.remove_secrets()
        {
            tracing::warn!(%session, %error, "cannot delete the MCP config of a run");
        }
        let swept = tokio::task::spawn_blocking(move || plexus_agent::sweep(&session.to_string())).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%session, %error, "cannot search for processes that an agent left running");
        }
    }
}
