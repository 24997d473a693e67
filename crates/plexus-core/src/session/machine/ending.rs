//! The end of a process, and its effects on the turn, the open approvals and the callers that wait.

use plexus_store::{Change, RunKey};
use serde_json::Value;

use super::process::{Phase, Process};
use super::settings::PendingRequest;
use super::turn::{Ending, Turn};
use super::{Cause, Effect, Exited, Machine};

impl Machine {
    /// Ends the process, then its run.
    pub(super) fn end_process(&mut self, cause: Cause) {
        if self.process.is_some() {
            self.effects.push(Effect::StopProcess);
            self.finish_process(cause);
        }
    }

    /// The process is gone, or about to be: reads what it left, then ends its run.
    pub(super) fn finish_process(&mut self, cause: Cause) {
        self.effects.push(Effect::CollectExit(cause));
    }

    /// Everything the process wrote has been read.
    pub(super) fn on_exited(&mut self, cause: Cause, exited: Exited) {
        let Some(process) = self.process.take() else { return };
        let Exited { exit, stderr } = exited;
        self.cancel_all_hooks();
        self.kill_point("end", "process gone");
        let mut changes = self.withdraw_all(process.key, "the agent's process ended");
        changes.push(Change::EndRun(process.key, serde_json::to_value(&exit).unwrap_or(Value::Null)));
        let unread = self.turn.as_ref().is_some_and(|turn| goes_to_next_process(turn, &process, &cause));
        if unread {
            if let Some(turn) = self.turn.as_mut() {
                turn.progress.moved |= turn.bound.take().is_some();
                turn.progress.ready = None;
            }
            changes.push(self.progress());
        } else if let Some(turn) = &self.turn {
            let ending = match cause {
                Cause::Stopped(why) => match turn.progress.exhausted_budget.clone() {
                    Some(message) => Ending::out_of_budget(message),
                    None => Ending::interrupted(why),
                },
                Cause::Failed(reason, message) => Ending::failed(reason, message, stderr),
                Cause::Ended => {
                    turn.ending(self.head()).unwrap_or_else(|| ended_early(exit.as_ref(), stderr))
                }
            };
            self.end_turn(ending, &mut changes);
        }
        // The settings that the child was asked to change apply to the next process.
        let pending: Vec<PendingRequest> = self.requests.drain().map(|(_, request)| request).collect();
        let mut replies = Vec::new();
        for request in pending {
            let (change, reply) = self.finish_request(request, Ok(()));
            changes.push(change);
            replies.push(reply);
        }
        self.commit(changes);
        self.kill_point("end", "settled");
        self.effects.extend(replies.into_iter().map(Effect::Reply));
        self.effects.push(Effect::CleanUp);
        if unread {
            self.ensure_process();
        }
    }

    /// Ends the approvals and held calls of a run: no process waits for them.
    pub(super) fn withdraw_all(&mut self, key: RunKey, message: &str) -> Vec<Change> {
        let mut changes = Vec::new();
        for (tool_use_id, approval) in self.approvals.extract_if(|_, approval| approval.run == key.run) {
            changes.push(super::answers::withdraw(approval.id, message));
            changes.push(Change::ReleaseKeys(key, tool_use_id));
        }
        self.forget_held(key);
        for (tool_use_id, _) in self.calls.extract_if(|_, call| call.run == key.run) {
            changes.push(Change::ReleaseKeys(key, tool_use_id));
        }
        changes
    }

    /// Ends the running turn, if any, with an error of the hub.
    pub(super) fn fail_turn(&mut self, reason: &'static str, message: String) {
        let mut changes = Vec::new();
        self.end_turn(Ending::failed(reason, message, Vec::new()), &mut changes);
        self.commit(changes);
    }
}

/// A prompt that the process was never sent goes to the next process as it is. A prompt that it was sent but had not
/// read goes to another process once, whichever hub sends it there.
fn goes_to_next_process(turn: &Turn, process: &Process, cause: &Cause) -> bool {
    let was_ready = matches!(process.phase, Phase::Ready | Phase::Closing { .. });
    if !matches!(cause, Cause::Ended) || !was_ready {
        return false;
    }
    let sent = turn.bound.as_ref().is_some_and(|bound| bound.run == process.key.run);
    let progress = &turn.progress;
    !sent || !progress.acknowledged && !progress.moved && progress.result.is_none()
}

fn ended_early(exit: Option<&plexus_agent::Exit>, stderr: Vec<String>) -> Ending {
    match exit {
        Some(plexus_agent::Exit { error: Some(error), .. }) => {
            Ending::failed("cannot_start", format!("the agent could not start: {error}"), stderr)
        }
        Some(plexus_agent::Exit { code: Some(code), .. }) => Ending::failed(
            "exited",
            format!("the agent exited with code {code} before its turn finished"),
            stderr,
        ),
        Some(plexus_agent::Exit { signal: Some(signal), .. }) => {
            Ending::failed("killed", format!("the agent was killed by signal {signal}"), stderr)
        }
        _ => Ending::failed(
            "orphaned",
            "the keeper of the agent was killed, so the exit status of the agent is unknown".to_owned(),
            stderr,
        ),
    }
}
