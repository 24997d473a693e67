//! Interrupting a turn and stopping the session.

use std::time::Duration;

use plexus_store::Change;
use serde_json::json;
use tokio::sync::oneshot;

use super::process::Phase;
use super::{Cause, Effect, Machine, Next, Reply};

/// The time a child has to end a turn that it was asked to end.
const INTERRUPT_WITHIN: Duration = Duration::from_secs(10);

impl Machine {
    /// Ends the running turn and keeps the process. A process that does not obey in time is ended as well.
    pub(super) fn interrupt(&mut self, reply: oneshot::Sender<()>) {
        let Some(turn) = self.turn.as_mut() else {
            return self.effects.push(Effect::Reply(Reply::Done(reply)));
        };
        turn.progress.interrupted = true;
        turn.progress.interrupt_requested = true;
        self.commit(vec![self.progress()]);
        self.interrupting.push(reply);
        self.send_interrupt();
    }

    /// Asks the child to end its turn, once for each turn.
    pub(super) fn send_interrupt(&mut self) {
        let Some(turn) = self.turn.as_ref().filter(|turn| turn.progress.interrupt_requested) else { return };
        // A message that the child has not read would become a turn of its own.
        let unread = turn.progress.unread_messages.iter();
        let cancel = |uuid: &String| plexus_claude::cancel_message(&format!("plexus-cancel-{uuid}"), uuid);
        let mut lines: Vec<String> = unread.map(|message| cancel(&message.uuid)).collect();
        lines.push(interrupt_line(turn.number));
        match self.process.as_mut() {
            Some(process) if process.phase == Phase::Ready => {
                process.interrupt_by = Some(self.now.instant + INTERRUPT_WITHIN);
                lines.into_iter().for_each(|line| self.send(line));
            }
            // The process has not started the turn, so no work is lost with it.
            _ => self.end_process(Cause::Stopped("the turn was interrupted".to_owned())),
        }
    }

    /// Ends the process and its process tree, and every token of this session.
    pub(super) fn stop(&mut self, why: String, reply: oneshot::Sender<()>) {
        if let (Some(process), Some(turn)) = (&self.process, self.turn.as_mut())
            && process.phase == Phase::Ready
            && !turn.progress.interrupt_requested
        {
            turn.stopped = Some(why.clone());
            self.effects.push(Effect::InterruptBriefly(interrupt_line(turn.number)));
        }
        self.end_process(Cause::Stopped(why.clone()));
        self.effects.push(Effect::Then(Next::StopExternal { why, reply }));
    }

    pub(super) fn stop_external(&mut self, why: &str, reply: oneshot::Sender<()>) {
        let mut changes = Vec::new();
        for key in std::mem::take(&mut self.external) {
            changes.extend(self.withdraw_all(key, why));
            changes.push(Change::EndRun(key, json!({"reason": why})));
        }
        self.commit(changes);
        self.effects.push(Effect::Reply(Reply::Done(reply)));
    }
}

fn interrupt_line(turn: u64) -> String {
    plexus_claude::interrupt(&format!("plexus-interrupt-{turn}"))
}
