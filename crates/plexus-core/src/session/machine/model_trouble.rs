//! Problems between a child and its model: a rate limit, failing calls, or silence. The child reports the first two; a
//! timer detects the third. The problem is stored with the turn and ends with the next answer of the model.

use plexus_claude::Incoming;
use plexus_protocol::{ApprovalStatus, Attention, Object};
use plexus_store::Change;
use serde_json::{Value, json};

use super::Machine;
use super::lines::Batch;
use super::process::Phase;

/// Tools that call a model: a child that waits for one of them waits for a model.
const DELEGATES: [&str; 2] = ["Agent", "Task"];

/// The problem between a child and its model, according to the stored progress of a turn.
pub(crate) fn trouble_of(progress: &Value) -> Option<Attention> {
    serde_json::from_value(progress.get("trouble")?.clone()).ok()?
}

impl Machine {
    /// Notes whether a line shows a problem with the model, or its end.
    pub(super) fn detect_trouble(&mut self, message: &Incoming, batch: &mut Batch) {
        let Some(turn) = self.turn.as_mut() else { return };
        let before = turn.progress.trouble;
        turn.progress.trouble = match message {
            Incoming::System(system) if system.subtype == "api_retry" => Some(retry(&system.data)),
            Incoming::Other { kind, data } if kind == "rate_limit_event" && is_rejected(data) => {
                Some(Attention::RateLimited)
            }
            Incoming::KeepAlive | Incoming::Blank => before,
            // A line about the child itself shows that the child is alive, and nothing about its model.
            Incoming::System(_)
            | Incoming::Other { .. }
            | Incoming::Response(_)
            | Incoming::Cancel { .. }
            | Incoming::Rubbish { .. } => before.filter(|trouble| *trouble != Attention::Stalled),
            Incoming::Request(_)
            | Incoming::Assistant(_)
            | Incoming::User(_)
            | Incoming::Result(_)
            | Incoming::Delta(_) => None,
        };
        if let Some(trouble) = turn.progress.trouble
            && before != Some(trouble)
        {
            batch.changes.extend(self.notice_of(trouble));
        }
    }

    /// Restarts the timer for a silent model, or stops it when the child does not wait for its model.
    pub(super) fn restart_stall_timer(&mut self) {
        let asked = self.approvals.values().any(|open| open.status == ApprovalStatus::Pending);
        let tool_runs = self.running_tools.values().any(|tool| !DELEGATES.contains(&tool.as_str()));
        let hook_runs = !self.progress_mut().hooks.is_empty();
        let waits_for_model = self.turn.is_some() && !asked && !tool_runs && !hook_runs;
        let stall_by = self.now.instant + self.shared.settings.stalled_after;
        if let Some(process) = self.process.as_mut().filter(|process| process.phase == Phase::Ready) {
            process.stall_by = waits_for_model.then_some(stall_by);
        }
    }

    /// Reports a silent model, once.
    pub(super) fn on_silence(&mut self) {
        let now = self.now.instant;
        let due = self.process.as_mut().and_then(|process| process.stall_by.take_if(|by| *by <= now));
        let (Some(_), Some(turn)) = (due, self.turn.as_mut()) else { return };
        // A child that retries is not silent: it waits for the time that the API requested.
        if turn.progress.trouble.is_some() {
            return;
        }
        turn.progress.trouble = Some(Attention::Stalled);
        let quiet_secs = self.shared.settings.stalled_after.as_secs_f64();
        let event = self.system_event("stalled", json!({"quiet_secs": quiet_secs}));
        let mut changes = vec![event, self.progress()];
        changes.extend(self.notice_of(Attention::Stalled));
        self.commit(changes);
    }

    /// The notice for the parent about a problem that may last. A single retry is not reported.
    fn notice_of(&self, trouble: Attention) -> Option<Change> {
        (trouble != Attention::ApiRetry).then(|| Change::Notice {
            to: self.row.answers_to.key(),
            session: self.row.id,
            data: json!({
                "type": trouble,
                "session_id": self.row.id,
                "session_name": self.row.name,
                "turn": self.event_turn(),
            }),
        })
    }
}

fn retry(data: &Object) -> Attention {
    let limited = data.get("error").is_some_and(|error| error == "rate_limit")
        || data.get("error_status").is_some_and(|status| status == 429);
    if limited { Attention::RateLimited } else { Attention::ApiRetry }
}

fn is_rejected(data: &Object) -> bool {
    data.get("rate_limit_info").and_then(|info| info.get("status")).and_then(Value::as_str)
        == Some("rejected")
}
